"""NAME_skel.c: the DSP's entry, which checks and unpacks the buffers of a call, makes it and packs what comes back."""

from __future__ import annotations

from hexnpu.idl import runtime
from hexnpu.idl.emit import at, buffer_counts, handle_member, indent, nested_types, preamble
from hexnpu.idl.model import Interface, Unit
from hexnpu.idl.types import Array, Handle, Sequence, Struct, Type, size_of
from hexnpu.idl.wire import EXTENDED, Parameter, Record, Slot, record_of

VERSION = """\
/* A caller's version may be older than this one's, not newer. */
static bool idl_version_fits(const char *uri)
{
    const char *theirs = strstr(uri, "_idlver="), *ours = "%s";
    if (!theirs)
        return false;
    theirs += strlen("_idlver=");
    for (int part = 0; part < 3; part++) {
        char *end;
        unsigned long wanted = strtoul(theirs, &end, 10);
        theirs = *end == '.' ? end + 1 : end;
        unsigned long here = strtoul(ours, &end, 10);
        ours = *end == '.' ? end + 1 : end;
        if (wanted != here)
            return wanted < here;
    }
    return *theirs == 0 || *theirs == '&';
}
"""


def write_skel(unit: Unit, interface: Interface) -> str:
    parts = [preamble(unit, interface, runtime.SKEL)]
    if unit.version and interface.has_handle:
        parts.append(VERSION % unit.version)
    parts += [_take_function(kind) if mode == "in" else _give_function(kind) for kind, mode in nested_types(interface)]
    parts += [_method(unit, interface, index) for index in range(len(interface.methods))]
    parts.append(_entry(interface))
    return "\n".join(parts)


def _signature(interface: Interface) -> tuple[str, str]:
    """Parameters of a skel function, and how they are handed on."""
    if interface.has_handle:
        return "remote_handle64 _h, uint32_t _sc, remote_arg *_args", "_h, _sc, _args"
    return "uint32_t _sc, remote_arg *_args", "_sc, _args"


def _entry(interface: Interface) -> str:
    parameters, arguments = _signature(interface)
    name = f"{interface.c}_skel_handle_invoke" if interface.has_handle else f"{interface.c}_skel_invoke"
    lines = ["uint32_t _method = REMOTE_SCALARS_METHOD(_sc);"]
    if not interface.methods:
        lines.append("(void) _args;")
    if len(interface.methods) > EXTENDED:
        lines += [
            f"if (_method == {EXTENDED}) {{",
            "    if (REMOTE_SCALARS_INBUFS(_sc) < 1 || _args[0].buf.nLen < sizeof(_method))",
            "        return AEE_EBADPARM;",
            "    memcpy(&_method, _args[0].buf.pv, sizeof(_method));",
            f"    if (_method < {EXTENDED})",
            "        return AEE_EUNSUPPORTED;",
            "}",
        ]
    lines.append("switch (_method) {")
    for index, method in enumerate(interface.methods):
        lines += [f"case {index}:", f"    return idl_skel_{method.name}({arguments});"]
    lines += ["default:", "    return AEE_EUNSUPPORTED;", "}"]
    head = f'__attribute__((visibility("default"))) int {name}({parameters});\n\nint {name}({parameters})'
    return "\n".join([head, "{", *indent(lines), "}", ""])


def _method(unit: Unit, interface: Interface, index: int) -> str:
    method = interface.methods[index]
    record = interface.record(index)
    lines = _start(index, record)
    for slot in record.slots:
        lines += _unpack(slot, record)
    passes_handle = interface.has_handle and index >= 2
    arguments = [text for parameter in method.parameters for text in _arguments(parameter)]
    if passes_handle:
        arguments.insert(0, "_h")
    elif interface.has_handle:
        lines.append("(void) _h;")
    if interface.has_handle and index == 0 and unit.version:
        lines += ["if (!_w.error && !idl_version_fits(uri))", "    _w.error = AEE_ESTUBSKELVERMISMATCH;"]
    call = f"{interface.function(method)}({', '.join(arguments)})"
    has_wire = bool(record.in_bytes or record.out_bytes)
    if record.is_nested:
        lines += ["if (!_w.error && (_w.in != _w.in_end || _w.out != _w.out_end))", "    _w.error = AEE_EBADPARM;"]
    if has_wire:
        lines += ["int _error = _w.error;", "if (_error == AEE_SUCCESS)", f"    _error = {call};"]
    else:
        lines.append(f"int _error = {call};")
    if back := [line for slot in record.slots for line in _back(slot)]:
        lines += ["if (_error == AEE_SUCCESS) {", *indent(back), "}"]
    if record.is_nested:
        lines.append("idl_settle(&_w, _error == AEE_SUCCESS);")
    lines.append("return _error;")
    head = f"static int idl_skel_{method.name}({_signature(interface)[0]})"
    return "\n".join([head, "{", *indent(lines), "}", ""])


def _start(index: int, record: Record) -> list[str]:
    """Counts and sizes of the buffers are checked before anything is read."""
    ins, outs = buffer_counts(record)
    first_out, end = f"{ins}", f"{ins + outs}"
    if record.is_nested:
        first_out = "REMOTE_SCALARS_INBUFS(_sc)"
        end = f"{first_out} + REMOTE_SCALARS_OUTBUFS(_sc)"
        lacking = " || REMOTE_SCALARS_OUTBUFS(_sc) < 1" if record.out_bytes else ""
        lines = [f"if (REMOTE_SCALARS_INBUFS(_sc) < 1{lacking} || (_sc & 0xff) != 0)", "    return AEE_EBADPARM;"]
    else:
        counts = f"{ins}, {outs}, {record.in_handles}, {record.out_handles}"
        lines = [f"if ((_sc & 0xffffff) != REMOTE_SCALARS_MAKEX(0, 0, {counts}))", "    return AEE_EBADPARM;"]
    if record.in_bytes:
        lines += [f"if (_args[0].buf.nLen < {record.in_bytes})", "    return AEE_EBADPARM;"]
    if record.out_bytes:
        lines += [f"if (_args[{first_out}].buf.nLen < {record.out_bytes})", "    return AEE_EBADPARM;"]
        lines.append(f"uint8_t *_out = _args[{first_out}].buf.pv;")
    if record.in_bytes > (4 if index >= EXTENDED else 0):
        lines.append("const uint8_t *_in = _args[0].buf.pv;")
    if record.in_bytes or record.out_bytes:
        lines += [
            "struct idl_wire _w = {",
            f"    {at('_args', int(record.in_bytes > 0))}, _args + {first_out},",
            f"    {at(f'_args + {first_out}', int(record.out_bytes > 0))}, _args + {end}, NULL, 0,",
            "};",
        ]
    elif not (record.in_handles or record.out_handles):
        lines.append("(void) _args;")
    return lines


def _arguments(parameter: Parameter) -> list[str]:
    name, shape, is_in = parameter.name, parameter.type.shape, parameter.mode == "in"
    match shape:
        case Sequence(_, terminated):
            return [name] if terminated and is_in else [name, f"{name}Len"]
        case Array():
            return [name]
        case Struct():
            return [f"&{name}"]
    return [name if is_in else f"&{name}"]


def _unpack(slot: Slot, record: Record) -> list[str]:
    """A local variable for the parameter, filled with what came in."""
    parameter = slot.parameter
    kind, name = parameter.type, parameter.name
    if isinstance(kind.shape, Handle):
        if parameter.mode == "rout":
            return [f"{kind.c} {name} = 0;"]
        place = f"REMOTE_SCALARS_INBUFS(_sc) + REMOTE_SCALARS_OUTBUFS(_sc) + {slot.handle}"
        return [f"{kind.c} {name} = _args[{place}].{handle_member(kind)};"]
    if kind.is_flat:
        start = "" if parameter.goes_in else " = {0}" if isinstance(kind.shape, Struct | Array) else " = 0"
        lines = [f"{kind.c} {name}{start};"]
        return lines + (_take(slot, "&_w", "_in", name, f"{name}Len", f"&{name}") if parameter.goes_in else [])
    if not isinstance(kind.shape, Sequence):
        lines = [f"{kind.c} {name} = {{0}};"]
        if parameter.mode == "in":
            return lines + _take(slot, "&_w", "_in", name, "", f"&{name}")
        return lines + _give(slot, "&_w", "_in", "_out", name, "", f"&{name}")
    length, pointer = f"int {name}Len;", f"{kind.shape.element.c} *{name}"
    if parameter.mode != "inrout":
        lines = (
            _take(slot, "&_w", "_in", name, f"{name}Len", "")
            if parameter.mode == "in"
            else _give(slot, "&_w", "_in", "_out", name, f"{name}Len", "")
        )
        if len(lines) == 1:
            return [length, f"{kind.shape.element.c} *{lines[0]}"]
        return [length, f"{pointer};", *lines]
    size = size_of(kind.shape.element)[0]
    take = "idl_take_string" if kind.shape.terminated else "idl_take"
    return [
        f"int _{name}Len;",
        f"const void *_{name} = {take}(&_w, {at('_in', slot.in_at)}, {size}, &_{name}Len);",
        length,
        f"{pointer} = idl_carry(&_w, _{name}, _{name}Len, {at('_in', slot.room_at)}, {size}, &{name}Len);",
    ]


def _back(slot: Slot) -> list[str]:
    parameter = slot.parameter
    kind, name = parameter.type, parameter.name
    if not parameter.comes_out:
        return []
    if isinstance(kind.shape, Handle):
        before = "REMOTE_SCALARS_INBUFS(_sc) + REMOTE_SCALARS_OUTBUFS(_sc) + REMOTE_SCALARS_INHANDLES(_sc)"
        return [f"_args[{before} + {slot.handle}].{handle_member(kind)} = {name};"]
    return [f"memcpy({at('_out', slot.out_at)}, &{name}, {size_of(kind)[0]});"] if kind.is_flat else []


def _take(slot: Slot, wire: str, base: str, data: str, length: str, address: str) -> list[str]:
    """A value that came in: `data` and `length` are set for a sequence, what is at `address` for anything else."""
    kind, place = slot.parameter.type, at(base, slot.in_at)
    if kind.is_flat:
        return [f"memcpy({address}, {place}, {size_of(kind)[0]});"]
    if not isinstance(kind.shape, Sequence):
        return [f"idl_take_{kind.c}({wire}, {place}, {address});"]
    element = kind.shape.element
    if element.is_flat:
        function = "idl_take_string" if kind.shape.terminated else "idl_take"
        return [f"{data} = {function}({wire}, {place}, {size_of(element)[0]}, &{length});"]
    size = record_of(element, "in").in_size
    error = _error_of(wire)
    return [
        "{",
        f"    const uint8_t *_r = idl_take({wire}, {place}, {size}, &{length});",
        f"    {data} = idl_room({wire}, {length}, sizeof(*{data}));",
        f"    for (int _i = 0; !{error} && _i < {length}; _i++)",
        f"        idl_take_{element.c}({wire}, _r + _i * {size}, &{data}[_i]);",
        "}",
    ]


def _give(slot: Slot, wire: str, base: str, out: str, data: str, length: str, address: str) -> list[str]:
    """The room for a value that is not flat and comes back."""
    kind = slot.parameter.type
    if not isinstance(kind.shape, Sequence):
        back = at(out, slot.out_at) if record_of(kind, "rout").out_bytes else "NULL"
        return [f"idl_give_{kind.c}({wire}, {at(base, slot.in_at)}, {back}, {address});"]
    element, place = kind.shape.element, at(base, slot.room_at)
    if element.is_flat:
        return [f"{data} = idl_give({wire}, {place}, {size_of(element)[0]}, &{length});"]
    inner = record_of(element, "rout")
    back = f"_b + _i * {inner.out_size}" if inner.out_bytes else "NULL"
    return [
        "{",
        f"    const uint8_t *_r = idl_take({wire}, {place}, {inner.in_size}, &{length});",
        *([f"    uint8_t *_b = idl_give({wire}, {place}, {inner.out_size}, &{length});"] if inner.out_bytes else []),
        f"    {data} = idl_room({wire}, {length}, sizeof(*{data}));",
        f"    for (int _i = 0; !{_error_of(wire)} && _i < {length}; _i++)",
        f"        idl_give_{element.c}({wire}, _r + _i * {inner.in_size}, {back}, &{data}[_i]);",
        "}",
    ]


def _error_of(wire: str) -> str:
    return f"{wire[1:]}.error" if wire.startswith("&") else f"{wire}->error"


def _take_function(kind: Type) -> str:
    lines = []
    for slot in record_of(kind, "in").slots:
        name = slot.parameter.name
        lines += _take(slot, "w", "in", f"v->{name}", f"v->{name}Len", f"&v->{name}")
    head = f"static void idl_take_{kind.c}(struct idl_wire *w, const uint8_t *in, {kind.c} *v)"
    return "\n".join([head, "{", *indent(lines), "}", ""])


def _give_function(kind: Type) -> str:
    lines = []
    for slot in record_of(kind, "rout").slots:
        name, member = slot.parameter.name, slot.parameter.type
        if member.is_flat:
            lines.append(f"idl_later(w, {at('out', slot.out_at)}, &v->{name}, {size_of(member)[0]});")
        else:
            lines += _give(slot, "w", "in", "out", f"v->{name}", f"v->{name}Len", f"&v->{name}")
    head = (
        f"static void idl_give_{kind.c}(struct idl_wire *w, const uint8_t *in, __attribute__((unused)) uint8_t *out, "
        f"{kind.c} *v)"
    )
    return "\n".join([head, "{", *indent(lines), "}", ""])
