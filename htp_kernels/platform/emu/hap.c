/* Start-up of the emulator, its settings and clocks. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "HAP_perf.h"
#include "emu.h"
#include "hap-internal.h"
#include "qurt_timer.h"

const char *emu_init(void) {
    const char *wrong = emu_dma_configure(getenv("HEXNPU_EMU_DMA"));
    return wrong ? wrong : emu_skew_configure(getenv("HEXNPU_EMU_SKEW"));
}

void emu_many_sessions(void) {
    emu_low_many_sessions();
    emu_vtcm_many_sessions();
}

void emu_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    emu_log_line("hexnpu emulator: ", format, args);
    va_end(args);
    abort();
}

uint32_t emu_setting(const char *name, uint32_t most, uint32_t otherwise) {
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long value = text && *text ? strtoul(text, &end, 10) : 0;
    return end && !*end && value <= most ? (uint32_t) value : otherwise;
}

uint32_t emu_arch(void) {
    uint32_t arch = emu_setting("HEXNPU_EMU_ARCH", 99, __HVX_ARCH__);
    return arch == 73 || arch == 75 || arch == 79 || arch == 81 ? arch : __HVX_ARCH__;
}

uint64_t emu_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

uint64_t HAP_perf_get_pcycles(void) {
    return emu_nanoseconds() * (EMU_CLOCK_KHZ / 1000) / 1000;
}

uint64_t HAP_perf_get_qtimer_count(void) {
    return emu_nanoseconds() / 1000 * 192 / 10;
}

uint64_t HAP_perf_get_time_us(void) {
    return emu_nanoseconds() / 1000;
}

unsigned long long qurt_get_core_pcycles(void) {
    return HAP_perf_get_pcycles();
}

unsigned long long qurt_sysclock_get_hw_ticks(void) {
    return HAP_perf_get_qtimer_count();
}

unsigned long long qurt_timer_get_ticks(void) {
    return HAP_perf_get_qtimer_count();
}

unsigned long long qurt_timer_timetick_to_us(unsigned long long ticks) {
    return HAP_perf_qtimer_count_to_us(ticks);
}
