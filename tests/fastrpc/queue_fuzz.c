/*
 * queue_fuzz SEED ROUNDS: a peer that writes anything into the shared memory, while this end reads and writes. The
 * rings' bytes stand between pages that nobody may touch. Whatever comes, an end gives one of the documented codes, and
 * what it hands out lies in the ring.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "queue_fake.h"

#define PAGE 4096u
#define RING_BYTES (2 * PAGE)

static uint64_t random_state;
static uint64_t sink;

static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (random_state >> 33);
}

/* Numbers that break things more often than others. */
static uint32_t odd_number(void) {
    static const uint32_t edges[] = {0, 1, 7, 8, 9, 16, 24, 32, RING_BYTES - 8, RING_BYTES, RING_BYTES + 8, 65535,
                                     65536, 65544, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
    uint32_t r = next_random() % 4;
    return r == 0 ? next_random() : r == 1 ? next_random() % RING_BYTES & ~7u : edges[next_random() % 18];
}

/* `bytes` with an untouchable page before and behind. */
static uint8_t *guarded(uint64_t bytes) {
    uint8_t *p = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && !mprotect(p + PAGE, bytes, PROT_READ | PROT_WRITE));
    return p + PAGE;
}

/* A header that may be right: length, flags, buffers, number. */
static void scribble_header(uint8_t *at) {
    uint32_t n_buffers = next_random() % 4 ? next_random() % 4 : next_random() % 256;
    uint32_t bytes = next_random() % 3 ? 8 + n_buffers * 24 + next_random() % 600 : odd_number();
    uint64_t flags = next_random() % 3 ? DSPQUEUE_PACKET_FLAG_USER_READY | next_random() % 4 : next_random() % 65536;
    uint64_t word = bytes | flags << 32 | (uint64_t) n_buffers << 48 | (uint64_t) (next_random() % 3) << 56;
    memcpy(at, &word, sizeof word);
}

static void check_reader(struct ring *ring) {
    struct ring_packet packet;
    for (int i = 0; i < 8; i++) {
        int error = ring_look(ring, &packet);
        CHECK(error == AEE_SUCCESS || error == AEE_EWOULDBLOCK || error == AEE_EBADITEM);
        if (error) {
            return;
        }
        CHECK(packet.head.n_buffers <= RING_MAX_BUFFERS && packet.head.message_bytes <= RING_MAX_MESSAGE);
        CHECK(packet.next < ring->bytes && packet.next % 8 == 0);
        for (uint32_t j = 0; j < packet.head.n_buffers * 24; j++) {
            sink += packet.buffers[j];
        }
        for (uint32_t j = 0; j < packet.head.message_bytes; j++) {
            sink += packet.message[j];
        }
        ring_take(ring, &packet);
    }
}

static void check_writer(struct ring *ring) {
    static const uint8_t message[RING_MAX_MESSAGE];
    static const struct dspqueue_buffer buffers[RING_MAX_BUFFERS];
    for (int i = 0; i < 8; i++) {
        struct packet head = {.flags = DSPQUEUE_PACKET_FLAG_USER_READY,
                              .n_buffers = next_random() % 2 ? 0 : next_random() % (RING_MAX_BUFFERS + 1),
                              .message_bytes = next_random() % 4 ? next_random() % 600 : next_random() % 65537};
        int error = ring_write(ring, &head, buffers, message);
        CHECK(error == AEE_SUCCESS || error == AEE_EWOULDBLOCK || error == AEE_EBADSTATE || error == AEE_EBADPARM);
    }
}

/* One ring, its memory garbage in a new way each round. */
static void fuzz_ring(int rounds) {
    struct ring_state *state = (struct ring_state *) (void *) guarded(PAGE);
    uint8_t *data = guarded(RING_BYTES);
    struct ring reader, writer;
    for (int round = 0; round < rounds; round++) {
        uint32_t position = next_random() % RING_BYTES & ~7u, bytes = 0, n = 0;
        atomic_store(&state->read_to, position);
        atomic_store(&state->written_to, position);
        atomic_store(&state->n_read, next_random() % 2);
        CHECK_IS(ring_open(&reader, state, data, RING_BYTES, false), AEE_SUCCESS);
        CHECK_IS(ring_open(&writer, state, data, RING_BYTES, true), AEE_SUCCESS);
        scribble_header(data + position);
        scribble_header(data);
        for (int i = 0; i < 4; i++) {
            scribble_header(data + (next_random() % RING_BYTES & ~7u));
        }
        atomic_store(&state->written_to, odd_number());
        check_reader(&reader);
        ring_fill(&reader, false, &bytes, &n);
        atomic_store(&state->read_to, odd_number());
        check_writer(&writer);
        ring_fill(&writer, true, &bytes, &n);
        atomic_store(&state->written_to, odd_number());
        int error = ring_open(&reader, state, data, RING_BYTES, round % 2);
        CHECK(error == AEE_SUCCESS || error == AEE_EBADSTATE);
    }
}

static struct pair queue;
static _Atomic bool finished;

/* The peer: writes where it likes, in between as it should. */
static void *scribble(void *p) {
    static const uint8_t message[256];
    uint64_t state = *(uint64_t *) p;
    uint8_t *memory = (uint8_t *) queue.memory;
    while (!atomic_load(&finished)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t where = (uint32_t) (state >> 35), what = (uint32_t) (state >> 20);
        uint64_t at = where % 3 ? QUEUE_DATA + where % (queue.bytes - QUEUE_DATA) : where % QUEUE_DATA;
        if (where % 7 == 0) {
            dspqueue_write_noblock(queue.cpu, what & 0xff, 0, NULL, what % 256, message);
        } else {
            memory[at] = (uint8_t) what;
        }
    }
    return NULL;
}

/* The whole API, while a thread spoils the memory under it. */
static void fuzz_api(int rounds) {
    static uint8_t buffer[4096];
    fake_map(5, buffer, buffer, sizeof buffer);
    queue = pair_open(4096, 4096, (struct callbacks){0}, (struct callbacks){0});
    pthread_t thread;
    uint64_t seed = random_state;
    CHECK(!pthread_create(&thread, NULL, scribble, &seed));
    for (int i = 0; i < rounds; i++) {
        static uint8_t message[65536];
        struct dspqueue_buffer got[64], sent = {.fd = 5};
        uint32_t flags, n_buffers = 0, bytes = 0;
        uint64_t value;
        dspqueue_peek(queue.dsp, &flags, &n_buffers, &bytes, 50);
        int error = dspqueue_read(queue.dsp, &flags, 64, &n_buffers, got, sizeof message, &bytes, message, 50);
        CHECK(error || (n_buffers <= 64 && bytes <= sizeof message));
        for (uint32_t j = 0; !error && j < n_buffers; j++) {
            CHECK((uint8_t *) got[j].ptr >= buffer && (uint8_t *) got[j].ptr + got[j].size <= buffer + sizeof buffer);
        }
        dspqueue_write(queue.dsp, 0, 1, &sent, 100, message, 50);
        dspqueue_read_noblock(queue.cpu, &flags, 64, &n_buffers, got, sizeof message, &bytes, message);
        dspqueue_get_stat(queue.dsp, DSPQUEUE_STAT_READ_QUEUE_BYTES, &value);
        if (error == (int) AEE_EBADITEM || i % 16 == 0) { /* damage stays: go on where the memory says */
            struct queue_end end = {
                .memory = queue.memory, .request_bytes = 4096, .response_bytes = 4096, .is_dsp = true};
            CHECK_IS(fake_close(queue.dsp), AEE_SUCCESS);
            while (queue_open(&end, &queue.dsp) != AEE_SUCCESS) {
                atomic_store(&queue.memory->request.read_to, 0);
                atomic_store(&queue.memory->response.written_to, 0);
            }
        }
    }
    atomic_store(&finished, true);
    pthread_join(thread, NULL);
    pair_close(&queue);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    random_state = strtoull(argv[1], NULL, 10);
    fake_farf_silent = true; /* thousands of lines about damage */
    fuzz_ring(atoi(argv[2]));
    fuzz_api(atoi(argv[2]) / 100);
    return 0;
}
