/* Both ends of a queue in one process: the real rings and the real API over a border of our own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "AEEStdErr.h"
#include "check.h"
#include "queue/queue.h"

#define CHECK_IS(call, code) CHECK_EQUAL((int) (call), (int) (code))

struct callbacks {
    dspqueue_callback_t packet, error;
    void *context;
};

struct pair {
    dspqueue_t cpu, dsp;
    struct queue_memory *memory;
    uint64_t bytes;
};

struct pair pair_open(uint32_t request_bytes, uint32_t response_bytes, struct callbacks of_cpu,
                      struct callbacks of_dsp);
/* Closes what is open. */
void pair_close(struct pair *pair);
int fake_close(dspqueue_t queue);

/* What is mapped: buffer `fd`, with different addresses on either side. */
void fake_map(uint32_t fd, void *of_cpu, void *of_dsp, uint64_t size);
int fake_refs(uint32_t fd);
extern _Atomic uint32_t fake_farf_lines;
extern bool fake_farf_silent;
