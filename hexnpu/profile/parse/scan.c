// The common lines of a log, read at memory speed: one pass over a block of whole lines.
//
// A line with exactly one record in the usual shape becomes a row; a line with anything else that looks like a record
// is handed back ("odd") for grammar.py, the reference, which this file must agree with (tests/profile/test_scan.py).

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 200, NAME_BYTES = 64, MAX_DEVICES = 64, N_THREADS = 11, N_PMU = 8 };

typedef struct {
    const char * at;
    uint32_t len;
    uint64_t hash;
} text_t;

typedef struct {
    char names[MAX_NAMES][NAME_BYTES];
    uint8_t len[MAX_NAMES];
    int32_t count;
    int32_t last;
} names_t;

// Op texts by number: an arena of their bytes and an open-addressing table of numbers + 1.
typedef struct {
    text_t * texts;
    int32_t count, room;
    int32_t * slots;
    uint32_t mask;
} texts_t;

typedef struct {
    names_t devices, events;
    texts_t texts;
} scan_t;

// One row a record; the caller gives arrays with room for `room` rows each.
typedef struct {
    int64_t room;
    int64_t lines;  // out: lines seen
    int64_t n_events, n_ops, n_odd, n_pmu;
    int32_t * event_line;
    uint8_t * event_device, * event_thread, * event_name, * event_stop;
    uint32_t * event_info, * event_cycles;
    int32_t * op_line, * op_text;
    uint8_t * op_device;
    int64_t * op_usec, * op_cycles, * op_start;
    uint32_t * op_pmu;  // [room][N_PMU]
    int32_t * odd_line;
    int64_t * odd_begin, * odd_end;
} rows_t;

scan_t * scan_new(void) {
    scan_t * scan = calloc(1, sizeof(scan_t));
    if (scan == NULL) {
        return NULL;
    }
    scan->texts.mask = (1u << 12) - 1;
    scan->texts.slots = calloc(scan->texts.mask + 1, sizeof(int32_t));
    if (scan->texts.slots == NULL) {
        free(scan);
        return NULL;
    }
    return scan;
}

void scan_free(scan_t * scan) {
    for (int32_t i = 0; i < scan->texts.count; ++i) {
        free((void *) scan->texts.texts[i].at);
    }
    free(scan->texts.texts);
    free(scan->texts.slots);
    free(scan);
}

int32_t scan_count(const scan_t * scan, int32_t what) {
    return what == 0 ? scan->devices.count : what == 1 ? scan->events.count : scan->texts.count;
}

const char * scan_name(const scan_t * scan, int32_t what, int32_t number, int32_t * len) {
    if (what == 2) {
        *len = (int32_t) scan->texts.texts[number].len;
        return scan->texts.texts[number].at;
    }
    const names_t * names = what == 0 ? &scan->devices : &scan->events;
    *len = names->len[number];
    return names->names[number];
}

static int32_t name_number(names_t * names, const char * at, int64_t len, int32_t most) {
    if (len <= 0 || len > NAME_BYTES) {
        return -1;
    }
    if (names->count > 0 && names->len[names->last] == len && memcmp(names->names[names->last], at, (size_t) len) == 0) {
        return names->last;
    }
    for (int32_t i = 0; i < names->count; ++i) {
        if (names->len[i] == len && memcmp(names->names[i], at, (size_t) len) == 0) {
            return names->last = i;
        }
    }
    if (names->count == most) {
        return -1;
    }
    memcpy(names->names[names->count], at, (size_t) len);
    names->len[names->count] = (uint8_t) len;
    return names->last = names->count++;
}

static uint64_t hash_of(const char * at, uint32_t len) {
    const uint64_t k = 0x9E3779B97F4A7C15ull;
    uint64_t hash = len * k, part;
    uint32_t i = 0;
    for (; i + 8 <= len; i += 8) {
        memcpy(&part, at + i, 8);
        hash = (hash ^ part) * k;
        hash ^= hash >> 32;
    }
    part = 0;
    memcpy(&part, at + i, len - i);
    hash = (hash ^ part) * k;
    return hash ^ (hash >> 29);
}

static bool texts_grow(texts_t * texts) {
    const uint32_t mask = texts->mask * 2 + 1;
    int32_t * slots = calloc((size_t) mask + 1, sizeof(int32_t));
    if (slots == NULL) {
        return false;
    }
    for (int32_t i = 0; i < texts->count; ++i) {
        uint32_t slot = (uint32_t) texts->texts[i].hash & mask;
        while (slots[slot] != 0) {
            slot = (slot + 1) & mask;
        }
        slots[slot] = i + 1;
    }
    free(texts->slots);
    texts->slots = slots;
    texts->mask = mask;
    return true;
}

// The number of an op text, -1 when memory is short (the line is odd then).
static int32_t text_number(texts_t * texts, const char * at, uint32_t len) {
    const uint64_t hash = hash_of(at, len);
    uint32_t slot = (uint32_t) hash & texts->mask;
    for (; texts->slots[slot] != 0; slot = (slot + 1) & texts->mask) {
        const int32_t number = texts->slots[slot] - 1;
        const text_t * text = &texts->texts[number];
        if (text->hash == hash && text->len == len && memcmp(text->at, at, len) == 0) {
            return number;
        }
    }
    if (texts->count == texts->room) {
        const int32_t room = texts->room ? texts->room * 2 : 1024;
        text_t * more = realloc(texts->texts, (size_t) room * sizeof(text_t));
        if (more == NULL) {
            return -1;
        }
        texts->texts = more;
        texts->room = room;
    }
    char * copy = malloc(len + 1);
    if (copy == NULL || ((uint32_t) texts->count * 2 > texts->mask && !texts_grow(texts))) {
        free(copy);
        return -1;
    }
    slot = (uint32_t) hash & texts->mask;
    while (texts->slots[slot] != 0) {
        slot = (slot + 1) & texts->mask;
    }
    memcpy(copy, at, len);
    texts->texts[texts->count] = (text_t){ copy, len, hash };
    texts->slots[slot] = texts->count + 1;
    return texts->count++;
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads 1 to 18 digits at *p; false without one.
static inline bool number(const char ** p, const char * end, uint64_t * value) {
    const char * at = *p;
    uint64_t result = 0;
    while (at < end && is_digit(*at)) {
        result = result * 10 + (uint64_t) (*at++ - '0');
    }
    const bool good = at > *p && at - *p <= 18;
    *p = at;
    *value = result;
    return good;
}

static inline bool skip(const char ** p, const char * end, const char * what, int64_t len) {
    if (end - *p < len || memcmp(*p, what, (size_t) len) != 0) {
        return false;
    }
    *p += len;
    return true;
}

#define SKIP(p, end, what) skip(p, end, what, (int64_t) sizeof(what) - 1)

// The word before a record, `HTP0` or `HTP0:0`, with a space on both sides (or the line's begin before it).
static int32_t device_before(scan_t * scan, const char * line, const char * mark) {
    if (mark == line || mark[-1] != ' ') {
        return -1;
    }
    const char * end = mark - 1;
    const char * at = end;
    while (at > line && at[-1] != ' ' && at[-1] != '\t') {
        --at;
    }
    const char * p = at;
    while (p < end && is_letter(*p)) {
        ++p;
    }
    const char * digits = p;
    while (p < end && is_digit(*p)) {
        ++p;
    }
    if (digits == at || p == digits) {
        return -1;
    }
    if (p < end) {
        if (*p++ != ':' || p == end) {
            return -1;
        }
        while (p < end && is_digit(*p)) {
            ++p;
        }
    }
    return p == end ? name_number(&scan->devices, at, end - at, MAX_DEVICES) : -1;
}

static inline bool is_name(char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}

// `NAME: thread N [event NAME ]info N start|stop N` up to the line's end.
static bool read_event(scan_t * scan, rows_t * rows, const char * p, const char * end, int32_t device, bool of_op) {
    const char * name = p;
    while (p < end && *p != ':' && *p != ' ' && *p != '\t' && *p != '|') {
        ++p;
    }
    int64_t len = p - name;
    uint64_t thread, info, cycles;
    if (len == 0 || !SKIP(&p, end, ": thread ") || !number(&p, end, &thread) || thread >= N_THREADS) {
        return false;
    }
    if (of_op) {
        if (!SKIP(&p, end, " event ")) {
            return false;
        }
        for (name = p; p < end && is_name(*p); ++p) {
        }
        len = p - name;
    }
    if (!SKIP(&p, end, " info ") || !number(&p, end, &info) || info > UINT32_MAX) {
        return false;
    }
    bool stop = false;
    if (!SKIP(&p, end, " start ")) {
        if (!SKIP(&p, end, " stop ")) {
            return false;
        }
        stop = true;
    }
    if (!number(&p, end, &cycles) || cycles > UINT32_MAX || p != end) {
        return false;
    }
    const int32_t number_of_name = name_number(&scan->events, name, len, MAX_NAMES);
    if (number_of_name < 0) {
        return false;
    }
    const int64_t row = rows->n_events++;
    rows->event_line[row] = (int32_t) rows->lines;
    rows->event_device[row] = (uint8_t) device;
    rows->event_thread[row] = (uint8_t) thread;
    rows->event_name[row] = (uint8_t) number_of_name;
    rows->event_stop[row] = stop;
    rows->event_info[row] = (uint32_t) info;
    rows->event_cycles[row] = (uint32_t) cycles;
    return true;
}

static bool read_pmu(const char ** p, const char * end, uint32_t pmu[N_PMU]) {
    for (int i = 0; i < N_PMU; ++i) {
        uint64_t value;
        if (!number(p, end, &value) || value > UINT32_MAX) {
            return false;
        }
        pmu[i] = (uint32_t) value;
        if (!(i < N_PMU - 1 ? SKIP(p, end, ",") : SKIP(p, end, "]"))) {
            return false;
        }
    }
    return true;
}

// `TEXTusec N cycles N[ start N[ mhz N.N[ pmu [8 numbers]]]]` up to the line's end.
static bool read_op(scan_t * scan, rows_t * rows, const char * text, const char * end, int32_t device) {
    if (end - text > 8 && memcmp(text, "OPBATCH|", 8) == 0) {
        return false;
    }
    const char * p = end - 5;
    while (p > text && memcmp(p, "usec ", 5) != 0) {
        --p;
    }
    if (p <= text || p[-1] == '-') {
        return false;
    }
    const uint32_t len = (uint32_t) (p - text);
    const bool pipes = p[-1] == '|';
    p += 5;
    uint64_t usec, cycles, start = 0, mhz;
    if (!number(&p, end, &usec) || !SKIP(&p, end, " cycles ") || !number(&p, end, &cycles) || usec > UINT32_MAX
        || cycles > UINT32_MAX) {
        return false;
    }
    const bool has_start = SKIP(&p, end, " start ");
    bool has_mhz = false, has_pmu = false;
    const int64_t row = rows->n_ops;
    if (has_start) {
        if (!number(&p, end, &start) || start > UINT32_MAX) {
            return false;
        }
        has_mhz = SKIP(&p, end, " mhz ");
        if (has_mhz && (!number(&p, end, &mhz) || !SKIP(&p, end, ".") || !number(&p, end, &mhz))) {
            return false;
        }
    }
    if (SKIP(&p, end, " pmu [")) {
        has_pmu = read_pmu(&p, end, &rows->op_pmu[row * N_PMU]);
        if (!has_pmu) {
            return false;
        }
    }
    if (p != end || (pipes && !has_mhz)) {
        return false;
    }
    const int32_t number_of_text = text_number(&scan->texts, text, len);
    if (number_of_text < 0) {
        return false;
    }
    if (!has_pmu) {
        memset(&rows->op_pmu[row * N_PMU], 0, N_PMU * sizeof(uint32_t));
    }
    rows->n_pmu += has_pmu;
    rows->op_line[row] = (int32_t) rows->lines;
    rows->op_device[row] = (uint8_t) device;
    rows->op_text[row] = number_of_text;
    rows->op_usec[row] = (int64_t) usec;
    rows->op_cycles[row] = (int64_t) cycles;
    rows->op_start[row] = has_start ? (int64_t) start : -1;
    rows->n_ops++;
    return true;
}

typedef enum { NO_MARK, PROFILE_OP, TRACE_EVT, TRACE_OP, OTHER_MARK } mark_t;

// What the dash at `dash` belongs to, if it stands in `profile-` or `trace-`. *mark: where that word begins.
static inline mark_t mark_of(const char * line, const char * dash, const char * end, const char ** mark) {
    if (dash - line >= 7 && memcmp(dash - 7, "profile", 7) == 0) {
        *mark = dash - 7;
        return end - dash > 4 && memcmp(dash, "-op ", 4) == 0 ? PROFILE_OP : OTHER_MARK;
    }
    if (dash - line >= 5 && memcmp(dash - 5, "trace", 5) == 0) {
        *mark = dash - 5;
        if (end - dash > 5 && memcmp(dash, "-evt ", 5) == 0) {
            return TRACE_EVT;
        }
        return end - dash > 4 && memcmp(dash, "-op ", 4) == 0 ? TRACE_OP : OTHER_MARK;
    }
    return NO_MARK;
}

// A line of the oldest generation: `ggml-hex: ... : total N us`.
static bool looks_old(const char * dash, const char * end) {
    static const char total[] = " : total ";
    for (const char * p = dash; (p = memchr(p, 't', (size_t) (end - p))) != NULL; ++p) {
        if (end - p >= 6 && p - dash > 3 && memcmp(p - 3, total, sizeof(total) - 1) == 0) {
            return true;
        }
    }
    return false;
}

static inline bool is_banner(const char * dash, const char * end) {
    static const char rest[] = "-hex: Profiling mode";
    return end - dash >= (int64_t) sizeof(rest) && memcmp(dash, rest, sizeof(rest) - 1) == 0;
}

static void read_line(scan_t * scan, rows_t * rows, const char * block, const char * line, const char * end) {
    const char * mark = NULL, * hex = NULL;
    mark_t kind = NO_MARK;
    bool banner = false;
    for (const char * p = line; (p = memchr(p, '-', (size_t) (end - p))) != NULL; ++p) {
        const char * at = NULL;
        const mark_t found = mark_of(line, p, end, &at);
        if (found == NO_MARK) {
            if (p - line >= 4 && end - p > 4 && memcmp(p - 4, "ggml-hex:", 9) == 0) {
                hex = hex == NULL ? p : hex;
                banner = banner || is_banner(p, end);
            }
        } else if (kind != NO_MARK || found == OTHER_MARK) {
            kind = OTHER_MARK;
            break;
        } else if (found == PROFILE_OP) {
            kind = found;
            mark = at;
        } else {  // an event that fills the rest of its line leaves no room for a second record
            const int32_t device = device_before(scan, line, at);
            const bool of_op = found == TRACE_OP;
            if (device >= 0 && read_event(scan, rows, at + (of_op ? 9 : 10), end, device, of_op)) {
                return;
            }
            kind = OTHER_MARK;
            break;
        }
    }
    if (kind == NO_MARK && !banner && (hex == NULL || !looks_old(hex, end))) {
        return;
    }
    if (kind == PROFILE_OP) {
        const int32_t device = device_before(scan, line, mark);
        if (device >= 0 && read_op(scan, rows, mark + 11, end, device)) {
            return;
        }
    }
    const int64_t row = rows->n_odd++;
    rows->odd_line[row] = (int32_t) rows->lines;
    rows->odd_begin[row] = line - block;
    rows->odd_end[row] = end - block;
}

// Reads the block's lines from `from` on (each ends in a newline); returns where it stopped: at the end, or where the
// rows were full. Rows are counted from 0 in each call.
int64_t scan_block(scan_t * scan, rows_t * rows, const char * block, int64_t len, int64_t from, int64_t first_line) {
    rows->lines = first_line;
    rows->n_events = rows->n_ops = rows->n_odd = rows->n_pmu = 0;
    const char * line = block + from;
    const char * const stop = block + len;
    while (line < stop) {
        if (rows->n_events == rows->room || rows->n_ops == rows->room || rows->n_odd == rows->room) {
            break;
        }
        const char * end = memchr(line, '\n', (size_t) (stop - line));
        if (end == NULL) {
            break;
        }
        read_line(scan, rows, block, line, end);
        rows->lines++;
        line = end + 1;
    }
    return line - block;
}
