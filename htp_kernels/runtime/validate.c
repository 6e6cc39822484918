/*
 * Every field of a batch, before any op runs. The message comes from outside: all arithmetic on its numbers is in 64
 * bits, where the sum of two u32 products cannot wrap, and nothing is dereferenced before its place is proved.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "htp-tiles.h"

#define MAX_ELEMENTS 0x7fffffffull

struct type_info {
    uint16_t elements, bytes, align; /* of a block */
};

static struct type_info type_info(uint32_t type) {
    switch (type) {
    case HTP_F32:
    case HTP_I32:
        return (struct type_info){1, 4, 4};
    case HTP_F16:
        return (struct type_info){1, 2, 2};
    case HTP_I64:
        return (struct type_info){1, 8, 8};
    case HTP_Q4_0:
    case HTP_IQ4_NL:
        return (struct type_info){32, 18, 2};
    case HTP_Q4_1:
        return (struct type_info){32, 20, 2};
    case HTP_Q8_0:
        return (struct type_info){32, 34, 2};
    case HTP_Q4_K:
        return (struct type_info){256, 144, 2};
    case HTP_Q5_K:
        return (struct type_info){256, 176, 2};
    case HTP_Q6_K:
        return (struct type_info){256, 210, 2};
    case HTP_MXFP4:
        return (struct type_info){32, 17, 1};
    default:
        return (struct type_info){0, 0, 0};
    }
}

enum htp_status htp_refuse(struct htp_ctx *ctx, enum htp_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->detail, sizeof ctx->detail, format, args);
    va_end(args);
    return status;
}

/* One dimension of a tensor in bytes: n steps of `step`. */
static uint64_t span(uint32_t n, uint64_t step) {
    return (n - 1ull) * step;
}

static enum htp_status bad_tensor(struct htp_ctx *ctx, uint32_t index, const char *field, uint64_t is,
                                  const char *must) {
    return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: %s is %llu, must be %s", index, field, (unsigned long long) is,
                      must);
}

/* ne, nb and size of a tile type: exactly the layout of htp-tiles.h. */
static enum htp_status check_tiles(struct htp_ctx *ctx, const struct htp_wire_tensor *t, uint32_t index) {
    struct htp_tile_layout want = htp_tile_layout(t->type, t->ne);
    if (t->ne[0] % HTP_TILE_K) {
        return bad_tensor(ctx, index, "ne[0]", t->ne[0], "a multiple of 32");
    }
    for (uint32_t d = 0; d < HTP_MAX_DIMS; d++) {
        if (t->nb[d] != want.nb[d]) {
            return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: nb[%u] is %u, must be %llu in a tile layout", index, d,
                              t->nb[d], (unsigned long long) want.nb[d]);
        }
    }
    if (t->size != want.end) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: size is %u, must be %llu by its tile layout", index,
                          t->size, (unsigned long long) want.end);
    }
    return HTP_OK;
}

static enum htp_status check_strides(struct htp_ctx *ctx, const struct htp_wire_tensor *t, uint32_t index,
                                     struct type_info info) {
    if (t->nb[0] != info.bytes) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: nb[0] is %u, must be %u for type %u", index, t->nb[0],
                          info.bytes, t->type);
    }
    if (t->ne[0] % info.elements) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: ne[0] is %u, must be a multiple of %u for type %u", index,
                          t->ne[0], info.elements, t->type);
    }
    /* ne and nb are below 2^32, so four such products stay below 2^64 only if each is checked: size is a u32. */
    uint64_t end = (uint64_t) t->ne[0] / info.elements * info.bytes;
    for (uint32_t d = 1; d < HTP_MAX_DIMS && end <= UINT32_MAX; d++) {
        if (t->ne[d] > 1) {
            if (t->nb[d] % info.align) {
                return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: nb[%u] is %u, must be a multiple of %u", index, d,
                                  t->nb[d], info.align);
            }
            end += span(t->ne[d], t->nb[d]);
        }
    }
    bool empty = !t->ne[0] || !t->ne[1] || !t->ne[2] || !t->ne[3];
    if (empty) {
        end = 0;
    }
    if (end != t->size) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: size is %u, must be %llu by its ne and nb", index, t->size,
                          (unsigned long long) end);
    }
    return HTP_OK;
}

static enum htp_status check_elements(struct htp_ctx *ctx, const struct htp_wire_tensor *t, uint32_t index) {
    /* Zeros apart: the rows of an empty tensor must not overflow either. */
    uint64_t n = 1;
    for (uint32_t d = 0; d < HTP_MAX_DIMS; d++) {
        n *= t->ne[d] ? t->ne[d] : 1;
        if (n > MAX_ELEMENTS) {
            return bad_tensor(ctx, index, "the number of elements", n, "below 2^31");
        }
    }
    return HTP_OK;
}

/* Fences and other tensors never share a buffer; a fence is one whole line. */
static enum htp_status check_fence(struct htp_ctx *ctx, const struct batch *batch, const struct htp_wire_tensor *t,
                                   uint32_t index) {
    bool is_fence = t->flags & HTP_TENSOR_FENCE;
    if (is_fence != !!(batch->bufs[t->bi].flags & HTP_BUF_FENCE)) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: %s", index,
                          is_fence ? "is a fence, but its buffer holds none"
                                   : "is no fence, but its buffer holds only such");
    }
    if (is_fence
        && (t->type != HTP_I32 || t->size != HTP_FENCE_BYTES || t->ne[0] != HTP_FENCE_BYTES / 4
            || t->data % HTP_FENCE_BYTES)) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "tensor %u: a fence is one aligned line of %u bytes, type I32", index,
                          HTP_FENCE_BYTES);
    }
    return HTP_OK;
}

/* One buffer named twice is named alike: otherwise a tensor could lie over a fence. */
static enum htp_status check_buffer_flags(struct htp_ctx *ctx, const struct batch *batch, uint32_t index) {
    const struct htp_buf *buf = &batch->bufs[index];
    if (buf->flags & ~(uint32_t) HTP_BUF_FENCE) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "buffer %u: flags is %u, must be made of enum htp_buf_flag", index,
                          buf->flags);
    }
    for (uint32_t i = 0; i < index; i++) {
        if (batch->bufs[i].fd == buf->fd && batch->bufs[i].flags != buf->flags) {
            return htp_refuse(ctx, HTP_INVAL_PARAMS, "buffers %u and %u: one handle with different flags", i, index);
        }
    }
    return HTP_OK;
}

static enum htp_status check_tensor(struct htp_ctx *ctx, const struct batch *batch, uint32_t index) {
    const struct htp_wire_tensor *t = &batch->tensors[index];
    struct type_info info = type_info(t->type);
    bool tiled = htp_tile_bytes(t->type) != 0;
    if (!info.bytes && !tiled) {
        return bad_tensor(ctx, index, "type", t->type, "a type of enum htp_type that this version knows");
    }
    if (t->flags & ~(uint32_t) (HTP_TENSOR_WEIGHT | HTP_TENSOR_REPACK | HTP_TENSOR_FENCE)) {
        return bad_tensor(ctx, index, "flags", t->flags, "made of enum htp_tensor_flag");
    }
    if (t->ti != index) {
        return bad_tensor(ctx, index, "ti", t->ti, "the tensor's own index");
    }
    if (t->bi >= batch->request->n_bufs) {
        return bad_tensor(ctx, index, "bi", t->bi, "below n_bufs");
    }
    const struct htp_buf *buf = &batch->bufs[t->bi];
    if (t->data < buf->base || t->data - buf->base > buf->size || t->size > buf->size - (t->data - buf->base)) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS,
                          "tensor %u: data %llu, size %u leaves buffer %u (%llu bytes from %llu)", index,
                          (unsigned long long) t->data, t->size, t->bi, (unsigned long long) buf->size,
                          (unsigned long long) buf->base);
    }
    if (t->data % (tiled ? 128 : info.align)) {
        return bad_tensor(ctx, index, "data", t->data, tiled ? "a multiple of 128" : "aligned to the type");
    }
    enum htp_status status = check_elements(ctx, t, index);
    if (status != HTP_OK) {
        return status;
    }
    status = tiled ? check_tiles(ctx, t, index) : check_strides(ctx, t, index, info);
    return status == HTP_OK ? check_fence(ctx, batch, t, index) : status;
}

static void take_tensor(struct htp_ctx *ctx, const struct batch *batch, uint32_t index) {
    const struct htp_wire_tensor *t = &batch->tensors[index];
    struct htp_tensor *out = &ctx->tensors[index];
    out->data = batch->address[t->bi] + (t->data - batch->bufs[t->bi].base);
    out->type = t->type;
    out->flags = t->flags;
    out->size = t->size;
    out->index = index;
    memcpy(out->ne, t->ne, sizeof out->ne);
    memcpy(out->nb, t->nb, sizeof out->nb);
}

static enum htp_status check_request(struct htp_ctx *ctx, struct batch *batch, const uint8_t *message, size_t bytes) {
    const struct htp_request *r = (const struct htp_request *) message;
    if (bytes < sizeof *r) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "the batch has %zu bytes, its header alone has %zu", bytes, sizeof *r);
    }
    batch->request = r;
    batch->failing_op = r->n_ops;
    if (r->magic != HTP_MAGIC || r->version != HTP_VERSION) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "magic 0x%08x, version %u: this server takes 0x%08x, %u", r->magic,
                          r->version, HTP_MAGIC, HTP_VERSION);
    }
    if (r->n_bufs > HTP_MAX_BUFS || r->n_tensors > HTP_MAX_TENSORS || r->n_ops > HTP_MAX_OPS
        || r->n_traces > HTP_MAX_TRACES) {
        return htp_refuse(
            ctx, HTP_INVAL_PARAMS, "%u buffers, %u tensors, %u ops, %u traces: the limits are %u, %u, %u, %u",
            r->n_bufs, r->n_tensors, r->n_ops, r->n_traces, HTP_MAX_BUFS, HTP_MAX_TENSORS, HTP_MAX_OPS, HTP_MAX_TRACES);
    }
    size_t want = sizeof *r + r->n_bufs * sizeof(struct htp_buf) + r->n_tensors * sizeof(struct htp_wire_tensor)
                  + r->n_ops * sizeof(struct htp_wire_op);
    if (bytes != want) {
        return htp_refuse(ctx, HTP_INVAL_PARAMS, "the batch has %zu bytes, its counts ask for %zu", bytes, want);
    }
    batch->bufs = (const struct htp_buf *) (message + sizeof *r);
    batch->tensors = (const struct htp_wire_tensor *) (batch->bufs + r->n_bufs);
    batch->ops = (const struct htp_wire_op *) (batch->tensors + r->n_tensors);
    return HTP_OK;
}

enum htp_status htp_validate(struct htp_ctx *ctx, struct batch *batch, const void *message, size_t bytes) {
    enum htp_status status = check_request(ctx, batch, message, bytes);
    if (status != HTP_OK) {
        return status;
    }
    const struct htp_request *r = batch->request;
    for (uint32_t i = 0; i < r->n_bufs && status == HTP_OK; i++) {
        status = check_buffer_flags(ctx, batch, i);
        if (status == HTP_OK) {
            status = htp_map(ctx, &batch->bufs[i], i, &batch->address[i]);
        }
    }
    for (uint32_t i = 0; i < r->n_tensors && status == HTP_OK; i++) {
        status = check_tensor(ctx, batch, i);
        if (status == HTP_OK) {
            take_tensor(ctx, batch, i);
        }
    }
    for (uint32_t i = 0; i < r->n_ops && status == HTP_OK; i++) {
        status = htp_validate_op(ctx, batch, i);
        if (status != HTP_OK) {
            batch->failing_op = i;
        }
    }
    return status;
}
