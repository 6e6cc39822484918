/* Time of an invocation: a line of best and median microseconds for each size of the command line, twice: with an
 * ordinary argument, and with one of rpcmem. */
#include <time.h>

#include "calc_host.h"

#define ROUNDS 21

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static void call(remote_handle64 h, uint8_t *in, uint8_t *out, size_t bytes) {
    CHECK_EQUAL(bytes ? calc_inout(h, CALC_SCALE, in, bytes, out, 1) : calc_call(h, CALC_EMPTY), AEE_SUCCESS);
}

static void measure(remote_handle64 h, uint8_t *in, uint8_t *out, size_t bytes, int calls) {
    double times[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double begin = now_us();
        for (int i = 0; i < calls; i++) {
            call(h, in, out, bytes);
        }
        times[r] = (now_us() - begin) / calls;
    }
    qsort(times, ROUNDS, sizeof times[0], by_value);
    printf("%.3f %.3f\n", times[0], times[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    remote_handle64 h = calc_open(CALC_URI CDSP_DOMAIN);
    for (int i = 1; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 10);
        uint8_t *own = calloc(1, bytes + 1), out[1], *shared = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, 1, bytes + 1);
        int calls = bytes < 1000000 ? 500 : 20;
        measure(h, own, out, bytes, calls);
        measure(h, shared, out, bytes, calls);
        free(own);
        rpcmem_free(shared);
    }
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    return 0;
}
