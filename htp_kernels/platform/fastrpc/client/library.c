/* From a module's URI to the file of its DSP library. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define SCHEME "file://"

/* The DSP's own codes: it is there that the real driver reads the URI and looks for the file. */
#define DSP(aee) ((int) (DSP_AEE_EOFFSET + (aee)))

/* Copies n characters; false: no room. */
static bool copy(char *to, size_t room, const char *from, size_t n) {
    if (n >= room) {
        return false;
    }
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

/* What `&name=` stands for in the URI, up to the next `&`. */
static const char *option(const char *uri, const char *name, size_t *n) {
    const char *at = strstr(uri, name);
    if (!at) {
        return NULL;
    }
    at += strlen(name);
    *n = strcspn(at, "&");
    return at;
}

static int parse_domain(const char *uri, int *domain, const char *who) {
    size_t n = 0;
    const char *name = option(uri, "&_dom=", &n), *session;
    *domain = name ? domain_of_name(name, n) : -1;
    if (name && *domain < 0) {
        return fail(AEE_EBADPARM, who, "%s: no DSP is called %.*s; this machine has cdsp%s", uri, (int) n, name,
                    npus() > 1 ? ", cdsp1 ..." : "");
    }
    session = option(uri, "&_session=", &n);
    char *end = NULL;
    long number = session ? strtol(session, &end, 10) : 0;
    if (session && (end != session + n || !n || number < 0 || number >= N_SESSIONS)) {
        return fail(AEE_EBADPARM, who, "%s: no session %.*s; they are 0 to %d", uri, (int) n, session, N_SESSIONS - 1);
    }
    *domain = *domain < 0 ? -1 : *domain + (int) number * N_DOMAINS;
    return AEE_SUCCESS;
}

/* "NAME" stands for libNAME_skel.so and NAME_skel_invoke, as old programs write it. */
static bool parse_name(const char *uri, struct module_uri *out) {
    size_t n = strcspn(uri, "&?");
    int file = snprintf(out->file, sizeof out->file, "lib%.*s_skel.so", (int) n, uri);
    int symbol = snprintf(out->symbol, sizeof out->symbol, "%.*s_skel_invoke", (int) n, uri);
    return n && file < (int) sizeof out->file && symbol < (int) sizeof out->symbol;
}

static bool parse_file(const char *uri, struct module_uri *out) {
    const char *file = uri + strlen(SCHEME);
    file += *file == '/';
    const char *question = strchr(file, '?');
    if (!question || question == file) {
        return false;
    }
    const char *symbol = question + 1;
    size_t n = strcspn(symbol, "&");
    return n && copy(out->file, sizeof out->file, file, (size_t) (question - file)) &&
           copy(out->symbol, sizeof out->symbol, symbol, n);
}

int uri_parse(const char *uri, struct module_uri *out, const char *who) {
    bool is_file = !strncmp(uri, SCHEME, strlen(SCHEME));
    if (!(is_file ? parse_file(uri, out) : !strchr(uri, '/') && parse_name(uri, out))) {
        return fail(DSP(AEE_EBADPARM), who,
                    "%s is no module's URI: write file:///libNAME_skel.so?NAME_skel_handle_invoke&"
                    "_modver=1.0&_dom=cdsp",
                    uri);
    }
    return parse_domain(uri, &out->domain, who);
}

static bool try(char path[FR_PATH_BYTES], const char *folder, size_t n, const char *inner, const char *file) {
    char candidate[FR_PATH_BYTES], real[PATH_MAX];
    int length = snprintf(candidate, sizeof candidate, "%.*s/%s%s", (int) n, folder, inner, file);
    if (length >= (int) sizeof candidate || access(candidate, R_OK) || !realpath(candidate, real)) {
        return false;
    }
    return copy(path, FR_PATH_BYTES, real, strlen(real));
}

/* Each folder of a list, which the DSP's variables part by ';' and the host's by ':'. */
static bool search(char path[FR_PATH_BYTES], const char *list, const char *file) {
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ";:");
        if (n && (try(path, at, n, "cdsp/", file) || try(path, at, n, "", file))) {
            return true;
        }
        at += n + (at[n] != 0);
    }
    return false;
}

int library_find(const char *file, char path[FR_PATH_BYTES], const char *who) {
    static const char *const variables[] = {"DSP_LIBRARY_PATH", "ADSP_LIBRARY_PATH", "LD_LIBRARY_PATH"};
    char real[PATH_MAX], searched[1024] = "";
    if (strchr(file, '/')) {
        if (!access(file, R_OK) && realpath(file, real) && copy(path, FR_PATH_BYTES, real, strlen(real))) {
            return AEE_SUCCESS;
        }
        return fail(DSP(AEE_EUNABLETOLOAD), who, "there is no DSP library %s", file);
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *list = getenv(variables[i]);
        if (search(path, list, file)) {
            return AEE_SUCCESS;
        }
        size_t used = strlen(searched);
        snprintf(searched + used, sizeof searched - used, "%s=%s, ", variables[i], list ? list : "");
    }
    if (search(path, ".", file)) {
        return AEE_SUCCESS;
    }
    return fail(DSP(AEE_EUNABLETOLOAD), who,
                "no DSP library %s in %sor the current folder: add its folder to "
                "ADSP_LIBRARY_PATH",
                file, searched);
}
