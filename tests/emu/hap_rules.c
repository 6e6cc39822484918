/* HAP as third-party code uses it: log lines, buffers, power, compute resources, low memory. */
#define _GNU_SOURCE
#define FARF_LOW 1
#define FARF_HIGH 0
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu.h"
#include "HAP_compute_res.h"
#include "HAP_dcvs.h"
#include "HAP_etm_config.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_power.h"
#include "HAP_vtcm_mgr.h"
#include "qurt.h"
#include "rules.h"

#define MIB (1u << 20)
#define DSP(code) ((int) (0x80000400u + (code)))

static qurt_thread_t start(unsigned short priority, void (*entry)(void *), void *arg) {
    qurt_thread_attr_t attr;
    qurt_thread_t id = 0;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_priority(&attr, priority);
    NEED(qurt_thread_create(&id, &attr, entry, arg) == QURT_EOK);
    return id;
}

static void join(qurt_thread_t id) {
    int status = -1;
    NEED(qurt_thread_join(id, &status) == QURT_EOK && status == 0);
}

/* Log lines: what the file that HEXNPU_EMU_FARF names must hold is in test_hap.py. */

static void farf(void) {
    const char *other = "other.c", *this = "somewhere/hap_rules.c";
    FARF(ALWAYS, "always %d", 1);
    FARF(LOW, "low, ends with line ends\n\n");
    FARF(HIGH, "never: not compiled in");
    FARF(MEDIUM, "never");
    FARF(ERROR, "error %s", "text");
    FARF(RUNTIME_HIGH, "never: nobody asked yet");
    HAP_setFARFRuntimeLoggingParams(1 << HAP_LEVEL_HIGH, NULL, 0);
    FARF(RUNTIME_HIGH, "runtime high");
    FARF(RUNTIME_LOW, "never: another level");
    HAP_setFARFRuntimeLoggingParams(0x1f, &other, 1);
    FARF(RUNTIME_HIGH, "never: another file");
    HAP_setFARFRuntimeLoggingParams(0x1f, &this, 1);
    FARF(RUNTIME_LOW, "runtime low");
    FARF(RUNTIME_RPC_HIGH, "never: an RPC level");
    HAP_debug("plain %s", HAP_LEVEL_FATAL, "x/y.c", 9);
}

static void shout(void *p) {
    char text[200];
    memset(text, *(char *) p, sizeof text);
    for (uint32_t i = 0; i < 300; i++) {
        FARF(ALWAYS, "%.*s", (int) sizeof text, text);
    }
}

static void farf_threads(void) {
    char letters[4] = {'a', 'b', 'c', 'd'};
    qurt_thread_t ids[4];
    for (uint32_t i = 0; i < 4; i++) {
        ids[i] = start(100, shout, &letters[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        join(ids[i]);
    }
}

/* Buffers: number 7 has 64 KiB, 8 has 4 KiB. */

static int files[2];

static int source(int handle, uint64_t *bytes) {
    if (handle != 7 && handle != 8) {
        return -1;
    }
    *bytes = handle == 7 ? 65536 : 4096;
    return dup(files[handle - 7]);
}

static void buffers(void) {
    uint32_t *p, *q;
    void *r = NULL;
    uint64 physical = 0;
    for (int i = 0; i < 2; i++) {
        files[i] = memfd_create("buffer", 0);
        NEED(files[i] >= 0 && !ftruncate(files[i], i ? 4096 : 65536));
    }
    emu_set_buffer_source(source);
    p = HAP_mmap(NULL, 65536, HAP_PROT_READ | HAP_PROT_WRITE, 0, 7, 0);
    q = HAP_mmap2(NULL, 65536, HAP_PROT_READ | HAP_PROT_WRITE, 0, 7, 0);
    NEED(p == q && (uintptr_t) p >= 1u << 30 && (uintptr_t) p + 65536 <= 1ull << 32);
    p[3] = 5;
    NEED(HAP_mmap_get(7, &r, &physical) == 0 && r == p && physical == (uintptr_t) p);
    NEED(HAP_munmap(p, 65536) == 0 && q[3] == 5 && HAP_munmap2(q, 65536) == 0 && q[3] == 5);
    NEED(HAP_munmap2((char *) q + 4096, 4096) == DSP(0x48)); /* in the middle of a mapping */
    NEED(HAP_mmap_put(7) == 0 && HAP_mmap_put(7) == DSP(0x48) && HAP_munmap2(q, 65536) == DSP(0x48));
    NEED(HAP_mmap_get(9, &r, &physical) == DSP(0x48));
    uint32_t *part = HAP_mmap2(NULL, 4096, HAP_PROT_READ, 0, 7, 8192);
    NEED(part != HAP_MAP_FAILED && part[0] == 0 && HAP_munmap2(part, 4096) == 0);
    NEED(HAP_mmap2(NULL, 8192, HAP_PROT_READ, 0, 8, 0) == HAP_MAP_FAILED); /* longer than the buffer */
    NEED(HAP_mmap2(NULL, 4096, HAP_PROT_READ, 0, 7, 100) == HAP_MAP_FAILED);
    NEED(HAP_mmap(NULL, -1, HAP_PROT_READ, 0, 7, 0) == HAP_MAP_FAILED);
    NEED(HAP_mmap2(NULL, 4096, HAP_PROT_READ, 0, 9, 0) == HAP_MAP_FAILED);
    HAP_mem_req_payload_t request = {.request_id = HAP_MEM_MAP};
    request.mmap.len = 65536;
    request.mmap.fd = 7;
    request.mmap.prot = HAP_MEM_CACHE_NON_SHARED | HAP_PROT_READ;
    request.mmap.flags = HAP_MEM_FLAGS_EXTENDED_MAP;
    NEED(HAP_mem_request(&request) == 0 && ((uint32_t *) (uintptr_t) request.mmap.dsp_va)[3] == 5);
    uint64_t address = request.mmap.dsp_va;
    request = (HAP_mem_req_payload_t){.request_id = HAP_MEM_UNMAP, .munmap = {address, 65536}};
    NEED(HAP_mem_request(&request) == 0 && HAP_mem_request(&request) == DSP(0x48));
    request = (HAP_mem_req_payload_t){.request_id = HAP_MEM_SET_MARKER};
    NEED(HAP_mem_request(&request) == DSP(0x14) && HAP_mem_request(NULL) == DSP(0xe));
    NEED(HAP_malloc(100, &r) == 0 && HAP_free(r) == 0 && HAP_free(NULL) != 0);
}

/* Power, with HEXNPU_EMU_ARCH=79, or 73 */

static void power(void) {
    int client;
    HAP_power_request_t r = {.type = HAP_power_set_apptype, .apptype = HAP_POWER_COMPUTE_CLIENT_CLASS};
    HAP_power_response_t get = {.type = HAP_power_get_client_class};
    NEED(HAP_power_set(&client, &r) == 0 && HAP_power_get(&client, &get) == 0 && get.client_class == 4);
    r = (HAP_power_request_t){.type = HAP_power_set_DCVS_v3};
    r.dcvs_v3.set_dcvs_enable = TRUE;
    NEED(HAP_set_dcvs_v3_protected_bus_corners(&r, 1) == 0 && HAP_set_dcvs_v3_core_perf_mode(&r, 0) == 0);
    NEED(HAP_power_set(&client, &r) == 0);
    get.type = HAP_power_get_dcvsEnabled;
    NEED(HAP_power_get(NULL, &get) == 0 && get.dcvsEnabled == 0);
    NEED(HAP_power_set_dcvs_option(&client, TRUE, HAP_DCVS_V2_PERFORMANCE_MODE) == 0);
    NEED(HAP_power_get(NULL, &get) == 0 && get.dcvsEnabled == 1);
    get.type = HAP_power_get_clk_Freq;
    NEED(HAP_power_get(NULL, &get) == 0 && get.clkFreqHz == EMU_CLOCK_KHZ * 1000);
    r = (HAP_power_request_t){.type = HAP_power_set_HMX_v2};
    r.hmx_v2.set_power = r.hmx_v2.power_up = r.hmx_v2.set_clock = TRUE;
    r.hmx_v2.target_corner = r.hmx_v2.min_corner = r.hmx_v2.max_corner = HAP_DCVS_EXP_VCORNER_MAX;
    NEED(HAP_power_set(&client, &r) == 0 && HAP_set_dcvs_v3_core_perf_mode(&r, 0) == DSP(0xe));
    r.type = (HAP_Power_request_type) 99;
    NEED(HAP_power_set(&client, &r) == HAP_POWER_ERR_UNSUPPORTED_API && HAP_power_set(&client, NULL) != 0);
    NEED(HAP_power_destroy(&client) == 0 && HAP_power_destroy(&client) == DSP(0x4a));
    NEED(HAP_user_etm_disable() != 0 && HAP_user_etm_enable() == 0 && HAP_user_etm_disable() == 0);
}

static void power_v73(void) {
    int client;
    HAP_power_request_t r = {.type = HAP_power_set_DCVS_v3};
    NEED(HAP_set_dcvs_v3_protected_bus_corners(&r, 1) == DSP(4));
    r.type = HAP_power_set_HMX_v2;
    NEED(HAP_power_set(&client, &r) == HAP_POWER_ERR_UNSUPPORTED_API);
    r.type = HAP_power_set_HMX;
    NEED(HAP_power_set(&client, &r) == 0);
}

/* Low memory */

static void low(void) {
    static void *blocks[6000];
    NEED(emu_low_capacity() < 3ull << 30);
    for (uint32_t i = 0; i < 6000; i++) {
        blocks[i] = emu_low_map(1 + i % 5000, -1, 0);
        NEED(blocks[i] && (uintptr_t) blocks[i] >= 1u << 30);
    }
    for (uint32_t i = 0; i < 6000; i++) {
        emu_low_unmap(blocks[(i * 7) % 6000]);
    }
    char *aligned = emu_low_map_aligned(3 * MIB, 4 * MIB);
    NEED(aligned && (uintptr_t) aligned % (4 * MIB) == 0 && !emu_low_try_unmap(aligned + 4096));
    NEED(emu_low_try_unmap(aligned) && !emu_low_try_unmap(aligned));
}

static void map_and_unmap(void *p) {
    for (uint32_t i = 0; i < 500; i++) {
        uint8_t *block = emu_low_map(5000, -1, 0);
        NEED(block && block[0] == 0 && emu_low_contains((uintptr_t) block, 5000));
        memset(block, *(uint8_t *) p, 5000);
        NEED(block[4999] == *(uint8_t *) p);
        emu_low_unmap(block);
    }
}

static void low_threads(void) {
    uint8_t names[4] = {1, 2, 3, 4};
    qurt_thread_t ids[4];
    for (uint32_t i = 0; i < 4; i++) {
        ids[i] = start(100, map_and_unmap, &names[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        join(ids[i]);
    }
}

int main(int argc, char **argv) {
    static const struct named cases[] = {
        {"farf", farf},
        {"farf_threads", farf_threads},
        {"buffers", buffers},
        {"power", power},
        {"power_v73", power_v73},
        {"low", low},
        {"low_threads", low_threads},
    };
    emu_low_reserve_heap();
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
