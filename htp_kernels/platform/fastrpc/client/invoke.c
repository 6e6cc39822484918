/* Invocations: arguments into a call slot and back. */
#include <string.h>

#include "handles.h"

#define MAX_BUFFERS (255u + 255u)

struct call {
    struct pd *pd;
    struct fr_slot *slot;
    remote_arg *args;
    uint32_t n_in, n_bufs, n_in_handles, n_out_handles;
    uint8_t *copies; /* where the buffers that are not shared lie */
    bool by_reference[MAX_BUFFERS];
};

static uint64_t aligned(uint64_t n) {
    return (n + FR_ALIGN - 1) & ~(uint64_t) (FR_ALIGN - 1);
}

/* Buffers of rpcmem go by reference; gives how much room copies of the others take. */
static int place(struct call *c, uint64_t *room, const char *who) {
    *room = 0;
    for (uint32_t i = 0; i < c->n_bufs; i++) {
        const remote_buf *b = &c->args[i].buf;
        struct fr_arg *a = &c->slot->args[i];
        *a = (struct fr_arg){.bytes = b->nLen};
        if (b->nLen && !b->pv) {
            return fail(AEE_EBADPARM, who, "argument %u has %zu bytes at NULL", i, b->nLen);
        }
        c->by_reference[i] = !b->nLen || buffer_reference(c->pd, b->pv, b->nLen, &a->region, &a->offset);
        if (!c->by_reference[i]) {
            a->offset = *room;
            *room = aligned(*room + b->nLen);
        }
    }
    return AEE_SUCCESS;
}

static int copy_in(struct call *c, const char *who) {
    uint64_t room = 0, region = 0;
    int aee = place(c, &room, who);
    if (aee) {
        return aee;
    }
    c->copies = c->slot->bytes;
    if (room > FR_INLINE_BYTES && !slot_spill(c->pd, c->slot, room, &c->copies, &region)) {
        return pd_is_dead(c->pd) ? pd_death_code(c->pd, false)
                                 : fail(AEE_ENOMEMORY, who, "no memory for %llu bytes of arguments: use rpcmem buffers",
                                        (unsigned long long) room);
    }
    for (uint32_t i = 0; i < c->n_bufs; i++) {
        struct fr_arg *a = &c->slot->args[i];
        if (!c->by_reference[i]) {
            a->region = region;
        }
        if (!c->by_reference[i] && i < c->n_in) {
            memcpy(c->copies + a->offset, c->args[i].buf.pv, a->bytes);
        }
    }
    for (uint32_t i = c->n_bufs; i < c->n_bufs + c->n_in_handles; i++) {
        c->slot->args[i] = (struct fr_arg){.offset = c->args[i].h64};
    }
    return AEE_SUCCESS;
}

static void copy_out(struct call *c) {
    uint32_t first_out = c->n_bufs + c->n_in_handles;
    for (uint32_t i = c->n_in; i < c->n_bufs; i++) {
        if (!c->by_reference[i]) {
            memcpy(c->args[i].buf.pv, c->copies + c->slot->args[i].offset, c->args[i].buf.nLen);
        }
    }
    for (uint32_t i = first_out; i < first_out + c->n_out_handles; i++) {
        c->args[i].h64 = c->slot->args[i].offset;
    }
}

static int run(struct call *c, uint32_t module, uint32_t scalars, const char *who) {
    int aee = copy_in(c, who);
    if (aee) {
        return aee;
    }
    c->slot->kind = FR_CALL;
    c->slot->module = module;
    c->slot->scalars = scalars;
    c->slot->n_args = REMOTE_SCALARS_LENGTH(scalars);
    aee = slot_run(c->pd, c->slot);
    aee = aee ? aee : c->slot->result;
    if (!aee) { /* as with the real driver, a call that failed gives nothing back */
        copy_out(c);
    }
    return aee;
}

static int invoke(uint64_t handle, uint32_t scalars, remote_arg *args, const char *who) {
    struct use use;
    int aee = AEE_SUCCESS;
    if (!args && REMOTE_SCALARS_LENGTH(scalars)) {
        return fail(AEE_EBADPARM, who, "scalars 0x%x ask for %u arguments, and there are none", scalars,
                    REMOTE_SCALARS_LENGTH(scalars));
    }
    aee = handle_use(handle, &use, who);
    if (aee) {
        return aee;
    }
    struct call c = {.pd = use.pd, .args = args, .n_in = REMOTE_SCALARS_INBUFS(scalars)};
    c.n_bufs = c.n_in + REMOTE_SCALARS_OUTBUFS(scalars);
    c.n_in_handles = REMOTE_SCALARS_INHANDLES(scalars);
    c.n_out_handles = REMOTE_SCALARS_OUTHANDLES(scalars);
    c.slot = slot_take(use.pd, use.name, REMOTE_SCALARS_METHOD(scalars), &aee);
    if (c.slot) {
        aee = run(&c, use.module, scalars, who);
        slot_give(use.pd, c.slot);
        atomic_fetch_add(&fr_counters()->calls, 1);
    }
    handle_unuse(&use);
    return aee;
}

FR_EXPORT int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg *pra) {
    return invoke(h, dwScalars, pra, __func__);
}

FR_EXPORT int remote_handle_invoke(remote_handle h, uint32_t dwScalars, remote_arg *pra) {
    return invoke(h, dwScalars, pra, __func__);
}
