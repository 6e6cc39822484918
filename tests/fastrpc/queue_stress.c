/*
 * queue_stress SESSIONS READERS: in each session two threads write messages of random sizes, READERS threads on the
 * DSP's end answer each with its sum and a buffer, and as many take the answers. Every answer comes once and is right;
 * with one thread on the way, those of a writer come in order.
 */
#include <pthread.h>
#include <string.h>

#include "queue_fake.h"

#define MESSAGES 10000u /* of all sessions */
#define WRITERS 2u
#define MAX_SESSIONS 4u
#define MAX_BYTES 900u
#define FD 40u

struct message {
    uint32_t writer, number, sum;
};

struct session {
    struct pair queue;
    uint32_t n_messages, n_readers;
    _Atomic uint32_t n_written, n_echoed, n_read;
    _Atomic uint8_t came[WRITERS][MESSAGES];
};

struct job {
    struct session *session;
    uint32_t index;
};

static struct session sessions[MAX_SESSIONS];
static uint8_t of_cpu[4096], of_dsp[4096];

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static uint32_t sum_of(const uint8_t *bytes, uint32_t n) {
    uint32_t sum = n;
    for (uint32_t i = 0; i < n; i++) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

static void *writer(void *p) {
    const struct job *job = p;
    struct session *s = job->session;
    uint32_t random = 12345 + job->index * 77 + (uint32_t) (s - sessions), n = s->n_messages / WRITERS;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t bytes[sizeof(struct message) + MAX_BYTES];
        uint32_t length = next_random(&random) % (MAX_BYTES + 1);
        for (uint32_t j = 0; j < length; j++) {
            bytes[sizeof(struct message) + j] = (uint8_t) next_random(&random);
        }
        struct message head = {job->index, i, sum_of(bytes + sizeof head, length)};
        memcpy(bytes, &head, sizeof head);
        uint32_t whole = (uint32_t) sizeof head + length;
        int error = next_random(&random) % 4 ? AEE_EWOULDBLOCK
                                              : dspqueue_write_noblock(s->queue.cpu, 0, 0, NULL, whole, bytes);
        if (error == AEE_EWOULDBLOCK) {
            error = dspqueue_write(s->queue.cpu, 0, 0, NULL, whole, bytes, DSPQUEUE_TIMEOUT_NONE);
        }
        CHECK_IS(error, AEE_SUCCESS);
    }
    return NULL;
}

static void *echo(void *p) {
    struct session *s = ((struct job *) p)->session;
    while (atomic_fetch_add(&s->n_echoed, 1) < s->n_messages) {
        uint8_t bytes[sizeof(struct message) + MAX_BYTES];
        struct message head;
        uint32_t n = 0;
        CHECK_IS(dspqueue_read(s->queue.dsp, NULL, 0, NULL, NULL, sizeof bytes, &n, bytes, DSPQUEUE_TIMEOUT_NONE),
                 AEE_SUCCESS);
        memcpy(&head, bytes, sizeof head);
        CHECK(n >= sizeof head && head.sum == sum_of(bytes + sizeof head, n - (uint32_t) sizeof head));
        struct dspqueue_buffer buffer = {.fd = FD, .offset = head.number % 4096, .size = 1};
        CHECK_IS(dspqueue_write(s->queue.dsp, 0, 1, &buffer, sizeof head, bytes, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
    }
    return NULL;
}

static void *reader(void *p) {
    struct session *s = ((struct job *) p)->session;
    uint32_t next[WRITERS] = {0};
    while (atomic_fetch_add(&s->n_read, 1) < s->n_messages) {
        struct message head;
        struct dspqueue_buffer buffer;
        int error;
        do {
            error = dspqueue_read(s->queue.cpu, NULL, 1, NULL, &buffer, sizeof head, NULL, (uint8_t *) &head, 100);
        } while (error == AEE_EEXPIRED);
        CHECK_IS(error, AEE_SUCCESS);
        CHECK(head.writer < WRITERS && head.number < MESSAGES);
        CHECK(buffer.ptr == of_cpu + head.number % 4096 && buffer.size == 1);
        CHECK(atomic_fetch_add(&s->came[head.writer][head.number], 1) == 0);
        CHECK(s->n_readers > 1 || head.number == next[head.writer]++);
    }
    return NULL;
}

int main(int argc, char **argv) {
    uint32_t n_sessions = argc == 3 ? (uint32_t) atoi(argv[1]) : 0;
    uint32_t n_readers = argc == 3 ? (uint32_t) atoi(argv[2]) : 0;
    static struct job jobs[MAX_SESSIONS][8];
    pthread_t threads[MAX_SESSIONS * 8];
    uint32_t n_threads = 0;
    if (n_sessions < 1 || n_sessions > MAX_SESSIONS || n_readers < 1 || n_readers > 3) {
        return 2;
    }
    fake_map(FD, of_cpu, of_dsp, sizeof of_cpu);
    for (uint32_t i = 0; i < n_sessions; i++) {
        struct session *s = &sessions[i];
        s->n_messages = MESSAGES / n_sessions / WRITERS * WRITERS;
        s->n_readers = n_readers;
        s->queue = pair_open(2048, 1024, (struct callbacks){0}, (struct callbacks){0});
        for (uint32_t j = 0; j < WRITERS + 2 * n_readers; j++) {
            void *(*work)(void *) = j < WRITERS ? writer : j < WRITERS + n_readers ? echo : reader;
            jobs[i][j] = (struct job){s, j};
            CHECK(!pthread_create(&threads[n_threads++], NULL, work, &jobs[i][j]));
        }
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < n_sessions; i++) {
        for (uint32_t j = 0; j < WRITERS * (sessions[i].n_messages / WRITERS); j++) {
            CHECK(atomic_load(&sessions[i].came[j % WRITERS][j / WRITERS]) == 1);
        }
        pair_close(&sessions[i].queue);
    }
    return 0;
}
