/*
 * What the stand-in's library (client/, in the host program) and a protection domain (pd/, the process htp-pd) share:
 * call slots in one block of memory, control messages over a socket, and the counters of a run.
 *
 * A call takes a slot, and each slot has a thread of its own in the domain: whoever waits looks at the slot's state for
 * a short while and then sleeps on it. Control messages (new memory, mappings) are rare, one at a time, and answered.
 * All types have fixed sizes, so that both ends need not be built for the same processor.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FR_SOCKET_FD 3 /* what htp-pd is started with: the control socket */
#define FR_SHARED_FD 4 /* and struct fr_shared */

#define FR_SLOTS 64u
#define FR_INLINE_BYTES 65536u /* a call's buffers, where they fit; else they go through a region of the slot */
#define FR_ALIGN 128u          /* of each buffer of a call, as the real driver does it */
#define FR_MAX_ARGS (255u + 255u + 15u + 15u)
#define FR_PATH_BYTES 4096u

enum fr_kind { FR_CALL, FR_OPEN, FR_CLOSE };

/* A slot goes from FR_IDLE (or FR_DONE) to FR_REQUEST by the client and to FR_DONE by the domain. FR_DEAD: the domain
 * ended, written by the client for those who wait. */
enum fr_state { FR_IDLE, FR_REQUEST, FR_DONE, FR_DEAD };

/* Where an argument lies. A handle is its value in `offset`. */
struct fr_arg {
    uint64_t region; /* id of a shared region; 0: the slot's inline bytes */
    uint64_t offset, bytes;
};

struct fr_slot {
    _Atomic uint32_t state; /* enum fr_state, a futex word */
    _Atomic uint32_t client_sleeps, worker_sleeps;
    uint32_t kind;   /* enum fr_kind */
    uint32_t module; /* the domain's number of an opened library: FR_CALL and FR_CLOSE take it, FR_OPEN gives it */
    uint32_t scalars;
    int32_t result;
    uint32_t n_args;
    struct fr_arg args[FR_MAX_ARGS];
    /* FR_OPEN: the file's path, the symbol and the URI, each with its end; the answer may be a sentence. */
    _Alignas(FR_ALIGN) uint8_t bytes[FR_INLINE_BYTES];
};

struct fr_shared {
    struct fr_slot slots[FR_SLOTS];
};

enum fr_ctl_kind {
    FR_READY,   /* the domain's first message; `status` != 0: it cannot work, and has said why */
    FR_WORKER,  /* start the thread of slot `id` */
    FR_SHARE,   /* a region: its memory comes with the message; `bytes`; the client chooses `id` */
    FR_UNSHARE, /* region `id` */
    FR_MAP,     /* buffer `fd` is region `id`; `flags` of fastrpc_mmap(); the answer has the domain's address */
    FR_UNMAP,   /* buffer `fd` */
    FR_STACK,   /* stacks of threads started from now on: `bytes` at least */
};

struct fr_ctl {
    uint32_t kind;
    int32_t status; /* of an answer: an AEE code */
    uint64_t id, bytes, address;
    uint32_t fd, flags;
};

/* Of all processes of a run, in the file that HEXNPU_EMU_SUMMARY names. */
struct fr_counters {
    _Atomic uint64_t sessions; /* protection domains started */
    _Atomic uint64_t calls;    /* invocations */
    _Atomic uint64_t packets;  /* packets that queues delivered, both ways */
    _Atomic uint64_t bytes_mapped;
    _Atomic uint64_t faults; /* protection domains that ended by themselves */
};

/* The counters; they lie in memory of this process alone where there is no such file. */
struct fr_counters *fr_counters(void);

/* Levels as in HAP_farf.h. A line to the file of HEXNPU_EMU_FARF, else to stderr: what, where, what to do. */
enum fr_level { FR_LOW, FR_MEDIUM, FR_HIGH, FR_ERROR, FR_FATAL };
void fr_farf(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Futexes between processes. A wait ends when the word changed, after timeout_us (< 0: none), or for no reason. */
void fr_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_us);
void fr_futex_wake(_Atomic uint32_t *word, uint32_t n);

/* Waits until *word is not `value`: looks for a while, then sleeps with *sleeps set for the one who changes it. */
void fr_wait_change(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleeps);
/* Changes *word and wakes the one who waits. */
void fr_change(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleeps);
