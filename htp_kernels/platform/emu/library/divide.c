/*
 * Part of every DSP library: integer division by zero gives a number, as on the DSP, and no signal.
 *
 * The DSP divides by a function, which returns whatever its loop ends with. x86 traps, on INT_MIN / -1 as well. This
 * handler gives what arm64's instruction gives: quotient 0 and the dividend as remainder, or INT_MIN and 0. Other
 * causes of SIGFPE go to whoever handled the signal before.
 */
#if defined(__x86_64__)
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* A div or idiv at the place of the signal. */
struct division {
    const uint8_t *end;
    int bits;
    bool is_signed;
    uint64_t divisor;
};

static struct sigaction before;

static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static uint64_t low_bits(uint64_t value, int bits) {
    return bits == 64 ? value : value & ((1ull << bits) - 1);
}

/* The address of a ModRM operand in memory; *p goes past it. */
static uint64_t address_of(const uint8_t **p, uint8_t rex, const greg_t *registers) {
    int mod = **p >> 6, rm = **p & 7;
    const uint8_t *next = *p + 1;
    uint64_t address = 0;
    bool no_base = mod == 0 && rm == 5; /* relative to the next instruction */
    if (rm == 4) {
        int scale = *next >> 6, index = (*next >> 3 & 7) | (rex & 2) << 2, base = *next & 7;
        next++;
        address += index == 4 ? 0 : (uint64_t) registers[order[index]] << scale;
        no_base = mod == 0 && base == 5;
        address += no_base ? 0 : (uint64_t) registers[order[base | (rex & 1) << 3]];
    } else if (!no_base) {
        address += (uint64_t) registers[order[rm | (rex & 1) << 3]];
    }
    int32_t displacement = 0;
    if (mod == 1) {
        displacement = (int8_t) *next;
        next++;
    } else if (mod == 2 || no_base) {
        memcpy(&displacement, next, 4);
        next += 4;
    }
    *p = next;
    return address + (uint64_t) (int64_t) displacement + (no_base && rm == 5 ? (uint64_t) (uintptr_t) next : 0);
}

static bool decode(const uint8_t *p, const greg_t *registers, struct division *division) {
    uint8_t rex = 0;
    division->bits = 32;
    for (; *p == 0x66; p++) {
        division->bits = 16;
    }
    if ((*p & 0xf0) == 0x40) {
        rex = *p++;
        division->bits = rex & 8 ? 64 : division->bits;
    }
    uint8_t opcode = *p++;
    int operation = *p >> 3 & 7, rm = *p & 7;
    if ((opcode != 0xf6 && opcode != 0xf7) || operation < 6) {
        return false;
    }
    division->bits = opcode == 0xf6 ? 8 : division->bits;
    division->is_signed = operation == 7;
    if (*p >> 6 == 3) {
        bool is_high = division->bits == 8 && !rex && rm >= 4; /* ah, ch, dh, bh */
        uint64_t value = (uint64_t) registers[order[is_high ? rm - 4 : rm | (rex & 1) << 3]];
        division->divisor = low_bits(is_high ? value >> 8 : value, division->bits);
        division->end = p + 1;
        return true;
    }
    const void *at = (const void *) (uintptr_t) address_of(&p, rex, registers);
    division->divisor = 0;
    memcpy(&division->divisor, at, (size_t) division->bits / 8);
    division->end = p;
    return true;
}

static void put(greg_t *to, uint64_t value, int shift, int bits) {
    uint64_t mask = low_bits(~0ull, bits) << shift;
    uint64_t rest = bits == 32 ? 0 : (uint64_t) *to & ~mask; /* a write of 32 bits clears the upper ones */
    *to = (greg_t) (rest | (low_bits(value, bits) << shift));
}

static void divide(greg_t *registers, const struct division *d) {
    uint64_t smallest = 1ull << (d->bits - 1);
    uint64_t dividend = low_bits((uint64_t) registers[REG_RAX], d->bits);
    uint64_t quotient = d->divisor ? smallest : 0;
    uint64_t remainder = d->divisor ? 0 : dividend;
    put(&registers[REG_RAX], quotient, 0, d->bits);
    if (d->bits == 8) {
        put(&registers[REG_RAX], remainder, 8, 8);
    } else {
        put(&registers[REG_RDX], remainder, 0, d->bits);
    }
}

static bool can_give(const struct division *d, const greg_t *registers) {
    uint64_t dividend = low_bits((uint64_t) registers[REG_RAX], d->bits);
    bool overflows = d->is_signed && d->divisor == low_bits(~0ull, d->bits) && dividend == 1ull << (d->bits - 1);
    return d->divisor == 0 || overflows;
}

static void on_sigfpe(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *) context)->uc_mcontext.gregs;
    struct division division;
    if (info->si_code == FPE_INTDIV && decode((const uint8_t *) registers[REG_RIP], registers, &division) &&
        can_give(&division, registers)) {
        divide(registers, &division);
        registers[REG_RIP] = (greg_t) (uintptr_t) division.end;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        signal(number, SIG_DFL);
        raise(number);
    }
}

__attribute__((constructor)) static void catch_division(void) {
    struct sigaction action = {.sa_sigaction = on_sigfpe, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGFPE, NULL, &before);
    if (!(before.sa_flags & SA_SIGINFO) || before.sa_sigaction != on_sigfpe) {
        sigaction(SIGFPE, &action, &before);
    }
}

/* A library that is closed takes its handler along, unless somebody has put another one on top. */
__attribute__((destructor)) static void leave_division(void) {
    struct sigaction now;
    sigaction(SIGFPE, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigfpe) {
        sigaction(SIGFPE, &before, NULL);
    }
}
#endif
