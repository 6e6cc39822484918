/* One queue to several domains: a queue to each, behind one handle. queue-write.c writes to all, queue-read.c reads
 * from any. */
#include "queue-multi.h"

#include <stdlib.h>
#include <string.h>

#include "../client/client.h"
#include "AEEStdErr.h"
#include "queue.h"

#define MAX_CONTEXTS 32u
#define MAX_DOMAINS 16u

struct context {
    uint32_t n; /* domains; 0: free */
    uint32_t domains[MAX_DOMAINS];
    struct pd *pds[MAX_DOMAINS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context contexts[MAX_CONTEXTS]; /* the context's number is the index + 1 */

static bool has_duplicates(const uint32_t *domains, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (domains[i] == domains[j]) {
                return true;
            }
        }
    }
    return false;
}

static void release(struct context *context) {
    while (context->n > 0) {
        pd_release(context->pds[--context->n]);
    }
}

static int start(struct context *context, const uint32_t *domains, uint32_t n) {
    int error = AEE_SUCCESS;
    while (context->n < n) {
        uint32_t i = context->n;
        context->domains[i] = domains[i];
        context->pds[i] = pd_for_domain((int) domains[i], &error);
        if (!context->pds[i]) {
            release(context);
            return error;
        }
        context->n++;
    }
    return AEE_SUCCESS;
}

int context_create(fastrpc_context_create *request) {
    const uint32_t *domains = request->effec_domain_ids;
    uint32_t n = request->num_domain_ids;
    if (!domains || n == 0 || n > MAX_DOMAINS || has_duplicates(domains, n)) {
        fr_farf(FR_ERROR, "FASTRPC_CONTEXT_CREATE: %u domains at %p: 1 to %u, each once", n, (const void *) domains,
                MAX_DOMAINS);
        return AEE_EBADPARM;
    }
    int error = AEE_ENOMEMORY;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < MAX_CONTEXTS && error == AEE_ENOMEMORY; i++) {
        if (contexts[i].n == 0) {
            error = start(&contexts[i], domains, n);
            request->ctx = i + 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Under the lock; NULL: there is no such context. */
static struct context *find(uint64_t ctx) {
    if (ctx == 0 || ctx > MAX_CONTEXTS || contexts[ctx - 1].n == 0) {
        fr_farf(FR_ERROR, "%llu is no context of FASTRPC_CONTEXT_CREATE", (unsigned long long) ctx);
        return NULL;
    }
    return &contexts[ctx - 1];
}

int context_destroy(uint64_t ctx) {
    pthread_mutex_lock(&lock);
    struct context *context = find(ctx);
    if (context) {
        release(context);
    }
    pthread_mutex_unlock(&lock);
    return context ? AEE_SUCCESS : AEE_EBADPARM;
}

static uint32_t domains_of(uint64_t ctx, uint32_t domains[MAX_DOMAINS]) {
    uint32_t n = 0;
    pthread_mutex_lock(&lock);
    struct context *context = find(ctx);
    if (context) {
        n = context->n;
        memcpy(domains, context->domains, sizeof context->domains);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static int create_part(const dspqueue_create_req *request, uint32_t domain, dspqueue_t *part, uint64_t *id) {
    int error = dspqueue_create((int) domain, 0, request->req_queue_size, request->resp_queue_size,
                                request->packet_callback, request->error_callback, request->callback_context, part);
    return error ? error : dspqueue_export(*part, id);
}

static int create(dspqueue_create_req *request) {
    uint32_t domains[MAX_DOMAINS], n = domains_of(request->ctx, domains);
    if (!n || !request->ids || request->num_ids < n || request->flags || request->priority) {
        fr_farf(FR_ERROR, "dspqueue_request: a context of %u domains, room for %u ids, flags 0x%llx, priority %u", n,
                request->num_ids, (unsigned long long) request->flags, request->priority);
        return AEE_EBADPARM;
    }
    struct queue_end end = {.parts = calloc(n, sizeof(dspqueue_t)), .packet_callback = request->packet_callback};
    int error = end.parts ? AEE_SUCCESS : AEE_ENOMEMORY;
    memset(request->ids, 0, request->num_ids * sizeof *request->ids);
    while (!error && end.n_parts < n) {
        error = create_part(request, domains[end.n_parts], &end.parts[end.n_parts], &request->ids[end.n_parts]);
        end.n_parts += !error;
    }
    if (!error) {
        error = queue_open(&end, &request->queue);
    }
    if (error) {
        while (end.n_parts > 0) {
            dspqueue_close(end.parts[--end.n_parts]);
        }
        free(end.parts);
    }
    return error;
}

QUEUE_API int dspqueue_request(dspqueue_request_payload *req) {
    if (!req) {
        return AEE_EBADPARM;
    }
    if (req->id != DSPQUEUE_CREATE) {
        fr_farf(FR_ERROR, "dspqueue_request: request %d is not known: DSPQUEUE_CREATE is", (int) req->id);
        return AEE_EUNSUPPORTED;
    }
    req->create.queue = NULL;
    return create(&req->create);
}
