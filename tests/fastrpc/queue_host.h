/* For host programs of the queue tests. Public names only; the DSP's part is queue_echo_skel.c. */
#pragma once

#include "AEEStdErr.h"
#include "check.h"
#include "dspqueue.h"
#include "queue_echo.h"
#include "remote.h"

#define FOREVER DSPQUEUE_TIMEOUT_NONE
#define GIVES(call, code) CHECK_EQUAL((unsigned) (call), (unsigned) (code))
#define SUCCEED(call) GIVES(call, AEE_SUCCESS)

struct session {
    int domain;
    remote_handle64 handle;
    dspqueue_t queue;
    uint64_t id;
};

struct callbacks {
    dspqueue_callback_t packet, error;
    void *context;
};

static inline int start(struct session *s, uint32_t number, uint64_t id, uint32_t kind, uint32_t n_threads) {
    struct echo_start in = {id, number, kind, n_threads};
    remote_arg arg = {.buf = {&in, sizeof in}};
    return remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_START, 1, 0), &arg);
}

static inline int stop(struct session *s, uint32_t number) {
    remote_arg arg = {.buf = {&number, sizeof number}};
    return remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_STOP, 1, 0), &arg);
}

/* What a dspqueue function gives there. */
static inline int there(struct session *s, uint32_t what, uint32_t argument) {
    struct echo_call in = {0, what, argument};
    int32_t result = -1;
    remote_arg args[2] = {{.buf = {&in, sizeof in}}, {.buf = {&result, sizeof result}}};
    SUCCEED(remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_CALL, 1, 1), args));
    return result;
}

static inline struct session open_library(int domain, uint32_t session) {
    struct remote_rpc_control_unsigned_module allow = {.domain = domain, .enable = 1};
    remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &allow, sizeof allow);
    char uri[256];
    const char *name = domain == CDSP_DOMAIN_ID ? "cdsp" : "cdsp1";
    struct session s = {.domain = domain + 8 * (int) session};
    snprintf(uri, sizeof uri, ECHO_URI "&_dom=%s&_session=%u", name, session);
    SUCCEED(remote_handle64_open(uri, &s.handle));
    return s;
}

static inline struct session open_session(uint32_t bytes, uint32_t session, struct callbacks here) {
    struct session s = open_library(CDSP_DOMAIN_ID, session);
    SUCCEED(dspqueue_create(s.domain, 0, bytes, bytes, here.packet, here.error, here.context, &s.queue));
    SUCCEED(dspqueue_export(s.queue, &s.id));
    return s;
}

static inline void close_session(struct session *s) {
    SUCCEED(dspqueue_close(s->queue));
    SUCCEED(remote_handle64_close(s->handle));
}

static inline void end_echo(struct session *s) {
    uint8_t end = ECHO_END, got = 0;
    SUCCEED(dspqueue_write(s->queue, 0, 0, NULL, 1, &end, FOREVER));
    SUCCEED(dspqueue_read(s->queue, NULL, 0, NULL, NULL, 1, NULL, &got, FOREVER));
    SUCCEED(stop(s, 0));
}

static const struct callbacks none;
