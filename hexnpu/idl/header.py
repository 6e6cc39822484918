"""NAME.h: types, constants and prototypes, the same for the caller's side and the DSP's."""

from __future__ import annotations

from pathlib import Path

from hexnpu.idl.model import (
    ConstDeclaration,
    EnumDeclaration,
    Interface,
    Method,
    StructDeclaration,
    TypedefDeclaration,
    Unit,
)
from hexnpu.idl.preprocess import OWN_FILES
from hexnpu.idl.types import Array, Handle, Sequence, Struct, Type
from hexnpu.idl.wire import Parameter

# Other headers of generated code define them too, under the same guards.
STRING_TYPES = """\
#ifndef __QAIC_STRING1_OBJECT_DEFINED__
#define __QAIC_STRING1_OBJECT_DEFINED__
typedef struct _cstring1_s {
    char *data;
    int dataLen;
} _cstring1_t;
#endif
#ifndef __QAIC_WSTRING1_OBJECT_DEFINED__
#define __QAIC_WSTRING1_OBJECT_DEFINED__
typedef struct _wstring1_s {
    _wchar_t *data;
    int dataLen;
} _wstring1_t;
#endif
"""


def write_header(unit: Unit) -> str:
    guard = f"IDL_{unit.name.upper()}_H"
    includes = ["AEEStdDef.h", "remote.h", *(Path(n).stem + ".h" for n in unit.includes if n not in OWN_FILES)]
    body = ""
    for before, declaration in zip([None, *unit.declarations], unit.declarations, strict=False):
        alike = isinstance(before, ConstDeclaration) and isinstance(declaration, ConstDeclaration)
        body += ("" if alike or before is None else "\n") + _declaration(unit, declaration)
    strings = f"\n{STRING_TYPES}" if "_cstring1_t" in body or "_wstring1_t" in body else ""
    return f"""\
/* Written by hexnpu idl from {unit.name}.idl; edit that. */
#ifndef {guard}
#define {guard}

{chr(10).join(f'#include "{name}"' for name in includes)}

#ifdef __cplusplus
extern "C" {{
#endif
{strings}
{body}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _declaration(unit: Unit, declaration: object) -> str:
    match declaration:
        case EnumDeclaration(c, names):
            labels = "".join(f"    {name},\n" for name in names)
            # The last one makes every compiler take 32 bits.
            return f"typedef enum {c} {{\n{labels}    _32BIT_PLACEHOLDER_{c} = 0x7fffffff\n}} {c};\n"
        case StructDeclaration(Type(c, Struct(fields))):
            members = "".join(f"    {text};\n" for f in fields for text in _member(f.name, f.type))
            return f"typedef struct {c} {{\n{members}}} {c};\n"
        case TypedefDeclaration(c, Type("", Sequence(element, _))):
            return f"typedef struct {c} {{\n    {element.c} *data;\n    int dataLen;\n}} {c};\n"
        case TypedefDeclaration(c, kind):
            return f"typedef {kind.declare(c)};\n"
        case ConstDeclaration(c, value):
            return f"#define {c} {value}\n"
        case Interface():
            return _interface(unit, declaration)
    raise AssertionError(declaration)


def _member(name: str, kind: Type) -> list[str]:
    if isinstance(kind.shape, Sequence):
        return [f"{kind.shape.element.c} *{name}", f"int {name}Len"]
    return [kind.declare(name)]


def _interface(unit: Unit, interface: Interface) -> str:
    prototypes = "".join(f"{prototype(interface, method)};\n" for method in interface.methods)
    if not interface.has_handle:
        return prototypes
    return f'#ifndef {interface.c}_URI\n#define {interface.c}_URI "{unit.uri(interface)}"\n#endif\n{prototypes}'


def prototype(interface: Interface, method: Method) -> str:
    """A method in C: the same for the stub, which calls, and for the implementation, which is called."""
    parameters = [text for parameter in method.parameters for text in parameter_in_c(parameter)]
    if interface.has_handle and method.name not in ("open", "close"):
        parameters.insert(0, "remote_handle64 _h")
    return f"{method.returns} {interface.function(method)}({', '.join(parameters) or 'void'})"


def parameter_in_c(parameter: Parameter) -> list[str]:
    name, kind, reads_only = parameter.name, parameter.type, parameter.mode == "in"
    const = "const " if reads_only else ""
    match kind.shape:
        case Sequence(element, terminated):
            length = [] if terminated and reads_only else [f"int {name}Len"]
            return [f"{const}{element.c} *{name}", *length]
        case Struct():
            return [f"{const}{kind.c} *{name}"]
        case Array():
            return [f"{const}{kind.c} {name}"]
        case Handle() if reads_only:
            return [f"{kind.c} {name}"]
    return [f"{kind.c} {name}" if reads_only else f"{kind.c} *{name}"]
