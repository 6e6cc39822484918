/*
 * The op batch: what the host sends to a session and what comes back. Little-endian, every part 8-byte aligned.
 *
 *   request  = htp_request, n_bufs x htp_buf, n_tensors x htp_wire_tensor, n_ops x htp_wire_op
 *   response = htp_response, n_profiles x htp_profile, then for each thread its n_traces[t] x htp_trace_event
 *
 * hexnpu/wire.py holds the same structures as numpy dtypes; tests/test_wire.py compares the two byte for byte
 * through the server's --layout switch.
 */
#pragma once

#include <stdint.h>

#define HTP_MAGIC 0x42505448u /* "HTPB" */
#define HTP_VERSION 1u

#define HTP_MAX_BUFS 16u
#define HTP_MAX_TENSORS 8192u
#define HTP_MAX_OPS 8192u
#define HTP_MAX_SRC 10u
#define HTP_MAX_DST 4u
#define HTP_MAX_DIMS 4u
#define HTP_N_PARAMS 16u
#define HTP_N_KPARAMS 32u
#define HTP_MAX_THREADS 10u /* HVX threads; trace slot 10 is HMX */
#define HTP_TRACE_SLOTS 11u
#define HTP_N_PMU 8u
#define HTP_ABSENT 0xffffu /* a missing src or dst */
#define HTP_DETAIL_BYTES 160u
#define HTP_MAX_TRACES 65536u /* n_traces of a request */
#define HTP_MAX_RANKS 4u      /* sessions that work on one op */
#define HTP_FENCE_BYTES 128u  /* a fence: u32 sequence number, u32 status, the rest of its line unused */

enum htp_status {
    HTP_OK = 1,
    HTP_INTERNAL_ERR = 2,
    HTP_NO_SUPPORT = 3,
    HTP_INVAL_PARAMS = 4,
    HTP_VTCM_TOO_SMALL = 5,
};

/* ggml's numbers; 200 + n is type n repacked into tiles of 32 rows x 32 k. */
enum htp_type {
    HTP_F32 = 0,
    HTP_F16 = 1,
    HTP_Q4_0 = 2,
    HTP_Q4_1 = 3,
    HTP_Q8_0 = 8,
    HTP_Q4_K = 12,
    HTP_Q5_K = 13,
    HTP_Q6_K = 14,
    HTP_IQ4_NL = 20,
    HTP_I32 = 26,
    HTP_I64 = 27,
    HTP_MXFP4 = 39,
    HTP_TILE_F32 = 200,
    HTP_TILE_F16 = 201,
    HTP_TILE_Q4_0 = 202,
    HTP_TILE_Q4_1 = 203,
    HTP_TILE_Q8_0 = 208,
};

enum htp_tensor_flag { HTP_TENSOR_WEIGHT = 1, HTP_TENSOR_REPACK = 2, HTP_TENSOR_FENCE = 4 };
/* A buffer of fences holds nothing else, and fences lie nowhere else. */
enum htp_buf_flag { HTP_BUF_FENCE = 1 };

/*
 * pmu[i] of a profile counts the event that htp_profile_set.pmu[i] names. The emulator has no counters of the
 * processor's; it knows these, and gives 0 for every other.
 */
enum htp_pmu_event { HTP_PMU_DMA_TRANSFERS = 0xf000, HTP_PMU_DMA_BYTES = 0xf001, HTP_PMU_FENCE_CYCLES = 0xf002 };

enum htp_profile_mode { HTP_PROFILE_OFF = 0, HTP_PROFILE_BASIC = 1, HTP_PROFILE_PMU = 2, HTP_PROFILE_TRACE = 3 };

enum htp_trace_id {
    HTP_TR_DMA = 0,
    HTP_TR_L2FLUSH = 1,
    HTP_TR_INIT = 2,
    HTP_TR_BUFF = 3,
    HTP_TR_FENCE = 4,
    HTP_TR_HVX_COMP = 20,
    HTP_TR_HVX_A_QUANT = 21,
    HTP_TR_HVX_A_PREP = 22,
    HTP_TR_HVX_W_DEQUANT = 23,
    HTP_TR_HVX_W_PREP = 24,
    HTP_TR_HVX_O_PROC = 25,
    HTP_TR_HVX_FA_QK = 26,
    HTP_TR_HVX_FA_SFM = 27,
    HTP_TR_HVX_FA_Q_PREP = 28,
    HTP_TR_HVX_FA_K_PREP = 29,
    HTP_TR_HVX_FA_V_PREP = 30,
    HTP_TR_HMX_COMP = 40,
};
#define HTP_TRACE_STOP 0x8000u /* bit 15 of info; bits 14..0 are the block index */

struct htp_request {
    uint32_t magic;
    uint32_t version;
    uint64_t seq;
    uint32_t n_bufs;
    uint32_t n_tensors;
    uint32_t n_ops;
    uint32_t n_traces; /* room for trace events, per thread */
};

struct htp_buf {
    uint64_t base;  /* where the mapping begins in the buffer, a multiple of 4096 */
    uint64_t size;  /* bytes of the mapping: the batch's tensors lie in [base, base + size) */
    uint32_t flags; /* enum htp_buf_flag */
    uint32_t fd;    /* the buffer's handle in the server */
};

struct htp_wire_tensor {
    uint64_t data; /* offset in its buffer (not in the mapping) */
    uint32_t size; /* bytes from the first to behind the last element */
    uint32_t flags;
    uint32_t type;
    uint16_t bi; /* buffer index */
    uint16_t ti; /* the tensor's own index */
    uint32_t ne[HTP_MAX_DIMS];
    uint32_t nb[HTP_MAX_DIMS];
};

struct htp_wire_op {
    uint32_t opcode;
    uint32_t flags;
    int32_t params[HTP_N_PARAMS];
    int32_t kernel_params[HTP_N_KPARAMS];
    uint16_t src[HTP_MAX_SRC];
    uint16_t dst[HTP_MAX_DST];
    uint32_t pad;
};

struct htp_response {
    uint64_t seq;
    uint64_t cycles_start;
    uint64_t cycles_stop;
    uint32_t status;
    uint32_t failing_op; /* index of the op that `status` speaks of; n_ops where it is the batch itself */
    uint32_t n_ops;      /* ops done */
    uint32_t usecs;
    uint32_t n_profiles;
    uint32_t n_traces[HTP_TRACE_SLOTS];
    char detail[HTP_DETAIL_BYTES]; /* a sentence that names the op and the field; empty when all is well */
};

struct htp_profile {
    uint32_t opcode;
    uint32_t usecs;
    uint32_t cycles_start;
    uint32_t cycles_stop;
    uint32_t pmu[HTP_N_PMU];
};

struct htp_trace_event {
    uint32_t cycles; /* low 32 bits */
    uint16_t id;
    uint16_t info;
};
