// The host's side: a program for any machine with libcdsprpc.so, real or not.
#include <stdio.h>

#include "calc.h"
#include "remote.h"

int main(void) {
    struct remote_dsp_capability arch = {.domain = CDSP_DOMAIN_ID, .attribute_ID = ARCH_VER};
    remote_handle64 handle;
    int values[1000];
    int64 total = 0;
    for (int i = 0; i < 1000; i++) {
        values[i] = i + 1;
    }
    int error = remote_handle_control(DSPRPC_GET_DSP_INFO, &arch, sizeof arch);
    error = error ? error : calc_open(calc_URI CDSP_DOMAIN, &handle);
    error = error ? error : calc_sum(handle, values, 1000, &total);
    error = error ? error : calc_close(handle);
    if (error) {
        printf("error 0x%x\n", (unsigned) error);
        return 1;
    }
    printf("1 + 2 + ... + 1000 = %lld, says the NPU (v%x)\n", (long long) total, arch.capability & 0xff);
    return 0;
}
