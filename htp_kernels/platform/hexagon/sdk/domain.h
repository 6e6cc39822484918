/* The DSPs by number, and what each appends to a module's URI. */
#pragma once

#include <stdbool.h>

#include "remote.h"

__attribute__((unused)) static domain supported_domains[] = {
    {ADSP_DOMAIN_ID, ADSP_DOMAIN}, {MDSP_DOMAIN_ID, MDSP_DOMAIN},   {SDSP_DOMAIN_ID, SDSP_DOMAIN},
    {CDSP_DOMAIN_ID, CDSP_DOMAIN}, {CDSP1_DOMAIN_ID, CDSP1_DOMAIN},
};

/* Whether this domain is a compute DSP, the kind that has HVX and HMX. */
__attribute__((unused)) static inline bool is_CDSP(int domain_id) {
    return domain_id == CDSP_DOMAIN_ID || domain_id == CDSP1_DOMAIN_ID;
}
