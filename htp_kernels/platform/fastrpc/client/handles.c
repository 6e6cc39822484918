/* Handles to modules: open, close, and which session each belongs to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

#define MAX_HANDLES 4096u

struct entry {
    struct pd *pd; /* NULL: free */
    char *name;    /* the library's file, for messages */
    uint32_t module, generation;
    uint32_t n_calls; /* under way: the name stays */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[MAX_HANDLES];

/* A value that was closed is not given again soon; below 2^32, as programs keep handles in either width. */
static uint32_t value_of(const struct entry *e) {
    return (e->generation & 0xfffffu) << 12 | (uint32_t) (e - entries);
}

/* The lock is held. */
static struct entry *find(uint64_t handle) {
    struct entry *e = &entries[handle % MAX_HANDLES];
    return handle && e->pd && value_of(e) == handle ? e : NULL;
}

static int no_handle(uint64_t handle, const char *who) {
    return fail(AEE_EINVHANDLE, who,
                "0x%llx is no open handle: it was closed, or never came from remote_handle64_open()",
                (unsigned long long) handle);
}

static uint32_t add(struct pd *pd, const char *file, uint32_t module) {
    uint32_t handle = 0;
    pthread_mutex_lock(&lock);
    for (struct entry *e = entries; e < entries + MAX_HANDLES && !handle; e++) {
        if (!e->pd && !e->n_calls) {
            e->pd = pd;
            e->name = strdup(file);
            e->module = module;
            e->generation++;
            handle = value_of(e);
        }
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

int handle_use(uint64_t handle, struct use *use, const char *who) {
    pthread_mutex_lock(&lock);
    struct entry *e = find(handle);
    if (e) {
        e->n_calls++;
        *use = (struct use){e->pd, e->name, e->module, (uint32_t) (e - entries)};
    }
    pthread_mutex_unlock(&lock);
    return e ? AEE_SUCCESS : no_handle(handle, who);
}

static void forget(struct entry *e) {
    free(e->name);
    e->name = NULL;
}

void handle_unuse(const struct use *use) {
    struct pd *drop = NULL;
    pthread_mutex_lock(&lock);
    struct entry *e = &entries[use->index];
    if (--e->n_calls == 0 && !e->pd) { /* closed meanwhile: the last call takes the name and the session with it */
        forget(e);
        drop = use->pd;
    }
    pthread_mutex_unlock(&lock);
    if (drop) {
        pd_release(drop);
    }
}

/* Takes the handle out of the table; gives the session where the caller is to release it. */
static struct pd *take_out(struct entry *e) {
    struct pd *pd = e->n_calls ? NULL : e->pd;
    if (pd) {
        forget(e);
    }
    e->pd = NULL;
    return pd;
}

void handles_drop(struct pd *pd) {
    for (uint32_t i = 0; i < MAX_HANDLES; i++) {
        pthread_mutex_lock(&lock);
        struct pd *drop = entries[i].pd == pd ? take_out(&entries[i]) : NULL;
        pthread_mutex_unlock(&lock);
        if (drop) {
            pd_release(drop);
        }
    }
}

/* FR_OPEN takes three texts, one after the other. */
static bool put_text(struct fr_slot *slot, uint32_t *at, const char *text) {
    size_t n = strlen(text) + 1;
    if (n > FR_INLINE_BYTES - *at) {
        return false;
    }
    memcpy(slot->bytes + *at, text, n);
    *at += (uint32_t) n;
    return true;
}

static int open_there(struct pd *pd, const struct module_uri *m, const char *path, const char *uri, uint32_t *module,
                      const char *who) {
    int aee = AEE_SUCCESS;
    uint32_t at = 0;
    struct fr_slot *slot = slot_take(pd, m->file, 0, &aee);
    if (!slot) {
        return aee;
    }
    slot->kind = FR_OPEN;
    if (!put_text(slot, &at, path) || !put_text(slot, &at, m->symbol) || !put_text(slot, &at, uri)) {
        aee = fail(AEE_EBADPARM, who, "a URI of %zu bytes: write a shorter one", strlen(uri));
    } else {
        slot->bytes[at] = 0;
        aee = slot_run(pd, slot);
    }
    if (!aee && slot->result) {
        slot->bytes[FR_INLINE_BYTES - 1] = 0;
        aee = slot->bytes[0] ? fail(slot->result, who, "%s", (const char *) slot->bytes) : slot->result;
    }
    *module = slot->module;
    slot_give(pd, slot);
    return aee;
}

static int open_module(const char *uri, int domain, const struct module_uri *m, uint32_t *handle, const char *who) {
    char path[FR_PATH_BYTES];
    int aee = AEE_SUCCESS;
    uint32_t module = 0;
    struct pd *pd = pd_for_domain(domain, &aee);
    if (!pd) {
        return aee;
    }
    aee = library_find(m->file, path, who);
    if (!aee) {
        aee = open_there(pd, m, path, uri, &module, who);
    }
    if (aee) {
        pd_release_unused(pd);
        return aee;
    }
    *handle = add(pd, m->file, module);
    if (!*handle) {
        pd_release(pd);
        return fail(AEE_EOUTOFHANDLES, who, "%u handles are open: close some", MAX_HANDLES);
    }
    return AEE_SUCCESS;
}

static int open_uri(const char *uri, bool default_domain, uint32_t *handle, const char *who) {
    struct module_uri m;
    if (!uri || !handle) {
        return fail(AEE_EBADPARM, who, "%s is NULL", uri ? "where the handle goes" : "the URI");
    }
    *handle = 0;
    int aee = uri_parse(uri, &m, who);
    if (aee) {
        return aee;
    }
    if (m.domain < 0 && !default_domain) {
        return fail(AEE_EBADPARM, who, "%s names no domain: append &_dom=cdsp", uri);
    }
    return open_module(uri, m.domain < 0 ? FIRST_NPU : m.domain, &m, handle, who);
}

FR_EXPORT int remote_handle64_open(const char *name, remote_handle64 *ph) {
    uint32_t handle = 0;
    int aee = open_uri(name, false, ph ? &handle : NULL, __func__);
    if (ph) {
        *ph = handle;
    }
    return aee;
}

FR_EXPORT int remote_handle_open(const char *name, remote_handle *ph) {
    return open_uri(name, true, ph, __func__);
}

static int close_there(const struct use *use) {
    int aee = AEE_SUCCESS;
    struct fr_slot *slot = slot_take(use->pd, use->name, 1, &aee);
    if (!slot) {
        return aee;
    }
    slot->kind = FR_CLOSE;
    slot->module = use->module;
    aee = slot_run(use->pd, slot);
    aee = aee ? aee : slot->result;
    slot_give(use->pd, slot);
    return aee;
}

/* What the module says to its close is the caller's answer; the handle is closed all the same. */
static int close_handle(uint64_t handle, const char *who) {
    struct use use;
    int aee = handle_use(handle, &use, who);
    if (aee) {
        return aee;
    }
    aee = pd_is_dead(use.pd) ? AEE_SUCCESS : close_there(&use);
    pthread_mutex_lock(&lock);
    struct entry *e = find(handle);
    if (e) {
        take_out(e);
    }
    pthread_mutex_unlock(&lock);
    handle_unuse(&use);
    return e ? aee : no_handle(handle, who);
}

FR_EXPORT int remote_handle64_close(remote_handle64 h) {
    return close_handle(h, __func__);
}

FR_EXPORT int remote_handle_close(remote_handle h) {
    return close_handle(h, __func__);
}

FR_EXPORT int remote_handle64_control(remote_handle64 h, uint32_t req, void *data, uint32_t datalen) {
    struct use use;
    int aee = handle_use(h, &use, __func__);
    if (!aee) {
        aee = domain_control(use.pd->domain, req, data, datalen, __func__);
        handle_unuse(&use);
    }
    return aee;
}

FR_EXPORT int remote_handle_control(uint32_t req, void *data, uint32_t datalen) {
    return domain_control(FIRST_NPU, req, data, datalen, __func__);
}

/* fork(): handles are of the process that opened them. */
static void before_fork(void) {
    pthread_mutex_lock(&lock);
    buffers_fork_lock();
    pd_fork_lock();
}

static void after_fork_in_parent(void) {
    pd_fork_unlock();
    buffers_fork_unlock();
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void) {
    pd_fork_child();
    buffers_fork_unlock();
    memset(entries, 0, sizeof entries);
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void start(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
