/* The DSP library of the queue tests, queue_echo_skel.c, and how host programs speak to it. Public names only. */
#pragma once

#include <stdint.h>

#define ECHO_URI "file:///libqueue_echo_skel.so?queue_echo_skel_handle_invoke&_modver=1.0"

enum echo_method {
    ECHO_OPEN,
    ECHO_CLOSE,
    ECHO_START, /* in: struct echo_start */
    ECHO_STOP,  /* closes the queue, once its threads have ended; in: uint32_t number of the queue */
    ECHO_CALL,  /* out: int32, what a call of struct echo_call gave; in: that */
};

enum echo_kind {
    ECHO_THREADS,  /* threads that read, and answer with the same message and buffers */
    ECHO_CALLBACK, /* a packet callback that does */
    ECHO_NOBODY,   /* the queue is open, and that is all */
};

struct echo_start {
    uint64_t queue_id;
    uint32_t number, kind, n_threads;
};

struct echo_call {
    uint32_t number; /* of the queue */
    uint32_t what;   /* enum echo_what */
    uint32_t argument;
};

enum echo_what { ECHO_WRITE, ECHO_READ, ECHO_PEEK, ECHO_IMPORT_AGAIN, ECHO_CREATE, ECHO_POINTER };

/* Messages of one byte are orders; all are answered with themselves. */
#define ECHO_INVERT 'i' /* inverts the bytes of the buffers */
#define ECHO_END 's'    /* the thread ends */
#define ECHO_CRASH 'c'
#define ECHO_ABORT 'a'
#define ECHO_ANNOUNCE 'w' /* an early wake-up comes first */
