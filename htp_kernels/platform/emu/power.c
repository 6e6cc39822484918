/* Power and clock requests: taken and remembered. The host runs as fast as it does. */
#include <pthread.h>

#include "HAP_dcvs.h"
#include "HAP_etm_config.h"
#include "HAP_power.h"
#include "emu.h"
#include "hap-internal.h"
#include "qurt_sysenv.h"

#define MAX_CLIENTS 256u
#define BUS_BYTES_PER_SECOND 60000000000ull /* DMA of a v75 part */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void *clients[MAX_CLIENTS];
static uint32_t n_clients;
static HAP_power_app_type_payload client_class;
static bool dcvs_enabled = true;
static int n_etm;

static uint32_t client_index(const void *context) {
    uint32_t i = 0;
    while (i < n_clients && clients[i] != context) {
        i++;
    }
    return i;
}

static void remember(const HAP_power_request_t *r) {
    if (r->type == HAP_power_set_apptype) {
        client_class = r->apptype;
    } else if (r->type == HAP_power_set_DCVS) {
        dcvs_enabled = r->dcvs.dcvs_enable;
    } else if (r->type == HAP_power_set_DCVS_v2) {
        dcvs_enabled = r->dcvs_v2.dcvs_enable;
    } else if (r->type == HAP_power_set_DCVS_v3 && r->dcvs_v3.set_dcvs_enable) {
        dcvs_enabled = r->dcvs_v3.dcvs_enable;
    }
}

int HAP_power_set(void *context, HAP_power_request_t *request) {
    if (!request) {
        return HAP_POWER_ERR_INVALID_PARAM;
    }
    bool later = request->type == HAP_power_set_HMX_v2 || request->type == HAP_power_set_CENG_bus;
    if (request->type < HAP_power_set_mips_bw || request->type > HAP_power_set_CENG_bus || (later && emu_arch() < 75)) {
        return HAP_POWER_ERR_UNSUPPORTED_API;
    }
    pthread_mutex_lock(&lock);
    bool known = client_index(context) < n_clients;
    bool room = known || n_clients < MAX_CLIENTS;
    if (room) {
        if (!known) {
            clients[n_clients++] = context;
        }
        remember(request);
    }
    pthread_mutex_unlock(&lock);
    return room ? AEE_SUCCESS : DSP_ERROR(AEE_EMAX_MMPM_CLIENTS);
}

int HAP_power_get(void *context, HAP_power_response_t *response) {
    (void) context;
    qurt_sysenv_max_hthreads_t threads = {1};
    int result = AEE_SUCCESS;
    if (!response) {
        return HAP_POWER_ERR_INVALID_PARAM;
    }
    pthread_mutex_lock(&lock);
    switch (response->type) {
    case HAP_power_get_max_mips:
        qurt_sysenv_get_max_hw_threads(&threads);
        response->max_mips = EMU_CLOCK_KHZ / 1000 * threads.max_hthreads;
        break;
    case HAP_power_get_max_bus_bw: response->max_bus_bw = BUS_BYTES_PER_SECOND; break;
    case HAP_power_get_client_class: response->client_class = client_class; break;
    case HAP_power_get_clk_Freq: response->clkFreqHz = EMU_CLOCK_KHZ * 1000; break;
    case HAP_power_get_dcvsEnabled: response->dcvsEnabled = dcvs_enabled; break;
    default: result = HAP_POWER_ERR_UNSUPPORTED_API;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int HAP_power_destroy(void *client) {
    pthread_mutex_lock(&lock);
    uint32_t i = client_index(client);
    bool known = i < n_clients;
    if (known) {
        clients[i] = clients[--n_clients];
    }
    pthread_mutex_unlock(&lock);
    return known ? AEE_SUCCESS : DSP_ERROR(AEE_ENOSUCHCLIENT);
}

/* DCVS v3: every addition needs a request of that kind. */
static int add_to(const HAP_power_request_t *request, uint32_t from_arch) {
    if (emu_arch() < from_arch) {
        return DSP_ERROR(AEE_EVERSIONNOTSUPPORT);
    }
    return request && request->type == HAP_power_set_DCVS_v3 ? AEE_SUCCESS : DSP_ERROR(AEE_EBADPARM);
}

int HAP_set_dcvs_v3_duty_cycle(void *context, uint32 max_active_time, uint32 periodicity) {
    HAP_power_request_t request = {.type = HAP_power_set_DCVS_v3};
    request.dcvs_v3.set_dcvs_enable = request.dcvs_v3.dcvs_enable = TRUE;
    request.dcvs_v3.dcvs_option = HAP_DCVS_V2_DUTY_CYCLE_MODE;
    int result = HAP_set_dcvs_v3_duty_cycle_params(&request, max_active_time, periodicity);
    return result ? result : HAP_power_set(context, &request);
}

int HAP_set_dcvs_v3_duty_cycle_params(HAP_power_request_t *request, uint32 max_active_time, uint32 periodicity) {
    (void) max_active_time, (void) periodicity;
    return add_to(request, 0);
}

int HAP_set_dcvs_v3_core_perf_mode(HAP_power_request_t *request, HAP_dcvs_clk_perf_mode_t perf_mode) {
    (void) perf_mode;
    return add_to(request, 0);
}

int HAP_set_dcvs_v3_bus_perf_mode(HAP_power_request_t *request, HAP_dcvs_clk_perf_mode_t perf_mode) {
    (void) perf_mode;
    return add_to(request, 0);
}

int HAP_set_dcvs_v3_protected_bus_corners(HAP_power_request_t *request, unsigned char enable_protected_corners) {
    (void) enable_protected_corners;
    return add_to(request, 79);
}

int HAP_set_ddr_perf_mode(HAP_power_request_t *request, unsigned int perf_mode) {
    (void) perf_mode;
    return add_to(request, 79);
}

int HAP_user_etm_enable(void) {
    pthread_mutex_lock(&lock);
    n_etm++;
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

int HAP_user_etm_disable(void) {
    pthread_mutex_lock(&lock);
    bool on = n_etm > 0;
    n_etm -= on;
    pthread_mutex_unlock(&lock);
    return on ? AEE_SUCCESS : DSP_ERROR(AEE_EBADSTATE);
}
