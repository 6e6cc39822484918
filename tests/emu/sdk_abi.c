/* Layout and values of the FastRPC host API, as libcdsprpc.so of a 64-bit machine has them. */
#include <stddef.h>

#include "AEEStdErr.h"
#include "domain.h"
#include "dspqueue.h"
#include "remote.h"
#include "rpcmem.h"

#define IS(what, value) _Static_assert((what) == (value), #what)
#define AT(type, field, offset) IS(offsetof(type, field), offset)

IS(sizeof(remote_handle), 4);
IS(sizeof(remote_handle64), 8);
IS(sizeof(remote_buf), 16);
IS(sizeof(remote_arg), 16);
IS(sizeof(remote_arg64), 16);
AT(remote_buf, nLen, 8);
AT(remote_dma_handle, offset, 4);
IS(sizeof(domain_t), 16);
IS(sizeof(fastrpc_async_descriptor_t), 32);
AT(fastrpc_async_descriptor_t, cb, 16);
IS(sizeof(struct remote_dsp_capability), 12);
IS(sizeof(remote_rpc_reserve_new_session_t), 40);
AT(remote_rpc_reserve_new_session_t, effective_domain_id, 28);
AT(remote_rpc_reserve_new_session_t, session_id, 32);
IS(sizeof(remote_rpc_effective_domain_id_t), 24);
AT(remote_rpc_effective_domain_id_t, effective_domain_id, 16);
IS(sizeof(remote_rpc_get_uri_t), 48);
AT(remote_rpc_get_uri_t, uri_len, 40);
IS(sizeof(struct remote_rpc_thread_params), 12);
IS(sizeof(remote_rpc_notif_register_t), 24);
IS(sizeof(fastrpc_context_create), 32);

IS(REMOTE_SCALARS_MAKEX(1, 2, 3, 4, 5, 6), 0x22030456);
IS(REMOTE_SCALARS_METHOD(0x22030456), 2);
IS(REMOTE_SCALARS_LENGTH(0x22030456), 18);
IS(CDSP_DOMAIN_ID, 3);
IS(DSPRPC_CONTROL_LATENCY, 1);
IS(DSPRPC_GET_DSP_INFO, 2);
IS(DSPRPC_GET_DOMAIN, 4);
IS(ARCH_VER, 6);
IS(MCID_MULTICAST, 11);
IS(FASTRPC_THREAD_PARAMS, 1);
IS(DSPRPC_CONTROL_UNSIGNED_MODULE, 2);
IS(FASTRPC_REMOTE_PROCESS_KILL, 6);
IS(FASTRPC_RESERVE_NEW_SESSION, 13);
IS(FASTRPC_GET_EFFECTIVE_DOMAIN_ID, 14);
IS(FASTRPC_GET_URI, 15);
IS(FASTRPC_CONTEXT_DESTROY, 18);
IS(FASTRPC_MAP_FD, 2);
IS(FASTRPC_MAP_FD_DELAYED, 3);
IS(FASTRPC_MAP_FD_NOMAP, 16);
IS(FASTRPC_MAP_FD_DELAYED_EXTENDED, 18);
IS(RPC_POLL_QOS, 3);

IS(sizeof(struct dspqueue_buffer), 24);
AT(struct dspqueue_buffer, ptr, 16);
IS(sizeof(dspqueue_create_req), 80);
AT(dspqueue_create_req, queue, 56);
IS(DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER, 0x10);
IS(DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT, 0x80);
IS(DSPQUEUE_STAT_SIGNALING_PERF, 7);
IS(RPCMEM_HEAP_ID_SYSTEM, 25);
IS(RPCMEM_DEFAULT_FLAGS, 1);

#ifdef HEXNPU_EMU_DSP
IS((unsigned) AEE_EFAILED, 0x80000401u);
#else
IS(AEE_EFAILED, 1);
#endif
IS(AEE_ENOSUCHMAP - AEE_EFAILED, 0x47);
IS(AEE_ENOSESSION - AEE_EFAILED, 0x89);
IS(AEE_ERPC - AEE_EFAILED, 0x1ff);
IS(AEE_EWOULDBLOCK, 516);
IS(AEE_ECONNRESET, 104);
IS(AEE_ENOSUCH, 39);
