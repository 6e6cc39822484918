// Starts programs on a Windows target. sshd hands commands to cmd.exe, which has no quoting that survives everything;
// so the command line names this program only, and all the rest comes on its input, where no shell looks:
//
//     uint32 bytes, UTF-16 words, each ended by a NUL:
//         "run" directory program command-line NAME=VALUE...
//         "kill" job
//         "free" directory
//     and for run, then, the program's input in pieces: uint32 bytes, bytes; a piece of 0 bytes is its end
//
// Our first line of output says how it went. Where the input breaks off the connection is gone, and so is the program.
// hexnpu/deploy/windows.py is the other side. No C library: zig would first have to compile one, for minutes.
#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

enum { MAX_REQUEST = 1 << 20, MAX_PATH_CHARS = 1 << 15, PIECE = 1 << 16, LARGEST_CODE = 255, N_WORDS = 5 };

static HANDLE job, input, to_program;

// One line "TEXT NUMBER".
static void say(DWORD stream, const char *text, uint64_t number) {
    char line[96], *at = line + sizeof line;
    DWORD written;
    *--at = '\n';
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    *--at = ' ';
    for (int i = lstrlenA(text); i > 0 && at > line;) *--at = text[--i];
    WriteFile(GetStdHandle(stream), at, (DWORD)(line + sizeof line - at), &written, NULL);
}

static void fail(const char *text, DWORD code) {
    say(STD_OUTPUT_HANDLE, text, code);
    ExitProcess(1);
}

static bool read_all(void *to, DWORD bytes) {
    for (DWORD got; bytes; bytes -= got, to = (char *)to + got)
        if (!ReadFile(input, to, bytes, &got, NULL) || !got) return false;
    return true;
}

static void write_all(const char *from, DWORD bytes) {
    for (DWORD written; to_program && bytes; bytes -= written, from += written)
        if (!WriteFile(to_program, from, bytes, &written, NULL)) return;
}

static DWORD WINAPI feed(void *unused) {
    static char piece[PIECE];
    (void)unused;
    for (uint32_t left; read_all(&left, sizeof left);) {
        if (!left && to_program) {
            CloseHandle(to_program);
            to_program = NULL;
        }
        while (left) {
            DWORD part = left < PIECE ? left : PIECE;
            if (!read_all(piece, part)) TerminateJobObject(job, LARGEST_CODE);
            write_all(piece, part);
            left -= part;
        }
    }
    TerminateJobObject(job, LARGEST_CODE);
    return 0;
}

// A job that this process and all its descendants belong to: what ends the job ends them all, and so does our end.
static void make_job(void) {
    static JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
    WCHAR name[] = L"Local\\hexnpu-0000000000";
    DWORD id = GetCurrentProcessId();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    for (int i = lstrlenW(name) - 1; id; id /= 10) name[i--] = (WCHAR)(L'0' + id % 10);
    job = CreateJobObjectW(NULL, name);
    if (!job || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits) ||
        !AssignProcessToJobObject(job, GetCurrentProcess()))
        fail("hexnpu-runner:job", GetLastError());
}

static bool is_path(const WCHAR *name) {
    for (; *name; name++)
        if (*name == L'/' || *name == L'\\' || *name == L':') return true;
    return false;
}

// A path as it is, a bare name by the search path; there `.exe` may be left out.
static const WCHAR *find_program(const WCHAR *name) {
    static WCHAR found[MAX_PATH_CHARS];
    DWORD length = is_path(name) ? GetFullPathNameW(name, MAX_PATH_CHARS, found, NULL)
                                 : SearchPathW(NULL, name, L".exe", MAX_PATH_CHARS, found, NULL);
    if (!length || length >= MAX_PATH_CHARS) fail("hexnpu-runner:program", GetLastError());
    return found;
}

static void set_variables(WCHAR *words) {
    while (*words) {
        WCHAR *next = words + lstrlenW(words) + 1, *value = words;
        while (*value && *value != L'=') value++;
        if (*value) *value++ = 0;
        if (!SetEnvironmentVariableW(words, value)) fail("hexnpu-runner:variable", GetLastError());
        words = next;
    }
}

static HANDLE start(const WCHAR *program, WCHAR *line) {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    static STARTUPINFOW streams;
    PROCESS_INFORMATION child;
    streams.cb = sizeof streams;
    streams.dwFlags = STARTF_USESTDHANDLES;
    streams.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    streams.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreatePipe(&streams.hStdInput, &to_program, &inherited, PIECE)) fail("hexnpu-runner:pipe", GetLastError());
    SetHandleInformation(to_program, HANDLE_FLAG_INHERIT, 0);
    SetHandleInformation(input, HANDLE_FLAG_INHERIT, 0);
    SetHandleInformation(streams.hStdOutput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    SetHandleInformation(streams.hStdError, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    if (!CreateProcessW(program, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &streams, &child))
        fail("hexnpu-runner:program", GetLastError());
    CloseHandle(streams.hStdInput);
    say(STD_OUTPUT_HANDLE, "hexnpu-runner:started", GetCurrentProcessId());
    ResumeThread(child.hThread);
    return child.hProcess;
}

static DWORD run(const WCHAR *directory, const WCHAR *program, WCHAR *line, WCHAR *variables) {
    DWORD code;
    if (!SetCurrentDirectoryW(directory)) fail("hexnpu-runner:directory", GetLastError());
    set_variables(variables);
    make_job();
    HANDLE child = start(find_program(program), line);
    CreateThread(NULL, 0, feed, NULL, 0, NULL);
    WaitForSingleObject(child, INFINITE);
    GetExitCodeProcess(child, &code);
    if (code <= LARGEST_CODE) return code;
    // Others on the way keep the low byte only, which could be 0.
    say(STD_ERROR_HANDLE, "the program ended with exit code", code);
    return LARGEST_CODE;
}

static DWORD kill_job(const WCHAR *name) {
    HANDLE other = OpenJobObjectW(JOB_OBJECT_TERMINATE, FALSE, name);
    return other && TerminateJobObject(other, LARGEST_CODE) ? 0 : 1;
}

static DWORD tell_free(const WCHAR *directory) {
    ULARGE_INTEGER bytes;
    if (!GetDiskFreeSpaceExW(directory, &bytes, NULL, NULL)) fail("hexnpu-runner:directory", GetLastError());
    say(STD_OUTPUT_HANDLE, "hexnpu-runner:free", bytes.QuadPart);
    return 0;
}

static DWORD serve(void) {
    // What is not sent reads as empty words.
    static WCHAR request[MAX_REQUEST / sizeof(WCHAR) + N_WORDS + 1];
    WCHAR *words[N_WORDS], *next = request;
    uint32_t bytes;
    input = GetStdHandle(STD_INPUT_HANDLE);
    if (!read_all(&bytes, sizeof bytes) || bytes > MAX_REQUEST || !read_all(request, bytes))
        fail("hexnpu-runner:request", 0);
    for (int i = 0; i < N_WORDS; i++) {
        words[i] = next;
        next += lstrlenW(next) + 1;
    }
    if (words[0][0] == L'r') return run(words[1], words[2], words[3], words[4]);
    return words[0][0] == L'k' ? kill_job(words[1]) : tell_free(words[1]);
}

void runner(void) { ExitProcess(serve()); }
