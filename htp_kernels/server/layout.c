/* --layout: every structure of the wire as the compiler sees it, in JSON; the Python side is tested against it. */
#include <stddef.h>
#include <stdio.h>

#include "htp-kernel.h"
#include "server.h"

static const char *separator = "";

static void begin(const char *name, size_t size) {
    printf("%s\n    \"%s\": {\"size\": %zu, \"fields\": {", separator, name, size);
    separator = "";
}

static void field(const char *name, size_t offset, size_t size) {
    printf("%s\"%s\": [%zu, %zu]", separator, name, offset, size);
    separator = ", ";
}

static void end(void) {
    fputs("}}", stdout);
    separator = ",";
}

static void constant(const char *name, unsigned long long value) {
    printf("%s\n    \"%s\": %llu", separator, name, value);
    separator = ",";
}

#define FIELD(s, f) field(#f, offsetof(struct s, f), sizeof(((struct s *) 0)->f))
#define CONSTANT(c) constant(#c, c)

static void wire_structs(void) {
    begin("htp_request", sizeof(struct htp_request));
    FIELD(htp_request, magic), FIELD(htp_request, version), FIELD(htp_request, seq), FIELD(htp_request, n_bufs);
    FIELD(htp_request, n_tensors), FIELD(htp_request, n_ops), FIELD(htp_request, n_traces);
    end();
    begin("htp_buf", sizeof(struct htp_buf));
    FIELD(htp_buf, base), FIELD(htp_buf, size), FIELD(htp_buf, flags), FIELD(htp_buf, fd);
    end();
    begin("htp_wire_tensor", sizeof(struct htp_wire_tensor));
    FIELD(htp_wire_tensor, data), FIELD(htp_wire_tensor, size), FIELD(htp_wire_tensor, flags),
        FIELD(htp_wire_tensor, type);
    FIELD(htp_wire_tensor, bi), FIELD(htp_wire_tensor, ti), FIELD(htp_wire_tensor, ne), FIELD(htp_wire_tensor, nb);
    end();
    begin("htp_wire_op", sizeof(struct htp_wire_op));
    FIELD(htp_wire_op, opcode), FIELD(htp_wire_op, flags), FIELD(htp_wire_op, params),
        FIELD(htp_wire_op, kernel_params);
    FIELD(htp_wire_op, src), FIELD(htp_wire_op, dst), FIELD(htp_wire_op, pad);
    end();
    begin("htp_response", sizeof(struct htp_response));
    FIELD(htp_response, seq), FIELD(htp_response, cycles_start), FIELD(htp_response, cycles_stop);
    FIELD(htp_response, status), FIELD(htp_response, failing_op), FIELD(htp_response, n_ops),
        FIELD(htp_response, usecs);
    FIELD(htp_response, n_profiles), FIELD(htp_response, n_traces), FIELD(htp_response, detail);
    end();
    begin("htp_profile", sizeof(struct htp_profile));
    FIELD(htp_profile, opcode), FIELD(htp_profile, usecs), FIELD(htp_profile, cycles_start);
    FIELD(htp_profile, cycles_stop), FIELD(htp_profile, pmu);
    end();
    begin("htp_trace_event", sizeof(struct htp_trace_event));
    FIELD(htp_trace_event, cycles), FIELD(htp_trace_event, id), FIELD(htp_trace_event, info);
    end();
}

static void frame_structs(void) {
    begin("htp_frame", sizeof(struct htp_frame));
    FIELD(htp_frame, magic), FIELD(htp_frame, version), FIELD(htp_frame, type), FIELD(htp_frame, session);
    FIELD(htp_frame, status), FIELD(htp_frame, tag), FIELD(htp_frame, bytes);
    end();
    begin("htp_hello", sizeof(struct htp_hello));
    FIELD(htp_hello, protocol), FIELD(htp_hello, arch), FIELD(htp_hello, n_threads), FIELD(htp_hello, n_hmx);
    FIELD(htp_hello, vtcm_bytes), FIELD(htp_hello, max_map_bytes), FIELD(htp_hello, can_share);
    FIELD(htp_hello, clock_khz), FIELD(htp_hello, flavour);
    end();
    begin("htp_open", sizeof(struct htp_open));
    FIELD(htp_open, n_threads), FIELD(htp_open, vtcm_mib), FIELD(htp_open, max_map_bytes), FIELD(htp_open, device);
    FIELD(htp_open, fence_timeout_ms), FIELD(htp_open, pad);
    end();
    begin("htp_alloc", sizeof(struct htp_alloc));
    FIELD(htp_alloc, bytes), FIELD(htp_alloc, share), FIELD(htp_alloc, pad);
    end();
    begin("htp_buffer_ref", sizeof(struct htp_buffer_ref));
    FIELD(htp_buffer_ref, handle), FIELD(htp_buffer_ref, pad);
    end();
    begin("htp_range", sizeof(struct htp_range));
    FIELD(htp_range, handle), FIELD(htp_range, pad), FIELD(htp_range, offset), FIELD(htp_range, bytes);
    end();
    begin("htp_load", sizeof(struct htp_load));
    FIELD(htp_load, handle), FIELD(htp_load, path_bytes), FIELD(htp_load, offset), FIELD(htp_load, file_offset);
    FIELD(htp_load, bytes);
    end();
    begin("htp_profile_set", sizeof(struct htp_profile_set));
    FIELD(htp_profile_set, mode), FIELD(htp_profile_set, pmu), FIELD(htp_profile_set, pad);
    end();
    begin("htp_stats", sizeof(struct htp_stats));
    FIELD(htp_stats, n_batches), FIELD(htp_stats, n_ops), FIELD(htp_stats, n_failed), FIELD(htp_stats, dma_transfers);
    FIELD(htp_stats, dma_bytes), FIELD(htp_stats, n_buffers), FIELD(htp_stats, buffer_bytes);
    FIELD(htp_stats, mapped_bytes), FIELD(htp_stats, n_mappings), FIELD(htp_stats, fence_cycles);
    end();
}

static void constants(void) {
    CONSTANT(HTP_MAGIC), CONSTANT(HTP_VERSION), CONSTANT(HTP_FRAME_MAGIC), CONSTANT(HTP_FRAME_VERSION),
        CONSTANT(HTP_REPLY);
    CONSTANT(HTP_MAX_FRAME_BYTES), CONSTANT(HTP_MAX_BUFS), CONSTANT(HTP_MAX_TENSORS), CONSTANT(HTP_MAX_OPS);
    CONSTANT(HTP_MAX_SRC), CONSTANT(HTP_MAX_DST), CONSTANT(HTP_MAX_DIMS), CONSTANT(HTP_N_PARAMS),
        CONSTANT(HTP_N_KPARAMS);
    CONSTANT(HTP_MAX_THREADS), CONSTANT(HTP_TRACE_SLOTS), CONSTANT(HTP_N_PMU), CONSTANT(HTP_ABSENT);
    CONSTANT(HTP_DETAIL_BYTES), CONSTANT(HTP_MAX_TRACES), CONSTANT(HTP_TRACE_STOP), CONSTANT(HTP_N_KARGS);
    CONSTANT(HTP_N_REGIONS), CONSTANT(HTP_REGION_PER_THREAD), CONSTANT(HTP_VTCM_GAP), CONSTANT(HTP_KP_KERNEL);
    CONSTANT(HTP_KP_N_THREADS), CONSTANT(HTP_KP_VTCM_BYTES), CONSTANT(HTP_KP_BLOCK), CONSTANT(HTP_KP_ARGS);
    CONSTANT(HTP_KP_REGIONS), CONSTANT(HTP_TENSOR_WEIGHT), CONSTANT(HTP_TENSOR_REPACK), CONSTANT(HTP_TENSOR_FENCE);
    CONSTANT(HTP_OK), CONSTANT(HTP_INTERNAL_ERR), CONSTANT(HTP_NO_SUPPORT), CONSTANT(HTP_INVAL_PARAMS);
    CONSTANT(HTP_VTCM_TOO_SMALL);
}

static void types(void) {
    CONSTANT(HTP_F32), CONSTANT(HTP_F16), CONSTANT(HTP_Q4_0), CONSTANT(HTP_Q4_1), CONSTANT(HTP_Q8_0),
        CONSTANT(HTP_Q4_K);
    CONSTANT(HTP_Q5_K), CONSTANT(HTP_Q6_K), CONSTANT(HTP_IQ4_NL), CONSTANT(HTP_I32), CONSTANT(HTP_I64),
        CONSTANT(HTP_MXFP4);
    CONSTANT(HTP_TILE_F32), CONSTANT(HTP_TILE_F16), CONSTANT(HTP_TILE_Q4_0), CONSTANT(HTP_TILE_Q4_1),
        CONSTANT(HTP_TILE_Q8_0);
}

static void traces(void) {
    CONSTANT(HTP_TR_DMA), CONSTANT(HTP_TR_L2FLUSH), CONSTANT(HTP_TR_INIT), CONSTANT(HTP_TR_BUFF),
        CONSTANT(HTP_TR_FENCE);
    CONSTANT(HTP_TR_HVX_COMP), CONSTANT(HTP_TR_HVX_A_QUANT), CONSTANT(HTP_TR_HVX_A_PREP),
        CONSTANT(HTP_TR_HVX_W_DEQUANT);
    CONSTANT(HTP_TR_HVX_W_PREP), CONSTANT(HTP_TR_HVX_O_PROC), CONSTANT(HTP_TR_HVX_FA_QK), CONSTANT(HTP_TR_HVX_FA_SFM);
    CONSTANT(HTP_TR_HVX_FA_Q_PREP), CONSTANT(HTP_TR_HVX_FA_K_PREP), CONSTANT(HTP_TR_HVX_FA_V_PREP),
        CONSTANT(HTP_TR_HMX_COMP);
}

static void frame_types(void) {
    CONSTANT(HTP_F_ERROR), CONSTANT(HTP_F_HELLO), CONSTANT(HTP_F_OPEN), CONSTANT(HTP_F_CLOSE), CONSTANT(HTP_F_ALLOC);
    CONSTANT(HTP_F_FREE), CONSTANT(HTP_F_WRITE), CONSTANT(HTP_F_READ), CONSTANT(HTP_F_LOAD), CONSTANT(HTP_F_SUBMIT);
    CONSTANT(HTP_F_PROFILE), CONSTANT(HTP_F_STATS), CONSTANT(HTP_F_UNMAP);
}

static void ops(void) {
#define HTP_OP(code, name, family) constant(#name, code);
#include "htp-ops.def"
#undef HTP_OP
}

static void group(const char *name, const char *before, void (*print)(void)) {
    printf("%s\n  \"%s\": {", before, name);
    separator = "";
    print();
    fputs("\n  }", stdout);
}

void print_layout(void) {
    fputs("{", stdout);
    group("wire", "", wire_structs);
    group("frames", ",", frame_structs);
    group("constants", ",", constants);
    group("types", ",", types);
    group("traces", ",", traces);
    group("frame_types", ",", frame_types);
    group("ops", ",", ops);
    fputs("\n}\n", stdout);
}
