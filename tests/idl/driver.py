"""C programs that exercise generated code: for any interface a caller and an implementation with random values.

Both sides print a hash of what they gave or got, under the parameter's name; the test compares them line by line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hexnpu.idl.header import prototype
from hexnpu.idl.model import Interface, Method, Unit
from hexnpu.idl.types import Array, Field, Handle, Scalar, Sequence, Struct, Type
from hexnpu.idl.wire import Parameter

MANY, FEW = 3000, 4  # elements of flat sequences; of sequences whose elements are buffers of their own


@dataclass
class Code:
    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def say(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def loop(self, count: str) -> str:
        index = f"test_{self.depth}"
        self.say(f"for (int {index} = 0; {index} < {count}; {index}++) {{")
        self.depth += 1
        return index

    def end(self) -> None:
        self.depth -= 1
        self.say("}")


def members(value: str, kind: Type) -> list[tuple[str, Type]]:
    """Expressions for the fields of a struct, or for the one of a named sequence inside another."""
    assert isinstance(kind.shape, Struct | Sequence)
    fields = kind.shape.fields if isinstance(kind.shape, Struct) else (Field("data", Type("", kind.shape)),)
    return [(f"{value}.{f.name}", f.type) for f in fields]


def hash_value(code: Code, value: str, kind: Type, rooms_only: bool = False) -> None:
    """Mixes a value into the hash; of what is still to be filled only the lengths."""
    match kind.shape:
        case Scalar() | Handle():
            if not rooms_only:
                code.say(f"test_hash = test_mix(test_hash, &{value}, sizeof({value}));")
        case Array(element, count):
            hash_value(code, f"{value}[{code.loop(str(count))}]", element, rooms_only)
            code.end()
        case Sequence():
            hash_sequence(code, value, kind.shape, rooms_only)
        case Struct():
            for member, inner in members(value, kind):
                hash_value(code, member, inner, rooms_only)


def hash_sequence(code: Code, value: str, shape: Sequence, rooms_only: bool) -> None:
    code.say(f"test_hash = test_mix(test_hash, &{value}Len, sizeof({value}Len));")
    if shape.element.is_flat and rooms_only:
        return
    hash_element(code, f"{value}[{code.loop(f'{value}Len')}]", shape.element, rooms_only)
    code.end()


def hash_element(code: Code, value: str, element: Type, rooms_only: bool) -> None:
    inner = members(value, element) if isinstance(element.shape, Sequence) else [(value, element)]
    for expression, kind in inner:
        hash_value(code, expression, kind, rooms_only)


def fill_value(code: Code, value: str, kind: Type, how: str) -> None:
    """Random values: `make` sequences too, make only `room` for them, or `fill` the room there is."""
    match kind.shape:
        case Scalar() | Handle():
            if how != "room":
                code.say(f"test_fill((void *) &{value}, sizeof({value}));")
        case Array(element, count):
            fill_value(code, f"{value}[{code.loop(str(count))}]", element, how)
            code.end()
        case Sequence():
            fill_sequence(code, value, kind.shape, how)
        case Struct():
            for member, inner in members(value, kind):
                fill_value(code, member, inner, how)


def fill_sequence(code: Code, value: str, shape: Sequence, how: str) -> None:
    element = shape.element
    if how != "fill":
        code.say(f"{value}Len = {int(shape.terminated)} + test_length({MANY if element.is_flat else FEW});")
        code.say(f"{value} = test_keep((size_t) {value}Len * sizeof(*{value}));")
    if element.is_flat and how == "room":
        return
    item = f"{value}[{code.loop(f'{value}Len')}]"
    inner = members(item, element) if isinstance(element.shape, Sequence) else [(item, element)]
    for expression, kind in inner:
        fill_value(code, expression, kind, how)
    if shape.terminated:
        code.say(f"{item} = test_{code.depth - 1} + 1 == {value}Len ? 0 : ({item} ? {item} : 1);")
    code.end()


def declare(code: Code, parameter: Parameter) -> None:
    kind, name = parameter.type, parameter.name
    if isinstance(kind.shape, Sequence):
        code.say(f"{kind.shape.element.c} *{name} = NULL;")
        code.say(f"int {name}Len = 0;")
    else:
        code.say(f"{kind.c} {name};")
        code.say(f"memset(&{name}, 0, sizeof({name}));")


def call_arguments(parameter: Parameter) -> list[str]:
    kind, name, is_in = parameter.type, parameter.name, parameter.mode == "in"
    match kind.shape:
        case Sequence(_, terminated):
            return [name] if terminated and is_in else [name, f"{name}Len"]
        case Array():
            return [name]
        case Struct():
            return [f"&{name}"]
    return [name if is_in else f"&{name}"]


def say(
    code: Code, side: str, what: str, method: Method, parameter: Parameter, value: str, rooms: bool = False
) -> None:
    code.say("test_hash = TEST_START;")
    kind = parameter.type
    if parameter.mode != "rout" and what == "in" and isinstance(kind.shape, Sequence) and kind.shape.terminated:
        unit = f"sizeof(*{value})"
        code.say(f"for (int test_n = 0; test_n == 0 || {value}[test_n - 1]; test_n++)")
        code.say(f"    test_hash = test_mix(test_hash, &{value}[test_n], {unit});")
    else:
        hash_value(code, value, kind, rooms)
    code.say(f'test_say("{side}", "{what}", "{method.name}.{parameter.name}", test_hash);')


def own_methods(interface: Interface) -> list[Method]:
    return list(interface.methods[2:] if interface.has_handle else interface.methods)


def caller(unit: Unit, interface: Interface) -> str:
    """The program SEED COUNT [LIES]: every method COUNT times; and the transport that brings calls to the skel."""
    functions = [_call_function(interface, method) for method in own_methods(interface)]
    calls = "".join(f"        call_{method.name}();\n" for method in own_methods(interface))
    entry = f"{interface.c}_skel_handle_invoke" if interface.has_handle else f"{interface.c}_skel_invoke"
    handle = "remote_handle64 _h, " if interface.has_handle else ""
    bits = "64" if interface.has_handle else ""
    kind = f"remote_handle{bits}"
    opened = f"{interface.c}_open({interface.c}_URI, &handle)" if interface.has_handle else "0"
    closed = f"{interface.c}_close(handle)" if interface.has_handle else "0"
    transport = TRANSPORT.replace("ENTRY", entry).replace("PASS", "h, " if handle else "").replace("KIND", kind)
    return f"""\
#include "{unit.name}.h"
#include "transport.h"

uint64_t test_state;
int test_result;
static remote_handle64 handle;

int {entry}({handle}uint32_t _sc, remote_arg *_args);
{transport}
{OPEN_WITH_HANDLE if interface.has_handle else OPEN_WITHOUT}
{"".join(functions)}
int main(int argc, char **argv)
{{
    int count = argc > 2 ? atoi(argv[2]) : 1;
    test_state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    if ({opened} != 0)
        return 2;
    lies = argc > 3 ? atoi(argv[3]) : 0;
    for (int i = 0; i < count; i++) {{
        test_result = test_random() % 7 == 0 ? AEE_EFAILED : 0;
{calls}    }}
    lies = 0;
    (void) handle;
    return {closed};
}}
"""


TRANSPORT = """
static struct block {
    struct block *next;
    uint64_t data[];
} *blocks;
static int lies; /* one in so many calls carries something wrong; 0: none */

void *test_keep(size_t bytes)
{
    struct block *block = calloc(1, sizeof(*block) + bytes);
    block->next = blocks;
    blocks = block;
    return block->data;
}

void test_drop(void)
{
    while (blocks) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

static void resize(remote_arg *arg, size_t bytes)
{
    void *data = malloc(bytes);
    memset(data, 0xaa, bytes);
    memcpy(data, arg->buf.pv, arg->buf.nLen < bytes ? arg->buf.nLen : bytes);
    free(arg->buf.pv);
    arg->buf.pv = data;
    arg->buf.nLen = bytes;
}

/* A wrong length in some word, a buffer of another size, other counts of buffers, another method. */
static uint32_t lie(uint32_t sc, remote_arg *args)
{
    static const uint32_t wrong[] = {0, 1, 2, 7, 255, 0x7fffffff, 0x80000000, 0xffffffff};
    int buffers = REMOTE_SCALARS_INBUFS(sc) + REMOTE_SCALARS_OUTBUFS(sc);
    remote_arg *arg = &args[buffers ? test_random() % (uint64_t) buffers : 0];
    switch (test_random() % 5) {
    case 0:
    case 1:
        if (buffers && arg->buf.nLen >= 4) {
            uint32_t value = wrong[test_random() % 8], at = (uint32_t) (test_random() % (arg->buf.nLen / 4)) * 4;
            uint32_t before;
            memcpy(&before, (char *) arg->buf.pv + at, 4);
            value = test_random() % 2 ? value : before + (test_random() % 2 ? 1 : (uint32_t) -1);
            memcpy((char *) arg->buf.pv + at, &value, 4);
        }
        return sc;
    case 2:
        if (buffers)
            resize(arg, test_random() % (arg->buf.nLen + 2));
        return sc;
    case 3:
        return sc ^ (1u << (test_random() % 24));
    default:
        return (sc & 0xffffff) | ((uint32_t) test_random() & 0x1f) << 24;
    }
}

/* What lies between the sides: every buffer is copied, those that come back only when the call has succeeded. */
static int carry(KIND h, uint32_t sc, remote_arg *args)
{
    int ins = REMOTE_SCALARS_INBUFS(sc), outs = REMOTE_SCALARS_OUTBUFS(sc), all = REMOTE_SCALARS_LENGTH(sc);
    remote_arg theirs[255 + 255 + 30] = {0}; /* as many as any scalars can name */
    (void) h;
    printf("wire %08x", sc);
    for (int i = 0; i < all; i++) {
        theirs[i] = args[i];
        if (i >= ins + outs)
            continue;
        size_t bytes = args[i].buf.nLen;
        theirs[i].buf.pv = malloc(bytes); /* of exactly that size */
        if (i < ins && bytes)
            memcpy(theirs[i].buf.pv, args[i].buf.pv, bytes);
        else if (bytes)
            memset(theirs[i].buf.pv, 0xaa, bytes);
        printf(" %c%zu:%llx", i < ins ? 'i' : 'o', bytes,
               (unsigned long long) (i < ins ? test_mix(TEST_START, args[i].buf.pv, bytes) : 0));
    }
    printf("\\n");
    if (lies && test_random() % (uint64_t) lies == 0)
        sc = lie(sc, theirs);
    size_t named = REMOTE_SCALARS_LENGTH(sc);
    remote_arg *exact = malloc(named * sizeof(*exact)); /* no argument more than the scalars name */
    memcpy(exact, theirs, named * sizeof(*exact));
    int error = ENTRY(PASSsc, exact);
    for (size_t i = (size_t) (ins + outs); i < named && i < (size_t) all; i++)
        theirs[i] = exact[i];
    free(exact);
    for (int i = 0; i < all; i++) {
        if (i >= ins + outs) {
            args[i] = theirs[i];
            continue;
        }
        size_t bytes = args[i].buf.nLen < theirs[i].buf.nLen ? args[i].buf.nLen : theirs[i].buf.nLen;
        if (i >= ins && error == 0 && bytes)
            memcpy(args[i].buf.pv, theirs[i].buf.pv, bytes);
        free(theirs[i].buf.pv);
    }
    return error;
}

int KIND_invoke(KIND h, uint32_t sc, remote_arg *args)
{
    return carry(h, sc, args);
}
"""

# As on a device: opening calls method 0 of the module with the URI, closing method 1.
OPEN_WITH_HANDLE = """
int remote_handle64_open(const char *uri, remote_handle64 *h)
{
    uint32_t length = (uint32_t) strlen(uri) + 1;
    remote_arg args[3] = {{.buf = {&length, sizeof(length)}}, {.buf = {(void *) uri, length}}, {.h64 = 0}};
    int error = carry(0, REMOTE_SCALARS_MAKEX(0, 0, 2, 0, 0, 1), args);
    *h = args[2].h64;
    return error;
}

int remote_handle64_close(remote_handle64 h)
{
    remote_arg args[1] = {{.h64 = h}};
    return carry(h, REMOTE_SCALARS_MAKEX(0, 1, 0, 0, 1, 0), args);
}
"""

OPEN_WITHOUT = """
int remote_handle_open(const char *name, remote_handle *h)
{
    *h = (remote_handle) strlen(name);
    return 0;
}

int remote_handle_close(remote_handle h)
{
    (void) h;
    return 0;
}
"""


def _call_function(interface: Interface, method: Method) -> str:
    code = Code()
    code.say("uint64_t test_hash;")
    for parameter in method.parameters:
        declare(code, parameter)
    for parameter in method.parameters:
        fill_value(code, parameter.name, parameter.type, "room" if parameter.mode == "rout" else "make")
        say(code, "caller", "in", method, parameter, parameter.name, rooms=parameter.mode == "rout")
    arguments = (["handle"] if interface.has_handle else []) + [a for p in method.parameters for a in call_arguments(p)]
    code.say(f"int test_error = {interface.function(method)}({', '.join(arguments)});")
    code.say("if (test_error != test_result && !lies) {")
    code.say(f'    printf("caller failed {method.name} %x\\n", (unsigned) test_error);')
    code.say("    exit(3);")
    code.say("}")
    outs = [parameter for parameter in method.parameters if parameter.comes_out]
    if outs:
        code.say("if (test_error == 0) {")
        code.depth += 1
        for parameter in outs:
            say(code, "caller", "out", method, parameter, parameter.name)
        code.end()
    code.say("(void) test_hash;")
    code.say("test_drop();")
    return "\n".join([f"static void call_{method.name}(void)", "{", *code.lines, "}", "", ""])


def implementation(unit: Unit, interface: Interface) -> str:
    """What the skel calls: looks at what came, fills what goes back."""
    functions = [_implement(interface, method) for method in own_methods(interface)]
    if interface.has_handle:
        functions.insert(0, IMPLEMENT_OPEN.replace("NAME", interface.c).replace("RESULT", interface.methods[0].returns))
    return f'#include "{unit.name}.h"\n#include "transport.h"\n\n' + "".join(functions)


IMPLEMENT_OPEN = """\
RESULT NAME_open(const char *uri, remote_handle64 *h)
{
    *h = strcmp(uri, NAME_URI) == 0 ? 0x123456789abcdef : 0;
    return *h ? 0 : AEE_EFAILED;
}

RESULT NAME_close(remote_handle64 h)
{
    return h == 0x123456789abcdef ? 0 : AEE_EINVHANDLE;
}

"""


def _implement(interface: Interface, method: Method) -> str:
    code = Code()
    code.say("uint64_t test_hash;")
    if interface.has_handle:
        code.say("if (_h != 0x123456789abcdef)")
        code.say("    return AEE_EINVHANDLE;")
    for parameter in method.parameters:
        say(code, "callee", "in", method, parameter, _value(parameter), rooms=parameter.mode == "rout")
    for parameter in method.parameters:
        if parameter.comes_out:
            fill_value(code, _value(parameter), parameter.type, "fill")
            code.say("if (test_result == 0) {")
            code.depth += 1
            say(code, "callee", "out", method, parameter, _value(parameter))
            code.end()
    code.say("(void) test_hash;")
    code.say("return test_result;")
    return "\n".join([prototype(interface, method), "{", *code.lines, "}", "", ""])


def _value(parameter: Parameter) -> str:
    """A parameter of the implementation as an expression for the value itself."""
    shape = parameter.type.shape
    if isinstance(shape, Sequence | Array):
        return parameter.name
    if isinstance(shape, Struct) or parameter.mode != "in":
        return f"(*{parameter.name})"
    return parameter.name


def names(interface: Interface) -> str:
    """Definitions that keep the implementation's names apart from the stub's, for both live in one program."""
    functions = (interface.function(method) for method in interface.methods)
    return "".join(f"#define {function} callee_{function}\n" for function in functions)
