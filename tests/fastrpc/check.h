/* For the host programs of these tests: cases by name, and checks that say what they saw. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_EQUAL(a, b)                                                                                              \
    do {                                                                                                               \
        long long left_ = (long long) (a), right_ = (long long) (b);                                                   \
        if (left_ != right_) {                                                                                         \
            fprintf(stderr, "%s:%d: %s is 0x%llx, %s is 0x%llx\n", __FILE__, __LINE__, #a, left_, #b, right_);         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct test_case {
    const char *name;
    void (*run)(void);
};

static inline int run_case(const struct test_case *cases, int argc, char **argv) {
    for (const struct test_case *c = cases; argc > 1 && c->name; c++) {
        if (!strcmp(c->name, argv[1])) {
            c->run();
            return 0;
        }
    }
    fprintf(stderr, "which case?\n");
    return 2;
}
