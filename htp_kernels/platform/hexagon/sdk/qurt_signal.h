/* 32 bits that threads set and clear and wait for. Waiting does not clear, but for qurt_allsignal_wait(). */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_SIGNAL_ATTR_WAIT_ANY 0x0
#define QURT_SIGNAL_ATTR_WAIT_ALL 0x1

typedef struct {
    unsigned long long raw; /* the bits, and above them who waits */
} qurt_signal_t;
typedef qurt_signal_t qurt_anysignal_t;
typedef qurt_signal_t qurt_allsignal_t;

void qurt_signal_init(qurt_signal_t *signal);
void qurt_signal_destroy(qurt_signal_t *signal);
void qurt_signal_set(qurt_signal_t *signal, unsigned int mask);
void qurt_signal_clear(qurt_signal_t *signal, unsigned int mask);
unsigned int qurt_signal_get(qurt_signal_t *signal);
/* Give what is set now. */
unsigned int qurt_signal_wait(qurt_signal_t *signal, unsigned int mask, unsigned int attribute);
int qurt_signal_wait_timed(qurt_signal_t *signal, unsigned int mask, unsigned int attribute, unsigned int *signals,
                           unsigned long long int duration_us); /* QURT_ETIMEDOUT */
/* QURT_ECANCEL where the wait is called off, which does not happen here. */
int qurt_signal_wait_cancellable(qurt_signal_t *signal, unsigned int mask, unsigned int attribute,
                                 unsigned int *return_mask);

static inline unsigned int qurt_signal_wait_any(qurt_signal_t *signal, unsigned int mask) {
    return qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ANY);
}
static inline unsigned int qurt_signal_wait_all(qurt_signal_t *signal, unsigned int mask) {
    return qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ALL);
}

static inline void qurt_anysignal_init(qurt_anysignal_t *signal) {
    qurt_signal_init(signal);
}
static inline void qurt_anysignal_destroy(qurt_anysignal_t *signal) {
    qurt_signal_destroy(signal);
}
static inline unsigned int qurt_anysignal_wait(qurt_anysignal_t *signal, unsigned int mask) {
    return qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ANY);
}
/* These give what was set before. */
unsigned int qurt_anysignal_set(qurt_anysignal_t *signal, unsigned int mask);
unsigned int qurt_anysignal_clear(qurt_anysignal_t *signal, unsigned int mask);
static inline unsigned int qurt_anysignal_get(qurt_anysignal_t *signal) {
    return qurt_signal_get(signal);
}

static inline void qurt_allsignal_init(qurt_allsignal_t *signal) {
    qurt_signal_init(signal);
}
static inline void qurt_allsignal_destroy(qurt_allsignal_t *signal) {
    qurt_signal_destroy(signal);
}
static inline void qurt_allsignal_set(qurt_allsignal_t *signal, unsigned int mask) {
    qurt_signal_set(signal, mask);
}
static inline unsigned int qurt_allsignal_get(qurt_allsignal_t *signal) {
    return qurt_signal_get(signal);
}
void qurt_allsignal_wait(qurt_allsignal_t *signal, unsigned int mask);

#ifdef __cplusplus
}
#endif
