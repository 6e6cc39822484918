/* One process plays both sides: random values, hashes of what each side sees, and a transport that copies every buffer
 * into memory of exactly its size, so that a sanitizer sees every byte too many. */
#pragma once

#include "AEEStdDef.h"
#include "AEEStdErr.h"
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern uint64_t test_state;
extern int test_result; /* what the implementation returns */

static inline uint64_t test_random(void)
{
    test_state ^= test_state << 13;
    test_state ^= test_state >> 7;
    test_state ^= test_state << 17;
    return test_state;
}

static inline void test_fill(void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *) to)[i] = (uint8_t) (test_random() >> 24);
}

/* Lengths: mostly a few, sometimes none, seldom many. */
static inline int test_length(int most)
{
    uint64_t pick = test_random() >> 20;
    if (pick % 5 == 0)
        return 0;
    return (int) (pick / 5 % (pick % 17 == 1 ? (uint64_t) most : most < 9 ? (uint64_t) most : 9));
}

static inline uint64_t test_mix(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *) data)[i]) * 0x100000001b3;
    return hash;
}

void *test_keep(size_t bytes); /* zeroed, until the call is over */
void test_drop(void);

#define TEST_START 0xcbf29ce484222325
#define test_say(side, what, name, hash) printf("%s %s %s %016llx\n", side, what, name, (unsigned long long) (hash))
