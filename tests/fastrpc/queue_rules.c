/* What a queue does and refuses, one case a run: queue_rules CASE. */
#include "queue_cases.h"

static void messages(void) {
    struct pair p = pair_open(1024, 1024, none, none);
    CHECK_IS(read_any_noblock(p.dsp), AEE_EWOULDBLOCK);
    write_text(p.cpu, "one");
    write_text(p.cpu, "two, longer");
    write_text(p.dsp, "back");
    read_text(p.dsp, "one");
    read_text(p.cpu, "back");
    read_text(p.dsp, "two, longer");
    CHECK_IS(read_any_noblock(p.cpu), AEE_EWOULDBLOCK);
    /* Neither message nor buffers: a packet all the same. */
    uint32_t flags = 0;
    CHECK_IS(dspqueue_write(p.cpu, 0xff00, 0, NULL, 0, NULL, 0), AEE_SUCCESS);
    CHECK_IS(dspqueue_read(p.dsp, &flags, 0, NULL, NULL, 0, NULL, NULL, 0), AEE_SUCCESS);
    CHECK(flags == (0xff00 | DSPQUEUE_PACKET_FLAG_USER_READY));
    pair_close(&p);
}

static void peek(void) {
    struct pair p = pair_open(1024, 1024, none, none);
    uint32_t flags, n_buffers, bytes;
    uint8_t little[3], enough[5];
    CHECK_IS(dspqueue_peek_noblock(p.dsp, &flags, &n_buffers, &bytes), AEE_EWOULDBLOCK);
    CHECK_IS(dspqueue_peek(p.dsp, &flags, &n_buffers, &bytes, 1000), AEE_EEXPIRED);
    write_text(p.cpu, "12345");
    for (int i = 0; i < 3; i++) {
        CHECK_IS(dspqueue_peek(p.dsp, &flags, &n_buffers, &bytes, 0), AEE_SUCCESS);
        CHECK(bytes == 5 && n_buffers == 0 && flags & DSPQUEUE_PACKET_FLAG_MESSAGE);
        /* Too little room: the packet stays. */
        CHECK_IS(dspqueue_read_noblock(p.dsp, NULL, 0, NULL, NULL, sizeof little, NULL, little), AEE_EBADPARM);
        CHECK(stat_of(p.dsp, DSPQUEUE_STAT_READ_QUEUE_PACKETS) == 1);
    }
    CHECK_IS(dspqueue_read_noblock(p.dsp, NULL, 0, NULL, NULL, sizeof enough, NULL, enough), AEE_SUCCESS);
    CHECK(!memcmp(enough, "12345", 5));
    CHECK_IS(dspqueue_peek_noblock(p.dsp, NULL, NULL, NULL), AEE_EWOULDBLOCK);
    pair_close(&p);
}

static void full(void) {
    struct pair p = pair_open(256, 256, none, none);
    uint8_t message[240] = {0};
    /* 256 bytes hold 248, 8 of them a packet's header. */
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 241, message), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 240, message), AEE_SUCCESS);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 0, NULL), AEE_EWOULDBLOCK);
    CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 0, NULL, 1000), AEE_EEXPIRED);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_WRITE_QUEUE_BYTES) == 248);
    CHECK_IS(read_any_noblock(p.dsp), AEE_SUCCESS);
    /* Small packets, until it is full. */
    int n = 0, error;
    while ((error = dspqueue_write_noblock(p.cpu, 0, 0, NULL, 8, message)) == AEE_SUCCESS) {
        n++;
    }
    CHECK(error == AEE_EWOULDBLOCK && n == 15);
    CHECK(stat_of(p.dsp, DSPQUEUE_STAT_READ_QUEUE_PACKETS) == 15);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_WRITE_QUEUE_PACKETS) == 15);
    CHECK(stat_of(p.dsp, DSPQUEUE_STAT_READ_QUEUE_BYTES) == 248); /* 8 at the end, which held no packet */
    while (n--) {
        CHECK_IS(read_any_noblock(p.dsp), AEE_SUCCESS);
    }
    CHECK_IS(read_any_noblock(p.dsp), AEE_EWOULDBLOCK);
    pair_close(&p);
}

/* More than half the queue, from the middle of it: the device never takes it, and says nothing. */
static void stuck(void) {
    struct pair p = pair_open(256, 256, none, none);
    uint8_t message[200] = {0};
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 120, message), AEE_SUCCESS);
    CHECK_IS(read_any_noblock(p.dsp), AEE_SUCCESS);
    uint32_t lines = atomic_load(&fake_farf_lines);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, sizeof message, message), AEE_EWOULDBLOCK);
    }
    CHECK(atomic_load(&fake_farf_lines) == lines + 1);
    pair_close(&p);
}

static void bad_parameters(void) {
    struct pair p = pair_open(262144, 1024, none, none);
    static uint8_t message[65537];
    static struct dspqueue_buffer buffers[65];
    uint64_t value;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 65536, message), AEE_SUCCESS);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 65537, message), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 1, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 1, NULL, 0, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 65, buffers, 0, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(p.cpu, DSPQUEUE_PACKET_FLAG_WAKEUP, 0, NULL, 5, message), AEE_EBADPARM);
    CHECK_IS(dspqueue_get_stat(p.cpu, (enum dspqueue_stat) 99, &value), AEE_EBADPARM);
    CHECK_IS(dspqueue_get_stat(p.cpu, DSPQUEUE_STAT_READ_QUEUE_BYTES, NULL), AEE_EBADPARM);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_SIGNALING_PERF) == DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING);
    pair_close(&p);
}

static void closed_handle(void) {
    struct pair p = pair_open(1024, 1024, none, none);
    dspqueue_t old = p.dsp;
    uint32_t lines = atomic_load(&fake_farf_lines);
    CHECK_IS(fake_close(p.dsp), AEE_SUCCESS);
    CHECK_IS(fake_close(old), AEE_EBADPARM);
    CHECK_IS(read_any(old, DSPQUEUE_TIMEOUT_NONE), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(old, 0, 0, NULL, 0, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock(NULL, 0, 0, NULL, 0, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_write_noblock((dspqueue_t) &p, 0, 0, NULL, 0, NULL), AEE_EBADPARM);
    CHECK(atomic_load(&fake_farf_lines) == lines + 5);
    /* Its slot's next user is not mistaken for it. */
    struct pair q = pair_open(1024, 1024, none, none);
    CHECK(q.cpu != old && q.dsp != old);
    CHECK_IS(read_any_noblock(old), AEE_EBADPARM);
    pair_close(&q);
    p.dsp = NULL;
    pair_close(&p);
}

static void reopened(void) {
    struct pair p = pair_open(256, 256, none, none);
    for (int i = 0; i < 300; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %d", i);
        write_text(p.cpu, text);
        CHECK_IS(fake_close(p.dsp), AEE_SUCCESS);
        struct queue_end end = {
            .memory = p.memory, .request_bytes = 256, .response_bytes = 256, .is_dsp = true};
        CHECK_IS(queue_open(&end, &p.dsp), AEE_SUCCESS);
        read_text(p.dsp, text);
    }
    pair_close(&p);
}

static void many_queues(void) {
    dspqueue_t queues[QUEUE_MAX_OF_SESSION];
    struct pair p = pair_open(256, 256, none, none);
    struct queue_end end = {.memory = p.memory, .request_bytes = 256, .response_bytes = 256};
    for (uint32_t i = 2; i < QUEUE_MAX_OF_SESSION; i++) {
        CHECK_IS(queue_open(&end, &queues[i]), AEE_SUCCESS);
    }
    CHECK_IS(queue_open(&end, &queues[0]), AEE_EBADPARM);
    end.pd = (struct pd *) &p; /* another session has room */
    CHECK_IS(queue_open(&end, &queues[0]), AEE_SUCCESS);
    CHECK_IS(fake_close(queues[0]), AEE_SUCCESS);
    for (uint32_t i = 2; i < QUEUE_MAX_OF_SESSION; i++) {
        CHECK_IS(fake_close(queues[i]), AEE_SUCCESS);
    }
    pair_close(&p);
}

static void buffers(void) {
    static uint8_t of_cpu[4096], of_dsp[4096];
    struct pair p = pair_open(4096, 4096, none, none);
    struct dspqueue_buffer sent[3] = {{.fd = 7, .flags = DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER}, {.fd = 7}, {.fd = 7}};
    struct dspqueue_buffer got[3];
    uint32_t n = 0, flags = 0;
    fake_map(7, of_cpu, of_dsp, sizeof of_cpu);
    sent[1].offset = 128, sent[1].size = 3968;
    sent[2].offset = 4095, sent[2].size = 1;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 3, sent, 0, NULL), AEE_SUCCESS);
    CHECK_IS(dspqueue_read_noblock(p.dsp, &flags, 2, &n, got, 0, NULL, NULL), AEE_EBADPARM);
    CHECK_IS(dspqueue_read_noblock(p.dsp, &flags, 3, &n, got, 0, NULL, NULL), AEE_SUCCESS);
    CHECK(n == 3 && flags == (DSPQUEUE_PACKET_FLAG_USER_READY | DSPQUEUE_PACKET_FLAG_BUFFERS));
    CHECK(got[0].fd == 7 && got[0].ptr == of_dsp && got[0].size == 4096 && got[0].flags == sent[0].flags);
    CHECK(got[1].ptr == of_dsp + 128 && got[1].size == 3968 && got[1].offset == 128);
    CHECK(got[2].ptr == of_dsp + 4095 && got[2].size == 1);
    /* Nothing of a refused packet is written. */
    sent[2].size = 2;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 3, sent, 0, NULL), AEE_EBADPARM);
    sent[2].offset = 0xffffffff, sent[2].size = 0xffffffff;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 3, sent, 0, NULL), AEE_EBADPARM);
    sent[2].offset = 8, sent[2].size = 0;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 3, sent, 0, NULL), AEE_EBADPARM);
    sent[2].offset = 0, sent[2].fd = 8;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 3, sent, 0, NULL), AEE_ENOSUCHMAP);
    CHECK_IS(read_any_noblock(p.dsp), AEE_EWOULDBLOCK);
    pair_close(&p);
}

static void references(void) {
    static uint8_t memory[4096];
    struct pair p = pair_open(256, 256, none, none);
    struct dspqueue_buffer ref[2] = {{.fd = 7, .flags = DSPQUEUE_BUFFER_FLAG_REF}, {.fd = 9}};
    struct dspqueue_buffer deref = {.fd = 7, .flags = DSPQUEUE_BUFFER_FLAG_DEREF};
    struct dspqueue_buffer got;
    fake_map(7, memory, memory, sizeof memory);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 1, ref, 0, NULL), AEE_SUCCESS);
    CHECK(fake_refs(7) == 1);
    CHECK_IS(dspqueue_read_noblock(p.dsp, NULL, 1, NULL, &got, 0, NULL, NULL), AEE_SUCCESS);
    CHECK(fake_refs(7) == 2); /* the reader's own, which is the same table here */
    CHECK_IS(dspqueue_write_noblock(p.dsp, 0, 1, &deref, 0, NULL), AEE_SUCCESS);
    CHECK_IS(dspqueue_read_noblock(p.cpu, NULL, 1, NULL, &got, 0, NULL, NULL), AEE_SUCCESS);
    CHECK(fake_refs(7) == 0);
    /* A packet that fails leaves no reference: its second buffer is not mapped; then the queue is full. */
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 2, ref, 0, NULL), AEE_ENOSUCHMAP);
    CHECK(fake_refs(7) == 0);
    ref[0].flags |= DSPQUEUE_BUFFER_FLAG_DEREF;
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 1, ref, 0, NULL), AEE_EBADPARM);
    ref[0].flags = DSPQUEUE_BUFFER_FLAG_REF;
    int n = 0;
    while (dspqueue_write(p.cpu, 0, 1, ref, 0, NULL, 0) == AEE_SUCCESS) {
        n++;
    }
    CHECK(n > 0 && fake_refs(7) == n);
    pair_close(&p);
}

/* A time-out ends when it should: never before, and within 20 %, which a busy machine lets one see now and then. */
static void time_outs(void) {
    struct pair p = pair_open(256, 256, none, none);
    uint8_t message[240] = {0};
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 240, message), AEE_SUCCESS);
    for (uint32_t us = 1000; us <= 100000; us *= 10) {
        bool punctual[3] = {false};
        for (uint64_t begin = now_us(); !(punctual[0] && punctual[1] && punctual[2]);) {
            uint64_t times[4] = {now_us()};
            CHECK(times[0] - begin < 60000000);
            CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 0, NULL, us), AEE_EEXPIRED);
            times[1] = now_us();
            CHECK_IS(read_any(p.cpu, us), AEE_EEXPIRED);
            times[2] = now_us();
            CHECK_IS(dspqueue_peek(p.cpu, NULL, NULL, NULL, us), AEE_EEXPIRED);
            times[3] = now_us();
            for (uint32_t i = 0; i < 3; i++) {
                uint64_t took = times[i + 1] - times[i];
                CHECK(took + 1 >= us);
                punctual[i] |= took * 5 <= us * 6;
            }
        }
    }
    CHECK_IS(read_any(p.cpu, 0), AEE_EEXPIRED);
    CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 0, NULL, 0), AEE_EEXPIRED);
    pair_close(&p);
}

static void early_wakeup(void) {
    struct pair p = pair_open(256, 256, none, none);
    uint32_t flags = 0, bytes = 0;
    CHECK_IS(dspqueue_write_early_wakeup_noblock(p.dsp, 0, 0), AEE_SUCCESS);
    CHECK_IS(dspqueue_peek_noblock(p.cpu, &flags, NULL, &bytes), AEE_SUCCESS);
    CHECK(flags & DSPQUEUE_PACKET_FLAG_WAKEUP && bytes == 0);
    /* Nothing follows: about a millisecond, then it is a miss. */
    uint64_t begin = now_us();
    CHECK_IS(read_any_noblock(p.cpu), AEE_EWOULDBLOCK);
    CHECK(now_us() - begin >= 999);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_EARLY_WAKEUP_WAIT_TIME) >= 999);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_EARLY_WAKEUP_MISSES) == 1);
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_EARLY_WAKEUP_MISSES) == 0);
    /* The packet is there: the reader gets it, and never sees the wake-up. */
    CHECK_IS(dspqueue_write_early_wakeup_noblock(p.dsp, 2000, DSPQUEUE_PACKET_FLAG_MESSAGE), AEE_SUCCESS);
    write_text(p.dsp, "announced");
    read_text(p.cpu, "announced");
    CHECK(stat_of(p.cpu, DSPQUEUE_STAT_EARLY_WAKEUP_MISSES) == 0);
    /* Any number of them does not hold a reader. */
    while (dspqueue_write_early_wakeup_noblock(p.dsp, 100, 0) == AEE_SUCCESS) {
    }
    CHECK_IS(read_any(p.cpu, 10000), AEE_EEXPIRED);
    CHECK_IS(read_any_noblock(p.cpu), AEE_EWOULDBLOCK);
    pair_close(&p);
}

static void damage(void) {
    struct pair p = pair_open(256, 256, none, none);
    uint8_t *requests = (uint8_t *) p.memory + QUEUE_DATA;
    uint64_t value;
    write_text(p.cpu, "soon broken");
    requests[0] ^= 0x80; /* its length */
    uint32_t lines = atomic_load(&fake_farf_lines);
    CHECK_IS(read_any_noblock(p.dsp), AEE_EBADITEM);
    CHECK_IS(read_any(p.dsp, DSPQUEUE_TIMEOUT_NONE), AEE_EBADITEM);
    CHECK_IS(dspqueue_peek_noblock(p.dsp, NULL, NULL, NULL), AEE_EBADITEM);
    CHECK(atomic_load(&fake_farf_lines) == lines + 1);
    requests[0] ^= 0x80;
    read_text(p.dsp, "soon broken");
    atomic_store(&p.memory->request.read_to, 12); /* no position */
    CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 0, NULL, DSPQUEUE_TIMEOUT_NONE), AEE_EBADSTATE);
    CHECK_IS(dspqueue_get_stat(p.cpu, DSPQUEUE_STAT_WRITE_QUEUE_BYTES, &value), AEE_EBADSTATE);
    atomic_store(&p.memory->request.written_to, 256);
    CHECK_IS(read_any(p.dsp, DSPQUEUE_TIMEOUT_NONE), AEE_EBADITEM);
    pair_close(&p);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"messages", messages}, {"peek", peek}, {"full", full}, {"stuck", stuck}, {"bad_parameters", bad_parameters},
        {"closed_handle", closed_handle}, {"reopened", reopened}, {"many_queues", many_queues}, {"buffers", buffers},
        {"references", references}, {"time_outs", time_outs}, {"early_wakeup", early_wakeup}, {"damage", damage}, {0},
    };
    return run_case(cases, argc, argv);
}
