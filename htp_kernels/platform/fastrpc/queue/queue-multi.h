/* Contexts: several domains behind one number, for remote_session_control() and for dspqueue_request(). */
#pragma once

#include "remote.h"

#pragma GCC visibility push(hidden)

/* FASTRPC_CONTEXT_CREATE: a session on each of the domains (effective ids); AEE codes. */
int context_create(fastrpc_context_create *request);
/* FASTRPC_CONTEXT_DESTROY; queues over the context live on. */
int context_destroy(uint64_t ctx);

#pragma GCC visibility pop
