/* A DSP library that needs a function nobody has. */
#include <stdint.h>

#include "remote.h"

int HAP_no_such_function(void);

int calc_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg *a) {
    (void) h, (void) sc, (void) a;
    return HAP_no_such_function();
}
