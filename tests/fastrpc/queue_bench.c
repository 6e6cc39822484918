/*
 * Round trips of messages: queue_bench ROUNDS PAUSE_US BYTES... prints, for each size, the best and the median time in
 * microseconds. A reader waits at either end. With a pause the DSP's has fallen asleep by the time the message comes.
 */
#include <time.h>

#include "AEEStdErr.h"
#include "check.h"
#include "dspqueue.h"
#include "queue_echo.h"
#include "remote.h"

#define MAX_BYTES 65536u

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static void trip(dspqueue_t queue, uint32_t bytes) {
    static uint8_t sent[MAX_BYTES], got[MAX_BYTES];
    uint32_t n = bytes + 1;
    CHECK_EQUAL(dspqueue_write(queue, 0, 0, NULL, bytes, sent, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
    CHECK_EQUAL(dspqueue_read(queue, NULL, 0, NULL, NULL, bytes, &n, got, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
    CHECK_EQUAL(n, bytes);
}

static void measure(dspqueue_t queue, uint32_t bytes, int rounds, long pause_us) {
    double *times = calloc((size_t) rounds, sizeof *times);
    struct timespec pause = {0, pause_us * 1000};
    for (int i = 0; i < rounds; i++) {
        if (pause_us) {
            nanosleep(&pause, NULL);
        }
        double begin = now_us();
        trip(queue, bytes);
        times[i] = now_us() - begin;
    }
    qsort(times, (size_t) rounds, sizeof times[0], by_value);
    printf("%.2f %.2f\n", times[0], times[rounds / 2]);
    free(times);
}

int main(int argc, char **argv) {
    remote_handle64 handle;
    dspqueue_t queue;
    uint64_t id;
    CHECK(argc > 3);
    CHECK_EQUAL(remote_handle64_open(ECHO_URI CDSP_DOMAIN, &handle), AEE_SUCCESS);
    CHECK_EQUAL(dspqueue_create(CDSP_DOMAIN_ID, 0, 4 * MAX_BYTES, 4 * MAX_BYTES, NULL, NULL, NULL, &queue), 0);
    CHECK_EQUAL(dspqueue_export(queue, &id), AEE_SUCCESS);
    struct echo_start start = {id, 0, ECHO_THREADS, 1};
    remote_arg arg = {.buf = {&start, sizeof start}};
    CHECK_EQUAL(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(ECHO_START, 1, 0), &arg), AEE_SUCCESS);
    for (int i = 3; i < argc; i++) {
        measure(queue, (uint32_t) atoi(argv[i]), atoi(argv[1]), atol(argv[2]));
    }
    return 0;
}
