"""C helpers that every stub or skel starts with: static, so that any number of them can be linked together.

Errors stick: the first one is kept, what follows does nothing harmful, and the method looks once before it calls.
"""

STUB = """\
/* The buffers of one call. */
struct idl_wire {
    remote_arg *in, *in_end, *out, *out_end; /* free places */
    struct idl_block *blocks;
    int error;
};

static inline void idl_bind(struct idl_wire *w, remote_arg **place, remote_arg *end, const void *data, size_t bytes)
{
    if (*place == end) {
        w->error = AEE_EUNSUPPORTED; /* the scalars of a call count up to 255 */
        return;
    }
    (*place)->buf.pv = (void *) data;
    (*place)->buf.nLen = bytes;
    (*place)++;
}

static inline bool idl_length(struct idl_wire *w, uint8_t *length_at, const void *data, int length, size_t size)
{
    if (w->error)
        return false;
    if (length < 0 || (length > 0 && !data) || (size_t) length > SIZE_MAX / size) {
        w->error = AEE_EBADPARM;
        return false;
    }
    memcpy(length_at, &length, sizeof(length));
    return true;
}

__attribute__((unused)) static void idl_send(struct idl_wire *w, uint8_t *length_at, const void *data, int length,
                                             size_t size)
{
    if (idl_length(w, length_at, data, length, size))
        idl_bind(w, &w->in, w->in_end, data, size * (size_t) length);
}

__attribute__((unused)) static void idl_receive(struct idl_wire *w, uint8_t *length_at, void *data, int length,
                                                size_t size)
{
    if (idl_length(w, length_at, data, length, size))
        idl_bind(w, &w->out, w->out_end, data, size * (size_t) length);
}

/* A string goes with its 0. */
__attribute__((unused)) static void idl_send_string(struct idl_wire *w, uint8_t *length_at, const char *text)
{
    size_t length = text ? strlen(text) + 1 : 0;
    if (!length || length > INT_MAX)
        w->error = AEE_EBADPARM;
    else
        idl_send(w, length_at, text, (int) length, 1);
}

__attribute__((unused)) static void idl_send_wstring(struct idl_wire *w, uint8_t *length_at, const _wchar_t *text)
{
    size_t length = 0;
    while (text && text[length++] != 0)
        ;
    if (!length || length > INT_MAX)
        w->error = AEE_EBADPARM;
    else
        idl_send(w, length_at, text, (int) length, sizeof(*text));
}
"""

SKEL = """\
/* The buffers of one call that have not been looked at yet. Nothing in them is trusted. */
struct idl_wire {
    remote_arg *in, *in_end, *out, *out_end;
    struct idl_block *blocks;
    int error;
};

/* The next buffer of `length` elements, where the wire gives a length that its buffer has; else NULL and an error. */
static void *idl_next(struct idl_wire *w, remote_arg **place, remote_arg *end, const uint8_t *length_at, size_t size,
                      int *length)
{
    uint32_t wanted;
    *length = 0;
    if (w->error)
        return NULL;
    memcpy(&wanted, length_at, sizeof(wanted));
    if (*place == end || wanted > INT_MAX || wanted > (*place)->buf.nLen / size) {
        w->error = AEE_EBADPARM;
        return NULL;
    }
    *length = (int) wanted;
    return (*place)++->buf.pv;
}

__attribute__((unused)) static void *idl_take(struct idl_wire *w, const uint8_t *length_at, size_t size, int *length)
{
    return idl_next(w, &w->in, w->in_end, length_at, size, length);
}

__attribute__((unused)) static void *idl_give(struct idl_wire *w, const uint8_t *length_at, size_t size, int *length)
{
    return idl_next(w, &w->out, w->out_end, length_at, size, length);
}

__attribute__((unused)) static void *idl_take_string(struct idl_wire *w, const uint8_t *length_at, size_t size,
                                                     int *length)
{
    static const uint16_t nothing;
    const char *text = idl_take(w, length_at, size, length);
    if (!w->error && (*length == 0 || memcmp(text + size * (size_t) (*length - 1), &nothing, size) != 0))
        w->error = AEE_EBADPARM;
    return (void *) text;
}

/* What goes in and comes back: a buffer each way, the second not smaller than the first. */
__attribute__((unused)) static void *idl_carry(struct idl_wire *w, const void *from, int count,
                                               const uint8_t *length_at, size_t size, int *length)
{
    void *data = idl_give(w, length_at, size, length);
    if (!w->error && *length < count)
        w->error = AEE_EBADPARM;
    if (!w->error && count)
        memmove(data, from, size * (size_t) count);
    return data;
}
"""

# Sequences inside of sequences and structs: room for the records, and copies that wait until the call has been made.
NESTED = """\
struct idl_block {
    struct idl_block *next;
    void *to; /* a copy to be made when the call has succeeded, or NULL */
    const void *from;
    size_t bytes;
    uint64_t data[];
};

__attribute__((unused)) static const uint16_t idl_zero; /* what a string that comes back ends with */

static struct idl_block *idl_block(struct idl_wire *w, size_t count, size_t size)
{
    struct idl_block *block = NULL;
    if (count <= (SIZE_MAX - sizeof(*block)) / size)
        block = calloc(1, sizeof(*block) + count * size);
    if (!block) {
        w->error = AEE_ENOMEMORY;
        return NULL;
    }
    block->next = w->blocks;
    w->blocks = block;
    return block;
}

/* Zeroed room for `count` elements; NULL for none, and after any error. */
__attribute__((unused)) static void *idl_room(struct idl_wire *w, int count, size_t size)
{
    struct idl_block *block = w->error || count <= 0 ? NULL : idl_block(w, (size_t) count, size);
    return block ? block->data : NULL;
}

__attribute__((unused)) static void idl_later(struct idl_wire *w, void *to, const void *from, size_t bytes)
{
    struct idl_block *block = w->error ? NULL : idl_block(w, 1, 1);
    if (block) {
        block->to = to;
        block->from = from;
        block->bytes = bytes;
    }
}

static void idl_settle(struct idl_wire *w, bool succeeded)
{
    while (w->blocks) {
        struct idl_block *block = w->blocks;
        w->blocks = block->next;
        if (succeeded && block->to)
            memcpy(block->to, block->from, block->bytes);
        free(block);
    }
}
"""
