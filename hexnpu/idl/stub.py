"""NAME_stub.c: the caller's side of the methods. Each packs its arguments, calls and unpacks what came back."""

from __future__ import annotations

from hexnpu.idl import runtime
from hexnpu.idl.emit import at, buffer_counts, handle_member, indent, method_number, nested_types, preamble
from hexnpu.idl.header import prototype
from hexnpu.idl.model import Interface, Unit
from hexnpu.idl.types import Array, Handle, Sequence, Struct, Type, size_of
from hexnpu.idl.wire import EXTENDED, Record, Slot, is_nested, record_of

HANDLE = """\
/* The module's handle, opened by the first call. */
static remote_handle idl_handle(void)
{
    static remote_handle opened = (remote_handle) -1;
    remote_handle handle = __atomic_load_n(&opened, __ATOMIC_ACQUIRE), mine;
    if (handle != (remote_handle) -1)
        return handle;
    if (remote_handle_open("%s", &mine) != 0)
        return (remote_handle) -1;
    if (__atomic_compare_exchange_n(&opened, &handle, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    remote_handle_close(mine); /* another thread was faster */
    return handle;
}
"""


def write_stub(unit: Unit, interface: Interface) -> str:
    parts = [preamble(unit, interface, runtime.STUB)]
    if interface.methods and not interface.has_handle:
        parts.append(HANDLE % interface.c)
    for kind, mode in nested_types(interface):
        parts.append(_send_function(kind) if mode == "in" else _receive_function(kind))
    parts += [_method(interface, index) for index in range(len(interface.methods))]
    return "\n".join(parts)


def _method(interface: Interface, index: int) -> str:
    method = interface.methods[index]
    head = prototype(interface, method)
    if interface.has_handle and index < 2:
        call = "remote_handle64_open(uri, h)" if index == 0 else "remote_handle64_close(h)"
        return f"{head}\n{{\n    return {call};\n}}\n"
    record = interface.record(index)
    lines = _start(index, record)
    if not interface.has_handle:
        lines += ["remote_handle _h = idl_handle();", "if (_h == (remote_handle) -1)", "    return AEE_EINVHANDLE;"]
    for slot in record.slots:
        lines += _pack(slot)
    lines += _call(interface, index, record)
    back = [line for slot in record.slots for line in _unpack(slot, record, buffer_counts(record))]
    if back:
        lines += ["if (_error == AEE_SUCCESS) {", *indent(back), "}"]
    if record.is_nested:
        lines.append("idl_settle(&_w, _error == AEE_SUCCESS);")
    lines.append("return _error;")
    return "\n".join([head, "{", *indent(lines), "}", ""])


def _start(index: int, record: Record) -> list[str]:
    ins, outs = buffer_counts(record)
    count = ins + outs + record.in_handles + record.out_handles
    lines = []
    if record.in_bytes:
        lines.append(f"_Alignas(8) uint8_t _in[{record.in_size}] = {{0}};")
    if record.out_bytes:
        lines.append(f"_Alignas(8) uint8_t _out[{record.out_size}] = {{0}};")
    if record.is_nested:
        lines += ["remote_arg _args[2 * 255];", _wire(255, 510)]
    elif count:
        lines.append(f"remote_arg _args[{count}] = {{0}};")
        lines += [_wire(ins, ins + outs)] if ins + outs else []
    if index >= EXTENDED:
        lines.append(f"const uint32_t _method = {index};")
    if record.in_bytes:
        lines.append("idl_bind(&_w, &_w.in, _w.in_end, _in, sizeof(_in));")
    if record.out_bytes:
        lines.append("idl_bind(&_w, &_w.out, _w.out_end, _out, sizeof(_out));")
    if index >= EXTENDED:
        lines.append("memcpy(_in, &_method, sizeof(_method));")
    for slot in record.slots:
        if isinstance(slot.parameter.type.shape, Handle) and slot.parameter.goes_in:
            member = handle_member(slot.parameter.type)
            lines.append(f"_args[{ins + outs + slot.handle}].{member} = {slot.parameter.name};")
    return lines


def _wire(ins: int, all_buffers: int) -> str:
    return f"struct idl_wire _w = {{_args, _args + {ins}, _args + {ins}, _args + {all_buffers}, NULL, 0}};"


def _call(interface: Interface, index: int, record: Record) -> list[str]:
    ins, outs = map(str, buffer_counts(record))
    lines = []
    if record.is_nested:
        ins, outs = "_w.in - _args", "_w.out - (_args + 255)"
        lines.append("memmove(_w.in, _args + 255, (size_t) (_w.out - (_args + 255)) * sizeof(*_args));")
    numbers = f"{ins}, {outs}, {record.in_handles}, {record.out_handles}"
    has_arguments = any((*buffer_counts(record), record.in_handles, record.out_handles))
    args = "_args" if has_arguments else "NULL"
    function = "remote_handle64_invoke" if interface.has_handle else "remote_handle_invoke"
    call = f"{function}(_h, REMOTE_SCALARS_MAKEX(0, {method_number(index)}, {numbers}), {args})"
    if record.in_bytes or record.out_bytes:
        lines += ["int _error = _w.error;", "if (_error == AEE_SUCCESS)", f"    _error = {call};"]
    else:
        lines.append(f"int _error = {call};")
    return lines


def _pack(slot: Slot) -> list[str]:
    """What goes in, and the room for what comes back, of a parameter."""
    parameter, lines = slot.parameter, []
    kind, name = parameter.type, parameter.name
    if parameter.goes_in and not isinstance(kind.shape, Handle):
        if isinstance(kind.shape, Sequence) and kind.shape.terminated:
            function = "idl_send_wstring" if kind.shape.element.c == "_wchar_t" else "idl_send_string"
            lines.append(f"{function}(&_w, {at('_in', slot.in_at)}, {name});")
        else:
            by_value = parameter.mode == "in" and not isinstance(kind.shape, Struct | Array)
            lines += _send(slot, "&_w", "_in", name, f"{name}Len", f"&{name}" if by_value else name)
    if parameter.comes_out and not kind.is_flat and not isinstance(kind.shape, Handle):
        lines += _receive(slot, "&_w", "_in", "_out", name, f"{name}Len", name)
    return lines


def _unpack(slot: Slot, record: Record, buffers: tuple[int, int]) -> list[str]:
    """What has come back in the primitive buffer, the last 0 of a string, and handles."""
    parameter = slot.parameter
    kind, name = parameter.type, parameter.name
    if not parameter.comes_out:
        return []
    if isinstance(kind.shape, Handle):
        place = sum(buffers) + record.in_handles + slot.handle
        return [f"*{name} = _args[{place}].{handle_member(kind)};"]
    if kind.is_flat:
        return [f"memcpy({name}, {at('_out', slot.out_at)}, {size_of(kind)[0]});"]
    if isinstance(kind.shape, Sequence) and kind.shape.terminated:
        return [f"if ({name}Len > 0)", f"    {name}[{name}Len - 1] = 0;"]
    return []


def _send(slot: Slot, wire: str, base: str, data: str, length: str, address: str) -> list[str]:
    """A value on its way in: `data` and `length` are those of a sequence, `address` that of anything else."""
    kind, place = slot.parameter.type, at(base, slot.in_at)
    if kind.is_flat:
        return [f"memcpy({place}, {address}, {size_of(kind)[0]});"]
    if not isinstance(kind.shape, Sequence):
        return [f"idl_send_{kind.c}({wire}, {place}, {address});"]
    element = kind.shape.element
    if element.is_flat:
        return [f"idl_send({wire}, {place}, {data}, {length}, {size_of(element)[0]});"]
    size = record_of(element, "in").in_size
    return [
        "{",
        f"    uint8_t *_r = idl_room({wire}, {data} ? {length} : 0, {size});",
        f"    idl_send({wire}, {place}, _r, {length}, {size});",
        f"    for (int _i = 0; _r && _i < {length}; _i++)",
        f"        idl_send_{element.c}({wire}, _r + _i * {size}, &{data}[_i]);",
        "}",
    ]


def _receive(slot: Slot, wire: str, base: str, out: str, data: str, length: str, address: str) -> list[str]:
    """The room for a value that is not flat and comes back."""
    kind = slot.parameter.type
    if not isinstance(kind.shape, Sequence):
        inner = record_of(kind, "rout")
        back = at(out, slot.out_at) if inner.out_bytes else "NULL"
        return [f"idl_receive_{kind.c}({wire}, {at(base, slot.in_at)}, {back}, {address});"]
    element, place = kind.shape.element, at(base, slot.room_at)
    if element.is_flat:
        return [f"idl_receive({wire}, {place}, {data}, {length}, {size_of(element)[0]});"]
    inner = record_of(element, "rout")
    w = wire.lstrip("&")
    access = f"{w}." if wire.startswith("&") else f"{w}->"
    lines = [
        f"uint8_t *_r = idl_room({wire}, {data} ? {length} : 0, {inner.in_size});",
        f"idl_send({wire}, {place}, _r, {length}, {inner.in_size});",
    ]
    back = "NULL"
    if inner.out_bytes:
        back = f"_b + _i * {inner.out_size}"
        lines += [
            f"uint8_t *_b = idl_room({wire}, {length}, {inner.out_size});",
            f"if (!{access}error)",
            f"    idl_bind({wire}, &{access}out, {access}out_end, _b, (size_t) {length} * {inner.out_size});",
        ]
    lines += [
        f"for (int _i = 0; !{access}error && _i < {length}; _i++)",
        f"    idl_receive_{element.c}({wire}, _r + _i * {inner.in_size}, {back}, &{data}[_i]);",
    ]
    return ["{", *indent(lines), "}"]


def _send_function(kind: Type) -> str:
    lines = []
    for slot in record_of(kind, "in").slots:
        name = slot.parameter.name
        lines += _send(slot, "w", "in", f"v->{name}", f"v->{name}Len", f"&v->{name}")
    head = f"static void idl_send_{kind.c}(struct idl_wire *w, uint8_t *in, const {kind.c} *v)"
    return "\n".join([head, "{", *indent(lines), "}", ""])


def _receive_function(kind: Type) -> str:
    lines: list[str] = []
    for slot in record_of(kind, "rout").slots:
        name, member = slot.parameter.name, slot.parameter.type
        if member.is_flat:
            lines.append(f"idl_later(w, &v->{name}, {at('out', slot.out_at)}, {size_of(member)[0]});")
            continue
        lines += _receive(slot, "w", "in", "out", f"v->{name}", f"v->{name}Len", f"&v->{name}")
        if isinstance(member.shape, Sequence) and member.shape.terminated and not is_nested(member):
            lines += [
                f"if (v->{name}Len > 0)",
                f"    idl_later(w, &v->{name}[v->{name}Len - 1], &idl_zero, {size_of(member.shape.element)[0]});",
            ]
    head = (
        f"static void idl_receive_{kind.c}(struct idl_wire *w, uint8_t *in, __attribute__((unused)) uint8_t *out, "
        f"{kind.c} *v)"
    )
    return "\n".join([head, "{", *indent(lines), "}", ""])
