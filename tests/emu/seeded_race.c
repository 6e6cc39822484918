// Two threads store to and load from one vector through the helpers. With an argument the reader waits for the writer
// (no race); without one it does not, and ThreadSanitizer must say so though no access is one it sees by itself.
#include <pthread.h>

#include "kernels/hvx-base.h"

static HVX_Vector shared[2];
static HVX_Vector copies[2];

static void *writer(void *unused) {
    (void) unused;
    hvx_store(&shared[0], Q6_V_vsplat_R(1));
    hvx_storeu((char *) &shared[0] + 64, Q6_V_vsplat_R(2));
    return NULL;
}

static void *reader(void *unused) {
    (void) unused;
    copies[0] = hvx_load(&shared[0]);
    copies[1] = hvx_loadu((char *) &shared[0] + 1);
    return NULL;
}

int main(int argc, char **argv) {
    (void) argv;
    pthread_t w, r;
    if (pthread_create(&w, NULL, writer, NULL)) return 2;
    if (argc > 1) pthread_join(w, NULL);
    if (pthread_create(&r, NULL, reader, NULL)) return 2;
    if (argc == 1) pthread_join(w, NULL);
    pthread_join(r, NULL);
    return 0;
}
