/* For programs that check rules of the platform: argv[1] names the case, exit code 1 and a line say what is wrong. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(int truth, const char *what, int line) {
    if (!truth) {
        printf("line %d: wrong: %s\n", line, what);
        fflush(stdout);
        _Exit(1);
    }
}

#define NEED(truth) need(truth, #truth, __LINE__)

struct named {
    const char *name;
    void (*run)(void);
};

static int run_case(const struct named *cases, size_t n_cases, int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < n_cases; i++) {
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return 3;
}
