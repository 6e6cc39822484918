/* What pipeline_host.c asks of pipeline_skel.c. */
#pragma once

#include <stdint.h>

#define PIPELINE_URI "file:///libpipeline_skel.so?pipeline_skel_handle_invoke&_modver=1.0"
#define PIPELINE_THREADS 2
#define TILE_BYTES 16384
#define PIPELINE_RUN 2

/* Adds `value` to each byte of a mapped buffer, up to 255; whole tiles. */
struct pipeline_job {
    int32_t fd;
    uint32_t bytes;
    uint8_t value;
};
