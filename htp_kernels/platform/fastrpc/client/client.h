/* Inside the stand-in's library: sessions, each with its protection domain (a process htp-pd). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../shared.h"

/* The library is compiled with hidden visibility: only what bears this mark is a name of it. */
#define FR_EXPORT __attribute__((visibility("default")))

struct pd;

/*
 * The protection domain of a session, started if need be; NULL and a code in *aee where there is none. It lives (at
 * least) until the last pd_release(), unless it dies; a pointer to a dead one stays valid until its release.
 */
struct pd *pd_for_domain(int effective_domain, int *aee);
void pd_release(struct pd *pd);
bool pd_is_dead(struct pd *pd);

/* The buffer that fastrpc_mmap() knows by its file descriptor: the client's address and size. */
bool pd_map_find(struct pd *pd, uint32_t fd, void **address, uint64_t *size);
/* Holds the mapping of a buffer (delta 1: fastrpc_munmap() is refused) or lets it go (-1); an AEE code. */
int pd_map_ref(struct pd *pd, uint32_t fd, int delta);

/* Gives the domain `bytes` of memory; the region's id, 0 where that failed. The descriptor stays the caller's. */
uint64_t pd_share(struct pd *pd, int memfd, uint64_t bytes);
void pd_unshare(struct pd *pd, uint64_t id);

/*
 * fn(ctx) is called once when the domain is gone, from a thread of the library; at once where it is gone already. It
 * must not call any pd_ function. After pd_off_death() it does not run and will not.
 */
void pd_on_death(struct pd *pd, void (*fn)(void *ctx), void *ctx);
void pd_off_death(struct pd *pd, void (*fn)(void *ctx), void *ctx);
