/* The threads that run calls, one a slot, on stacks below 4 GiB. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../emu/emu.h"
#include "internal.h"

#define STACK_BYTES (4u << 20) /* a host frame is larger than the DSP's */

static _Atomic uint64_t stack_bytes = STACK_BYTES;

void pd_set_stack_bytes(uint64_t bytes) {
    atomic_store(&stack_bytes, STACK_BYTES + (bytes & ~4095ull));
}

/* The address of an argument's bytes; NULL: the region is unknown, or too large to map. */
static void *address_of(struct fr_slot *slot, const struct fr_arg *a) {
    uint64_t bytes = FR_INLINE_BYTES;
    uint8_t *base = a->region ? pd_region(a->region, &bytes) : slot->bytes;
    if (base && (a->offset > bytes || a->bytes > bytes - a->offset)) {
        if (a->region) {
            pd_region_release(a->region);
        }
        return NULL;
    }
    return base ? base + a->offset : NULL;
}

static void release(const struct fr_slot *slot, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (slot->args[i].region) {
            pd_region_release(slot->args[i].region);
        }
    }
}

static int call(struct fr_slot *slot) {
    remote_arg args[FR_MAX_ARGS];
    uint32_t n_bufs = REMOTE_SCALARS_INBUFS(slot->scalars) + REMOTE_SCALARS_OUTBUFS(slot->scalars);
    uint32_t n_in_handles = REMOTE_SCALARS_INHANDLES(slot->scalars);
    uint32_t n = REMOTE_SCALARS_LENGTH(slot->scalars);
    for (uint32_t i = 0; i < n_bufs; i++) {
        args[i].buf.pv = address_of(slot, &slot->args[i]);
        args[i].buf.nLen = slot->args[i].bytes;
        if (!args[i].buf.pv) {
            fr_farf(FR_ERROR, "argument %u of method %u: its buffer finds no room below 4 GiB beside the others", i,
                    REMOTE_SCALARS_METHOD(slot->scalars));
            release(slot, i);
            return (int) AEE_ENOSUCHMAP;
        }
    }
    for (uint32_t i = n_bufs; i < n; i++) {
        args[i].h64 = i < n_bufs + n_in_handles ? slot->args[i].offset : 0;
    }
    int result = pd_module_invoke(slot->module, slot->scalars, args);
    for (uint32_t i = n_bufs + n_in_handles; i < n; i++) {
        slot->args[i].offset = args[i].h64;
    }
    release(slot, n_bufs);
    return result;
}

static int open_module(struct fr_slot *slot) {
    const char *path = (const char *) slot->bytes, *symbol = path + strlen(path) + 1,
               *uri = symbol + strlen(symbol) + 1;
    char sentence[FR_PATH_BYTES + 1024] = "";
    int result = pd_module_open(path, symbol, uri, &slot->module, sentence, sizeof sentence);
    memcpy(slot->bytes, sentence, strlen(sentence) + 1);
    return result;
}

static void serve(struct fr_slot *slot) {
    switch (slot->kind) {
    case FR_OPEN: slot->result = open_module(slot); break;
    case FR_CLOSE: slot->result = pd_module_close(slot->module); break;
    default: slot->result = call(slot); break;
    }
}

static void *work(void *p) {
    struct fr_slot *slot = p;
    for (;;) {
        uint32_t state = atomic_load(&slot->state);
        if (state == FR_REQUEST) {
            serve(slot);
            fr_change(&slot->state, FR_DONE, &slot->client_sleeps);
        } else {
            fr_wait_change(&slot->state, state, &slot->worker_sleeps);
        }
    }
    return NULL;
}

bool pd_worker_start(struct fr_slot *slot, uint32_t index) {
    size_t bytes = atomic_load(&stack_bytes);
    void *stack = emu_low_map(bytes, -1, 0);
    pthread_t thread;
    pthread_attr_t attributes;
    char name[16];
    if (!stack) {
        return false;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, bytes);
    bool started = !pthread_create(&thread, &attributes, work, slot);
    pthread_attr_destroy(&attributes);
    if (started) {
        snprintf(name, sizeof name, "call-%u", index);
        pthread_setname_np(thread, name);
    } else {
        emu_low_unmap(stack);
    }
    return started;
}
