/* As programs do that must start without an NPU: nothing linked, the library opened by the name of the command line. */
#include <dlfcn.h>
#include <stdint.h>

#include "calc.h"
#include "check.h"
#include "remote.h"

int main(int argc, char **argv) {
    CHECK(argc > 1);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    for (int i = 2; i < argc; i++) {
        if (!dlsym(library, argv[i])) {
            printf("%s ", argv[i]);
        }
    }
    int (*open)(const char *, remote_handle64 *) =
        (int (*)(const char *, remote_handle64 *)) dlsym(library, "remote_handle64_open");
    int (*invoke)(remote_handle64, uint32_t, remote_arg *) =
        (int (*)(remote_handle64, uint32_t, remote_arg *)) dlsym(library, "remote_handle64_invoke");
    remote_handle64 h = 0;
    CHECK_EQUAL(open(CALC_URI CDSP_DOMAIN, &h), 0);
    CHECK_EQUAL(invoke(h, REMOTE_SCALARS_MAKE(CALC_EMPTY, 0, 0), NULL), 0);
    dlclose(library); /* with a session open */
    return 0;
}
