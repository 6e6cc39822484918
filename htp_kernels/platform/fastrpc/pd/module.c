/* DSP libraries: loaded, looked at, opened, invoked, closed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define MAX_MODULES 4096u
#define HEXAGON 164 /* EM_HEXAGON, which older headers lack */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_NAME "x86-64"
#else
#define OWN_MACHINE EM_AARCH64
#define OWN_NAME "aarch64"
#endif

typedef int (*handle_invoke)(remote_handle64 h, uint32_t scalars, remote_arg *args);
typedef int (*plain_invoke)(uint32_t scalars, remote_arg *args);

struct module {
    void *library; /* NULL: free */
    void *entry;
    bool has_handle; /* the entry takes one; else it is of the old kind */
    remote_handle64 handle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module modules[MAX_MODULES];

struct problem {
    char *sentence;
    size_t room;
};

#define PROBLEM(p, ...) ((void) snprintf((p)->sentence, (p)->room, __VA_ARGS__))

static bool is_elf(int fd, Elf64_Ehdr *header) {
    ssize_t n = pread(fd, header, sizeof *header, 0);
    return n >= (ssize_t) sizeof(Elf32_Ehdr) && !memcmp(header->e_ident, ELFMAG, SELFMAG);
}

/* Whether all that is to be loaded is there: the loader maps it, and would find out by SIGBUS. */
static bool is_whole(int fd, const Elf64_Ehdr *header) {
    struct stat info;
    bool whole = !fstat(fd, &info);
    for (unsigned i = 0; whole && i < header->e_phnum; i++) {
        Elf64_Phdr part;
        whole = pread(fd, &part, sizeof part, (off_t) (header->e_phoff + i * sizeof part)) == sizeof part &&
                (part.p_type != PT_LOAD || part.p_offset + part.p_filesz <= (uint64_t) info.st_size);
    }
    return whole;
}

/* What a look at the file says against loading it; the machine lies at one place in 32 and 64 bits. */
static bool looks_good(int fd, const char *path, const struct problem *p) {
    Elf64_Ehdr header;
    if (!is_elf(fd, &header)) {
        PROBLEM(p, "%s is no library: build it with `hexnpu emu-cc -shared`", path);
        return false;
    }
    if (header.e_machine == HEXAGON) {
        PROBLEM(p,
                "%s is built for a real Hexagon: build it for the emulator, with `hexnpu emu-cc` in place of "
                "hexagon-clang",
                path);
        return false;
    }
    if (header.e_machine != OWN_MACHINE) {
        PROBLEM(p,
                "%s is built for another processor (ELF machine %u): build it on this one (" OWN_NAME
                ") with `hexnpu emu-cc`",
                path, header.e_machine);
        return false;
    }
    if (!is_whole(fd, &header)) {
        PROBLEM(p, "%s is cut off: copy or link it again", path);
        return false;
    }
    return true;
}

static bool loadable(const char *path, const struct problem *p) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = looks_good(fd, path, p);
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

struct place {
    uintptr_t base, end;
};

static int take_place(struct dl_phdr_info *info, size_t size, void *data) {
    (void) size;
    struct place *place = data;
    if (info->dlpi_addr != place->base) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
        if (h->p_type == PT_LOAD && end > place->end) {
            place->end = end;
        }
    }
    return 1;
}

/* DSP code keeps pointers in 32 bits. */
static bool lies_low(void *library, const char *path, const struct problem *p) {
    struct link_map *map = NULL;
    struct place place = {0};
    if (dlinfo(library, RTLD_DI_LINKMAP, &map)) {
        return false;
    }
    place.base = map->l_addr;
    dl_iterate_phdr(take_place, &place);
    if (place.end >> 32) {
        PROBLEM(p,
                "%s was loaded at %p, above the 4 GiB that DSP code can point at: link it with `hexnpu emu-cc`, which "
                "gives it an address; if it was, another library of the session lies there: change its -soname",
                path, (void *) place.base);
        return false;
    }
    return true;
}

static void *load(const char *path, const char *symbol, void **entry, int *aee, const struct problem *p) {
    *aee = (int) AEE_EUNABLETOLOAD;
    if (!loadable(path, p)) {
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        PROBLEM(p, "%s; what is neither in the library nor in the emulator cannot be called", dlerror());
        return NULL;
    }
    bool low = lies_low(library, path, p);
    *entry = low ? dlsym(library, symbol) : NULL;
    if (low && !*entry) {
        *aee = (int) AEE_ENOSUCHSYMBOL;
        PROBLEM(p, "%s has no function %s: link the skel that `hexnpu idl` writes, or correct the URI", path, symbol);
    }
    if (!*entry) {
        dlclose(library);
        return NULL;
    }
    return library;
}

/* Method 0 of a module with handles: the URI in, the handle out. */
static int call_open(struct module *m, const char *uri) {
    int32_t bytes = (int32_t) strlen(uri) + 1;
    remote_arg args[3] = {{.buf = {&bytes, sizeof bytes}}, {.buf = {(void *) (uintptr_t) uri, (size_t) bytes}}};
    int aee = ((handle_invoke) m->entry)(0, REMOTE_SCALARS_MAKEX(0, 0, 2, 0, 0, 1), args);
    m->handle = args[2].h64;
    return aee;
}

static bool add(const struct module *m, uint32_t *number) {
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < MAX_MODULES && modules[i].library) {
        i++;
    }
    if (i < MAX_MODULES) {
        modules[i] = *m;
    }
    pthread_mutex_unlock(&lock);
    *number = i;
    return i < MAX_MODULES;
}

int pd_module_open(const char *path, const char *symbol, const char *uri, uint32_t *module, char *sentence,
                   size_t room) {
    struct problem p = {sentence, room};
    struct module m = {.has_handle = strstr(symbol, "handle_invoke")};
    int aee = AEE_SUCCESS;
    m.library = load(path, symbol, &m.entry, &aee, &p);
    if (!m.library) {
        return aee;
    }
    aee = m.has_handle ? call_open(&m, uri) : AEE_SUCCESS;
    if (aee) {
        PROBLEM(&p, "the open() of %s failed", path);
    } else if (!add(&m, module)) {
        aee = (int) AEE_EOUTOFHANDLES;
    }
    if (aee) {
        dlclose(m.library);
    }
    return aee;
}

static struct module get(uint32_t module) {
    pthread_mutex_lock(&lock);
    struct module m = module < MAX_MODULES ? modules[module] : (struct module){0};
    pthread_mutex_unlock(&lock);
    return m;
}

int pd_module_close(uint32_t module) {
    struct module m = get(module);
    if (!m.library) {
        return (int) AEE_ENOSUCHMOD;
    }
    remote_arg arg = {.h64 = m.handle};
    int aee = m.has_handle ? ((handle_invoke) m.entry)(0, REMOTE_SCALARS_MAKEX(0, 1, 0, 0, 1, 0), &arg) : AEE_SUCCESS;
    pthread_mutex_lock(&lock);
    modules[module].library = NULL;
    pthread_mutex_unlock(&lock);
    dlclose(m.library);
    return aee;
}

int pd_module_invoke(uint32_t module, uint32_t scalars, remote_arg *args) {
    struct module m = get(module);
    if (!m.library) {
        return (int) AEE_ENOSUCHMOD;
    }
    return m.has_handle ? ((handle_invoke) m.entry)(m.handle, scalars, args) : ((plain_invoke) m.entry)(scalars, args);
}
