/* The rules of the user DMA engine and of the queue over it; argv[1] names the case. Cases that break a rule must die. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../htp_kernels/platform/emu/emu.h"
#include "../../htp_kernels/runtime/context.h"
#include "hexagon_protos.h"

#define DONE (1u << 31)
#define ORDER (1u << 30)
#define TWO_D (1u << 24)
#define N 4096u

struct descriptor {
    uint32_t next, w1, src, dst, type, w5, w6, w7;
};

static uint8_t *src, *dst;
static struct descriptor *d;

static uint32_t low(const void *p) {
    return (uint32_t) (uintptr_t) p;
}

static void need(int truth, const char *what) {
    if (!truth) {
        printf("wrong: %s\n", what);
        exit(1);
    }
}

#define NEED(truth) need(truth, #truth)

static void prepare(void) {
    src = qurt_malloc(1 << 20);
    dst = qurt_malloc(1 << 20);
    d = qurt_malloc(N);
    for (uint32_t i = 0; i < 1 << 20; i++) {
        src[i] = (uint8_t) (i * 7 + i / 251);
    }
    memset(dst, 0, 1 << 20);
}

static void one_d(uint32_t i, uint32_t to, uint32_t from, uint32_t n, uint32_t flags) {
    d[i] = (struct descriptor){.w1 = n | flags, .src = low(src + from), .dst = low(dst + to)};
}

static void chain(uint32_t n) {
    for (uint32_t i = 0; i + 1 < n; i++) {
        d[i].next = low(&d[i + 1]);
    }
}

static void lazy(void) {
    one_d(0, 5, 3, 100, 0);
    Q6_dmstart_A(d);
    NEED(dst[5] == 0 && !(d[0].w1 & DONE));
    src[3] = 99; /* read at completion */
    NEED(Q6_R_dmwait() == 0);
    NEED(dst[5] == 99 && !memcmp(dst + 5, src + 3, 100) && dst[4] == 0 && dst[105] == 0 && d[0].w1 & DONE);
}

static void eager(void) {
    one_d(0, 0, 0, 100, 0);
    Q6_dmstart_A(d);
    NEED(!memcmp(dst, src, 100) && d[0].w1 & DONE && Q6_R_dmpoll() == 0);
}

static void poll(void) {
    for (uint32_t i = 0; i < 3; i++) {
        one_d(i, i * 100, i * 10, 100, 0);
    }
    chain(3);
    Q6_dmstart_A(d);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t state = (uint32_t) Q6_R_dmpoll();
        NEED(d[i].w1 & DONE && (i == 2 || !(d[i + 1].w1 & DONE)));
        NEED(state == (i == 2 ? 0 : (low(&d[i + 1]) | 1)));
    }
}

static void link_appends(void) {
    one_d(0, 0, 0, 10, 0);
    one_d(1, 10, 10, 10, 0);
    one_d(2, 20, 20, 10, 0);
    Q6_dmlink_AA(NULL, &d[0]); /* idle: begins */
    Q6_dmlink_AA(&d[0], &d[1]);
    NEED(d[0].next == low(&d[1]));
    Q6_R_dmwait();
    Q6_dmlink_AA(&d[1], &d[2]); /* idle again: begins with the new one */
    NEED(!(d[2].w1 & DONE));
    Q6_R_dmwait();
    NEED(!memcmp(dst, src, 30) && d[2].w1 & DONE);
}

static void pause_resume(void) {
    one_d(0, 0, 0, 10, 0);
    one_d(1, 10, 10, 10, 0);
    chain(2);
    Q6_dmstart_A(d);
    Q6_R_dmpoll();
    Word32 at = Q6_R_dmpause();
    NEED(Q6_R_dmwait() == 0 && !(d[1].w1 & DONE));
    Q6_dmresume_A((void *) (uintptr_t) (uint32_t) at);
    Q6_R_dmwait();
    NEED(!memcmp(dst, src, 20));
}

/* Eight transfers to one place: prints which of them was the last, and then the order in which they were done. */
static void shuffled(uint32_t flags) {
    char order[9] = "";
    for (uint32_t i = 0; i < 8; i++) {
        src[i] = (uint8_t) i;
        one_d(i, 0, i, 1, flags);
    }
    chain(8);
    dst[0] = 0xff;
    Q6_dmstart_A(d);
    for (uint32_t seen = 0; seen < 8;) {
        for (uint32_t i = 0; i < 8; i++) {
            if (d[i].w1 & DONE && !strchr(order, (int) ('0' + i))) {
                order[seen++] = (char) ('0' + i);
            }
        }
        Q6_R_dmpoll();
    }
    printf("last %u order %s\n", dst[0], order);
}

static void random_order(void) {
    shuffled(0);
}

static void order_bit(void) {
    shuffled(ORDER);
}

static void check_2d(uint32_t rows, uint32_t width, uint32_t from_stride, uint32_t to_stride) {
    for (uint32_t r = 0; r < rows; r++) {
        NEED(!memcmp(dst + r * to_stride, src + r * from_stride, width));
        NEED(dst[r * to_stride + width] == 0);
    }
}

static void two_d(void) {
    d[0] = (struct descriptor){.w1 = TWO_D, .src = low(src), .dst = low(dst), .type = 0};
    d[0].w5 = 100 | 300u << 16;
    d[0].w6 = 128 | 200u << 16;
    Q6_dmstart_A(d);
    Q6_R_dmwait();
    check_2d(300, 100, 128, 200);
}

static void two_d_wide(void) {
    d[0] = (struct descriptor){.w1 = TWO_D | 200, .src = low(src), .dst = low(dst), .type = 9};
    d[0].w5 = 100 | (300u & 0xff) << 24;
    d[0].w6 = 300u >> 8 | 128u << 8;
    Q6_dmstart_A(d);
    Q6_R_dmwait();
    check_2d(300, 100, 128, 200);
}

static void stride_zero(void) {
    d[0] = (struct descriptor){.w1 = TWO_D, .src = low(src), .dst = low(dst), .type = 0, .w5 = 10 | 3u << 16};
    Q6_dmstart_A(d);
    Q6_R_dmwait();
    check_2d(3, 10, 0x10000, 0x10000);
}

/* Rules that must not be broken */

static void outside(void) {
    one_d(0, (1 << 20) - 50, 0, 100, 0);
    Q6_dmstart_A(d);
    Q6_R_dmwait();
}

static void from_stack(void) {
    uint8_t here[64];
    dma_push(htp_dma_create(), dst, here, 64, 64, 64, 1);
}

static void busy(void) {
    one_d(0, 0, 0, 10, 0);
    one_d(1, 0, 0, 10, 0);
    Q6_dmstart_A(&d[0]);
    Q6_dmstart_A(&d[1]);
}

static void misaligned(void) {
    Q6_dmstart_A((uint8_t *) d + 4);
}

static void unknown_type(void) {
    d[0] = (struct descriptor){.w1 = TWO_D, .src = low(src), .dst = low(dst), .type = 3};
    Q6_dmstart_A(d);
    Q6_R_dmwait();
}

static void compressed(void) {
    one_d(0, 0, 0, 10, 1u << 26);
    Q6_dmstart_A(d);
    Q6_R_dmwait();
}

static void too_many(void) {
    struct dma_queue *q = htp_dma_create();
    for (uint32_t i = 0; i < DMA_QUEUE_DEPTH + 1; i++) {
        dma_push(q, dst, src, 10, 10, 10, 1);
    }
}

static void pop_of_nothing(void) {
    dma_pop(htp_dma_create());
}

static void *pop_it(void *q) {
    dma_pop(q);
    return NULL;
}

static void foreign_pop(void) {
    struct dma_queue *q = htp_dma_create();
    pthread_t thread;
    dma_push(q, dst, src, 10, 10, 10, 1);
    pthread_create(&thread, NULL, pop_it, q);
    pthread_join(thread, NULL);
}

/* The queue */

static void fifo(void) {
    struct dma_queue *q = htp_dma_create();
    uint64_t transfers = 0, bytes = 0;
    for (uint32_t round = 0; round < 20; round++) {
        memset(dst, 0, N);
        dma_push(q, dst, src, 0, 0, 0, 0);
        for (uint32_t i = 0; i < DMA_QUEUE_DEPTH - 1; i++) {
            dma_push(q, dst + i * 32, src + i * 16, 16, 8, 8, 2);
        }
        dma_pop(q); /* of nothing: at once */
        for (uint32_t i = 0; i < DMA_QUEUE_DEPTH - 1; i++) {
            dma_pop(q);
            NEED(!memcmp(dst + i * 32, src + i * 16, 8) && !memcmp(dst + i * 32 + 16, src + i * 16 + 8, 8));
        }
    }
    htp_dma_stats(q, &transfers, &bytes);
    NEED(transfers == 20 * (DMA_QUEUE_DEPTH - 1) && bytes == transfers * 16 && htp_dma_drain(q) == 0);
}

static void drain(void) {
    struct dma_queue *q = htp_dma_create();
    dma_push(q, dst, src, 10, 10, 10, 1);
    dma_push(q, dst + 10, src + 10, 10, 10, 10, 1);
    NEED(htp_dma_drain(q) == 2 && !memcmp(dst, src, 20));
}

static void large_row(void) {
    uint32_t bytes = (33u << 20) + 5;
    uint8_t *from = qurt_malloc(bytes), *to = qurt_malloc(bytes);
    struct dma_queue *q = htp_dma_create();
    for (uint32_t i = 0; i < bytes; i += 1021) {
        from[i] = (uint8_t) (i / 1021 + 1);
    }
    dma_push(q, to, from, bytes, bytes, bytes, 1);
    dma_pop(q);
    NEED(!memcmp(to, from, bytes));
}

/* Strides, widths and row counts on both sides of what a descriptor of either type holds. */
static void limits(void) {
    static const uint32_t cases[][4] = {/* rows, width, from stride, to stride */
                                        {3, 65535, 65535, 65536}, {3, 65536, 70000, 65537}, {70000, 2, 3, 4},
                                        {2, 100, 0x1000000, 0x1000001}, {200, 5, 65536, 5}};
    uint8_t *from = qurt_malloc(40u << 20), *to = qurt_malloc(40u << 20);
    struct dma_queue *q = htp_dma_create();
    for (uint32_t i = 0; i < 40u << 20; i++) {
        from[i] = (uint8_t) (i * 5 + (i >> 8));
    }
    for (uint32_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const uint32_t *v = cases[c];
        memset(to, 0xee, 40u << 20);
        dma_push(q, to, from, v[3], v[2], v[1], v[0]);
        dma_pop(q);
        for (uint32_t r = 0; r < v[0]; r++) {
            NEED(!memcmp(to + (size_t) r * v[3], from + (size_t) r * v[2], v[1]));
            NEED(v[3] == v[1] || to[(size_t) r * v[3] + v[1]] == 0xee);
        }
    }
}

struct named {
    const char *name;
    void (*run)(void);
};

static const struct named cases[] = {
    {"lazy", lazy}, {"eager", eager}, {"poll", poll}, {"link", link_appends}, {"pause", pause_resume},
    {"random", random_order}, {"order", order_bit}, {"two_d", two_d}, {"two_d_wide", two_d_wide},
    {"stride_zero", stride_zero}, {"outside", outside}, {"from_stack", from_stack}, {"busy", busy},
    {"misaligned", misaligned}, {"unknown_type", unknown_type}, {"compressed", compressed}, {"too_many", too_many},
    {"pop_of_nothing", pop_of_nothing}, {"foreign_pop", foreign_pop}, {"fifo", fifo}, {"drain", drain},
    {"large_row", large_row}, {"limits", limits},
};

int main(int argc, char **argv) {
    const char *wrong = emu_init();
    if (wrong) {
        printf("%s\n", wrong);
        return 2;
    }
    prepare();
    for (uint32_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return 3;
}
