/* Between the files of the emulator's platform. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "AEEStdErr.h"

/* An AEE code as the DSP gives it, whichever side this file is compiled for. */
#define DSP_ERROR(code) ((int) (DSP_AEE_EOFFSET + ((code) - AEE_EOFFSET)))

/* Each takes the value of its environment variable (NULL: not set); gives NULL or what is wrong with it. */
const char *emu_dma_configure(const char *value);
const char *emu_skew_configure(const char *value);
/* A number from 0 to `most` out of the environment; `otherwise` where it is not set or no such number. */
uint32_t emu_setting(const char *name, uint32_t most, uint32_t otherwise);
uint32_t emu_arch(void);
uint64_t emu_nanoseconds(void);
/* A line to where log lines go, in one piece: start, text without line ends behind it, end of line. */
void emu_log_line(const char *start, const char *format, va_list args);
/* A place where a session may be late. */
void emu_skew(void);

/* vtcm.c, the memory; crm.c says who has it. An arena is the VTCM of one NPU. */
#define EMU_MAX_ARENAS 16u
void emu_vtcm_many_sessions(void);
uint32_t emu_n_arenas(void);
uint32_t emu_vtcm_bytes(void); /* of this thread's session */
uint8_t *emu_arena_base(uint32_t arena);
uint32_t emu_arena_bytes(uint32_t arena);
/* Makes the arena `bytes` large; nobody may hold any of it. NULL: no room. */
uint8_t *emu_arena_fill(uint32_t arena, uint32_t bytes);
/* A part begins to be held, with poison in it, and ends to be. */
void emu_arena_take(uint32_t arena, uint32_t offset, uint32_t bytes);
void emu_arena_give(uint32_t arena, uint32_t offset, uint32_t bytes);

/* The matrix unit that an active context has, counted from 1; 0: none. */
uint32_t emu_crm_unit(unsigned int context_id);
uint32_t emu_n_hmx(void);
/* A thread that ends gives its matrix unit up. */
void emu_hmx_end_thread(void);
