/* Which DSPs there are, and what they can do: the NPUs of HEXNPU_EMU_NPUS, all alike. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *const npu_names[MAX_NPUS] = {"cdsp", "cdsp1", "cdsp2", "cdsp3"};
static const struct {
    const char *name;
    int id;
} absent[] = {{"adsp", ADSP_DOMAIN_ID}, {"mdsp", MDSP_DOMAIN_ID}, {"sdsp", SDSP_DOMAIN_ID}};

int fail(int aee, const char *who, const char *format, ...) {
    char text[1536];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fr_farf(FR_ERROR, "%s: %s (0x%x)", who, text, (unsigned) aee);
    return aee;
}

/* Numbers of the environment in [low, high]; `otherwise` where one is not set or no such number. */
enum setting { ARCH, HVX, HMX, VTCM, NPUS, N_SETTINGS };
static const struct {
    const char *name;
    int low, high, otherwise;
} settings[N_SETTINGS] = {
    [ARCH] = {"HEXNPU_EMU_ARCH", 73, 81, 79},        [HVX] = {"HEXNPU_EMU_HVX", 0, 32, 4},
    [HMX] = {"HEXNPU_EMU_HMX", 0, 16, 1},            [VTCM] = {"HEXNPU_EMU_VTCM", 0, 64, 8},
    [NPUS] = {"HEXNPU_EMU_NPUS", 1, MAX_NPUS, 1},
};

static bool is_arch(long n) {
    return n == 73 || n == 75 || n == 79 || n == 81;
}

static bool read_number(enum setting s, const char *text, int *value) {
    char *end;
    long n = strtol(text, &end, 10);
    bool good = !*end && n >= settings[s].low && n <= settings[s].high && (s != ARCH || is_arch(n));
    *value = good ? (int) n : settings[s].otherwise;
    return good;
}

static int number(enum setting s) {
    const char *text = getenv(settings[s].name);
    int value = settings[s].otherwise;
    if (text && *text) {
        read_number(s, text, &value);
    }
    return value;
}

void settings_check(void) {
    for (enum setting s = 0; s < N_SETTINGS; s++) {
        const char *text = getenv(settings[s].name);
        int value;
        if (!text || !*text || read_number(s, text, &value)) {
            continue;
        }
        if (s == ARCH) {
            fr_farf(FR_ERROR, "%s=%s is none of 73, 75, 79 and 81: it counts as %d", settings[s].name, text, value);
        } else {
            fr_farf(FR_ERROR, "%s=%s is no number from %d to %d: it counts as %d", settings[s].name, text,
                    settings[s].low, settings[s].high, value);
        }
    }
}

int npus(void) {
    return number(NPUS);
}

const char *domain_name(int domain) {
    int npu = domain - FIRST_NPU;
    return npu >= 0 && npu < npus() ? npu_names[npu] : NULL;
}

int domain_of_name(const char *name, size_t n) {
    for (int i = 0; i < MAX_NPUS; i++) {
        if (strlen(npu_names[i]) == n && !strncmp(name, npu_names[i], n)) {
            return FIRST_NPU + i;
        }
    }
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        if (strlen(absent[i].name) == n && !strncmp(name, absent[i].name, n)) {
            return absent[i].id;
        }
    }
    return -1;
}

bool domain_exists(int effective) {
    return effective >= 0 && effective < N_EFFECTIVE && domain_name(effective % N_DOMAINS);
}

int domain_check(int effective, const char *who) {
    if (effective < 0 || effective >= N_EFFECTIVE) {
        fail(AEE_EBADPARM, who,
             "%d is no domain: use an id of this machine's NPUs, or what FASTRPC_RESERVE_NEW_SESSION gave", effective);
        return -1;
    }
    return effective;
}

int domain_or_default(int effective, const char *who) {
    return effective == -1 ? FIRST_NPU : domain_check(effective, who);
}

static uint32_t hmx_units(void) {
    return (uint32_t) number(HMX);
}

/* The value as the real driver gives it; false: no such attribute. */
static bool attribute(int domain, uint32_t id, uint32_t *value) {
    int arch = number(ARCH);
    bool here = domain_exists(domain);
    switch (id) {
    case DOMAIN_SUPPORT: *value = here; break;
    case UNSIGNED_PD_SUPPORT:
    case STATUS_NOTIFICATION_SUPPORT:
    case ASYNC_FASTRPC_SUPPORT: *value = here; break;
    case HVX_SUPPORT_64B: *value = 0; break;
    case HVX_SUPPORT_128B: *value = (uint32_t) number(HVX); break;
    case VTCM_PAGE: *value = (uint32_t) number(VTCM) << 20; break;
    case VTCM_COUNT: *value = 1; break;
    case ARCH_VER: *value = (uint32_t) (arch / 10 << 4 | arch % 10); break; /* v79 is 0x79 */
    case HMX_SUPPORT_DEPTH:
    case HMX_SUPPORT_SPATIAL: *value = hmx_units() ? 1 : 0; break;
    case MCID_MULTICAST:
    case EXTENDED_MAP_SUPPORT:
    case HANDLE_PRIORITY_SUPPORT: *value = 0; break;
    default: return false;
    }
    return true;
}

static int dsp_info(struct remote_dsp_capability *cap, const char *who) {
    if (domain_check((int) cap->domain, who) < 0) {
        return AEE_EBADPARM;
    }
    if (!attribute((int) cap->domain, cap->attribute_ID, &cap->capability)) {
        return fail(AEE_EBADPARM, who, "%u is no attribute of a DSP: see enum remote_dsp_attributes",
                    cap->attribute_ID);
    }
    if (cap->attribute_ID != DOMAIN_SUPPORT && !domain_exists((int) cap->domain)) {
        return fail(AEE_ECONNREFUSED, who,
                    "domain %u is not on this machine, which has %d NPU(s) from domain %d: see --npus", cap->domain,
                    npus(), FIRST_NPU);
    }
    return AEE_SUCCESS;
}

int domain_control(int effective, uint32_t request, void *data, uint32_t bytes, const char *who) {
    uint32_t need = 0;
    switch (request) {
    case DSPRPC_CONTROL_LATENCY: need = sizeof(struct remote_rpc_control_latency); break;
    case DSPRPC_GET_DSP_INFO: need = sizeof(struct remote_dsp_capability); break;
    case DSPRPC_CONTROL_WAKELOCK: need = sizeof(struct remote_rpc_control_wakelock); break;
    case DSPRPC_GET_DOMAIN: need = sizeof(struct remote_rpc_get_domain); break;
    default: return fail(AEE_EUNSUPPORTED, who, "request %u is not emulated: see enum handle_control_req_id", request);
    }
    if (!data || bytes != need) {
        return fail(AEE_EBADPARM, who, "request %u takes a structure of %u bytes, not %u at %p", request, need, bytes,
                    data);
    }
    switch (request) {
    case DSPRPC_CONTROL_LATENCY: {
        const struct remote_rpc_control_latency *latency = data;
        if (latency->enable > RPC_POLL_QOS || (latency->enable == RPC_POLL_QOS && latency->latency >= 10000)) {
            return fail(AEE_EBADPARM, who,
                        "latency mode %u of %u us: modes are 0 to 3, polling is for less than 10000 us",
                        latency->enable, latency->latency);
        }
        break;
    }
    case DSPRPC_GET_DSP_INFO: return dsp_info(data, who);
    case DSPRPC_GET_DOMAIN: ((struct remote_rpc_get_domain *) data)->domain = effective; break;
    default: break; /* there is no sleep to keep this machine from */
    }
    return AEE_SUCCESS;
}

static void describe(int npu, fastrpc_domain *out) {
    *out = (fastrpc_domain){.id = FIRST_NPU + npu, .instance_id = npu, .type = FASTRPC_NSP, .status = 1};
    snprintf(out->name, sizeof out->name, "%s", npu_names[npu]);
}

FR_EXPORT int remote_system_request(system_req_payload *req) {
    if (!req) {
        return fail(AEE_EBADPARM, __func__, "the request is NULL");
    }
    if (req->id != FASTRPC_GET_DOMAINS) {
        return fail(AEE_EUNSUPPORTED, __func__, "request %d is not emulated: FASTRPC_GET_DOMAINS is", (int) req->id);
    }
    uint64_t type = req->sys.flags & ((1u << DOMAINS_LIST_FLAGS_TYPE_POS) - 1);
    int n = type == FASTRPC_ALL_DOMAINS || type == FASTRPC_NSP ? npus() : 0;
    for (int i = 0; req->sys.domains && i < n && i < req->sys.max_domains; i++) {
        describe(i, &req->sys.domains[i]);
    }
    req->sys.num_domains = n;
    return AEE_SUCCESS;
}
