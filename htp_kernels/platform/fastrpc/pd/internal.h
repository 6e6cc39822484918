/* Between the files of htp-pd. */
#pragma once

#include "AEEStdErr.h"
#include "pd.h"
#include "remote.h"

#pragma GCC visibility push(hidden)

/* ---- memory.c ---- */
int pd_region_add(uint64_t id, uint64_t bytes, int fd); /* takes the descriptor; an AEE code */
void pd_region_drop(uint64_t id);
int pd_map_add(const struct fr_ctl *ctl, uint64_t *address);
void pd_map_drop(uint32_t fd);
int pd_buffer_source(int handle, uint64_t *bytes);

/* ---- call.c ---- */
bool pd_worker_start(struct fr_slot *slot, uint32_t index);
void pd_set_stack_bytes(uint64_t bytes);

/* ---- module.c ---- */
/* Loads a DSP library and opens its module: the number in *module, or an AEE code, and a sentence where one helps. */
int pd_module_open(const char *path, const char *symbol, const char *uri, uint32_t *module, char *sentence,
                   size_t room);
int pd_module_close(uint32_t module);
int pd_module_invoke(uint32_t module, uint32_t scalars, remote_arg *args);

#pragma GCC visibility pop
