/* The session's window: buffers mapped on first use, the least recently used ones unmapped when it is full. */
#include "HAP_mem.h"
#include "context.h"

#define MAP_ALIGN 4096u

static void unmap(struct htp_ctx *ctx, struct mapping *m) {
    HAP_munmap2(m->address, m->size);
    ctx->maps.bytes -= m->size;
    *m = (struct mapping){0};
}

/* Unmaps the mapping that was used longest ago, but none of the batch in work; false where there is none. */
static bool unmap_oldest(struct htp_ctx *ctx) {
    struct mapping *oldest = NULL;
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        struct mapping *m = &ctx->maps.slot[i];
        if (m->address && m->last_batch != ctx->n_batches && (!oldest || m->last_batch < oldest->last_batch)) {
            oldest = m;
        }
    }
    if (oldest) {
        unmap(ctx, oldest);
    }
    return oldest != NULL;
}

static struct mapping *find(struct htp_ctx *ctx, const struct htp_buf *buf) {
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        struct mapping *m = &ctx->maps.slot[i];
        if (m->address && m->handle == buf->fd && m->base == buf->base && m->size >= buf->size) {
            return m;
        }
    }
    return NULL;
}

static struct mapping *free_slot(struct htp_ctx *ctx) {
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        if (!ctx->maps.slot[i].address) {
            return &ctx->maps.slot[i];
        }
    }
    return NULL;
}

static void *map_with_retry(struct htp_ctx *ctx, const struct htp_buf *buf) {
    int prot = HAP_PROT_READ | HAP_PROT_WRITE;
    void *p = HAP_mmap2(NULL, buf->size, prot, 0, (int) buf->fd, (long) buf->base);
    if (p == HAP_MAP_FAILED && unmap_oldest(ctx)) {
        while (unmap_oldest(ctx)) {
        }
        p = HAP_mmap2(NULL, buf->size, prot, 0, (int) buf->fd, (long) buf->base);
    }
    return p == HAP_MAP_FAILED ? NULL : p;
}

enum htp_status htp_map(struct htp_ctx *ctx, const struct htp_buf *buf, uint32_t index, uint8_t **address) {
    struct maps *maps = &ctx->maps;
    if (buf->base % MAP_ALIGN || buf->size == 0 || buf->size > maps->max_bytes) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS,
                          "buffer %u: base %llu, size %llu: base must be a multiple of %u, size 1 to %llu", index,
                          (unsigned long long) buf->base, (unsigned long long) buf->size, MAP_ALIGN,
                          (unsigned long long) maps->max_bytes);
    }
    struct mapping *m = find(ctx, buf);
    if (!m) {
        while ((maps->bytes + buf->size > maps->max_bytes || !free_slot(ctx)) && unmap_oldest(ctx)) {
        }
        m = free_slot(ctx);
        if (!m || maps->bytes + buf->size > maps->max_bytes) {
            return htp_refuse(ctx, HTP_INVAL_PARAMS,
                              "buffer %u: the batch's buffers are larger than the %llu bytes a session maps at a time",
                              index, (unsigned long long) maps->max_bytes);
        }
        void *p = map_with_retry(ctx, buf);
        if (!p) {
            return htp_refuse(ctx, HTP_INVAL_PARAMS,
                              "buffer %u: handle %u has no bytes %llu..%llu that can be mapped", index, buf->fd,
                              (unsigned long long) buf->base, (unsigned long long) (buf->base + buf->size));
        }
        *m = (struct mapping){.address = p, .base = buf->base, .size = buf->size, .handle = buf->fd};
        maps->bytes += buf->size;
    }
    m->last_batch = ctx->n_batches;
    *address = m->address;
    return HTP_OK;
}

void htp_session_unmap(struct htp_ctx *ctx, uint32_t handle) {
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        if (ctx->maps.slot[i].address && ctx->maps.slot[i].handle == handle) {
            unmap(ctx, &ctx->maps.slot[i]);
        }
    }
}

void htp_unmap_all(struct htp_ctx *ctx) {
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        if (ctx->maps.slot[i].address) {
            unmap(ctx, &ctx->maps.slot[i]);
        }
    }
}
