"""Compiles the encoder of one (message, version) into straight-line Python.

The generated function adds to a bytearray (measured as fast as a list of pieces that is joined, and the caller can put
a header in front and patch it). Runs of fixed-size values become one `struct` call together with the length that
follows them, the zero of an empty section of tagged fields included. The piecewise variant leaves record batches out
of the bytearray and answers with what to write in turn, so that a large batch is not copied here.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any

from millstream.protocol.declare import Kind, Message
from millstream.protocol.shape import FIXED, STRING_BYTES_MAX, Array, Layout, Placed, Structure, Type, layout
from millstream.protocol.source import Source
from millstream.protocol.varint import encode_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.protocol.varint import Buffer

SMALL_ARRAY = 32


@cache
def _packers(code: str) -> tuple[Callable[..., bytes], ...]:
    return tuple(Struct(f">{count}{code}").pack for count in range(SMALL_ARRAY + 1))


def tag_header(tag: int, size: int) -> bytes:
    return encode_uvarint(tag) + encode_uvarint(size)


def compile_encoder(kind: type[Message], version: int) -> Callable[[Any, bytearray], None]:
    """Make `encode(message, out)`, which adds the message's bytes to `out`."""
    compiled: Callable[[Any, bytearray], None] = _EncoderSource(layout(kind, version), piecewise=False).compile()
    return compiled


def compile_piecewise_encoder(kind: type[Message], version: int) -> Callable[[Any, bytearray], list[Buffer]]:
    """Make `encode(message, out) -> pieces`: `out` comes first, record batches stand between as they are."""
    source = _EncoderSource(layout(kind, version), piecewise=True)
    compiled: Callable[[Any, bytearray], list[Buffer]] = source.compile()
    return compiled


class _EncoderSource(Source):
    """Generated code speaks of `m` (the message) and `out` (what it adds to)."""

    def __init__(self, message: Layout, *, piecewise: bool) -> None:
        super().__init__()
        self.message = message
        self.title = f"{message.kind.__name__} v{message.version}"
        self.out = "out"
        self.piecewise = piecewise
        self.pending: list[tuple[str, str | None]] = []
        self.globals.update(
            encode_uvarint=encode_uvarint,
            error=error,
            tag_header=tag_header,
        )

    def compile(self) -> Any:
        self.line("def encode(m, out):")
        with self.block():
            if self.piecewise:
                self.line("pieces = [out]")
            with self.block("try:"):
                self.structure(self.message, "m")
                self.flush()
            with self.block("except (error, AttributeError, TypeError) as problem:"):
                refusal = f"{self.title} holds a value that it cannot carry: "
                self.line(f"raise ValueError({refusal!r} + str(problem)) from problem")
            if self.piecewise:
                self.line("return pieces")
        return self.execute(f"<encoder of {self.title}>")["encode"]

    # Fixed-size values wait in `pending` until a piece of another kind has to be written after them.

    def fixed(self, code: str, value: str | None = None) -> None:
        self.pending.append((code, value))

    def packed(self, extra: tuple[tuple[str, str], ...] = ()) -> str:
        values = [*self.pending, *extra]
        codes = "".join(code for code, _ in values)
        pack = self.constant("pack_" + codes.replace("?", "o"), Struct(">" + codes).pack)
        return f"{pack}({', '.join(value for _, value in values if value is not None)})"

    def flush(self) -> None:
        if not self.pending:
            return
        if all(value is None for _, value in self.pending):
            self.put(repr(bytes(len(self.pending))))
        elif len(self.pending) == 1 and self.pending[0][0] == "B":
            self.line(f"{self.out}.append({self.pending[0][1]})")
        else:
            self.put(self.packed())
        self.pending.clear()

    def put(self, data: str) -> None:
        self.line(f"{self.out} += {data}")

    def compact_length(self, count: str) -> None:
        """Write a varint, in one call with what is pending if it is a single byte."""
        with self.block(f"if {count} < 128:"):
            if self.pending:
                self.put(self.packed((("B", count),)))
            else:
                self.line(f"{self.out}.append({count})")
        with self.block("else:"):
            if self.pending:
                self.put(self.packed())
            self.put(f"encode_uvarint({count})")
        self.pending.clear()

    def value(self, kind: Type, where: Layout, value: str, *, name: str, nullable: bool, compact: bool) -> None:
        match kind:
            case Kind.STRING | Kind.BYTES | Kind.RECORDS:
                self.run_of_bytes(kind, value, name=name, nullable=nullable, compact=compact)
            case Kind():
                self.fixed(FIXED[kind], value)
            case Array(element):
                self.array(element, where, value, name=name, nullable=nullable, compact=compact)
            case Structure(nested):
                held = self.hold(value, name)
                if nullable:
                    self.nullable_structure(where.of(nested), held)
                else:
                    self.structure(where.of(nested), held)

    def hold(self, value: str, name: str) -> str:
        """A local name for a value; an element of a loop has one already."""
        if value.isidentifier():
            return value
        held = self.name(name)
        self.line(f"{held} = {value}")
        return held

    def run_of_bytes(self, kind: Kind, value: str, *, name: str, nullable: bool, compact: bool) -> None:
        is_string = kind is Kind.STRING
        data, count = self.name(name), self.name("n")
        one_more = " + 1" if compact else ""
        encoded = ".encode()" if is_string else ""

        def measure(source: str) -> None:
            self.line(f"{data} = {source}{encoded}")
            self.line(f"{count} = len({data}){one_more}")

        if nullable:
            held = self.hold(value, name)
            with self.block(f"if {held} is None:"):
                self.line(f"{data} = b''")
                self.line(f"{count} = {0 if compact else -1}")
            with self.block("else:"):
                measure(held)
        else:
            measure(value)
        if is_string:
            with self.block(f"if {count} > {STRING_BYTES_MAX + compact}:"):
                refusal = f"{self.title}: {name} takes %d bytes, more than the {STRING_BYTES_MAX} of a string"
                self.line(f"raise ValueError({refusal!r} % len({data}))")
        if compact:
            self.compact_length(count)
        else:
            self.fixed("h" if is_string else "i", count)
            self.flush()
        if kind is Kind.RECORDS and self.piecewise and self.out == "out":
            with self.block(f"if {data}:"):
                self.line("out = bytearray()")
                self.line(f"pieces += ({data}, out)")
        else:
            self.put(data)

    def array(self, element: Type, where: Layout, value: str, *, name: str, nullable: bool, compact: bool) -> None:
        held, count = self.hold(value, name), self.name("n")
        length = f"len({held}){' + 1' if compact else ''}"
        if nullable:
            length = f"{0 if compact else -1} if {held} is None else {length}"
        self.line(f"{count} = {length}")
        if compact:
            self.compact_length(count)
        else:
            self.fixed("i", count)
            self.flush()
        if isinstance(element, Kind) and element in FIXED and element is not Kind.UUID:
            with self.block(f"if {held}:"):
                self.numbers(held, FIXED[element])
        else:
            item = self.name(name)
            with self.block(f"for {item} in {held}{' or ()' if nullable else ''}:"):
                self.value(element, where, item, name=name, nullable=False, compact=compact)
                self.flush()

    def numbers(self, held: str, code: str) -> None:
        table = self.constant("packers_" + code.replace("?", "o"), _packers(code))
        self.globals.setdefault("Struct", Struct)
        count = f"len({held})"
        pack = f"{table}[{count}] if {count} <= {SMALL_ARRAY} else Struct(f'>{{{count}}}{code}').pack"
        self.put(f"({pack})(*{held})")

    def nullable_structure(self, inner: Layout, held: str, *, tagged: bool = False) -> None:
        self.flush()
        with self.block(f"if {held} is None:"):
            self.line(f"{self.out}.append({0 if tagged else 255})")
        with self.block("else:"):
            self.line(f"{self.out}.append(1)")
            self.structure(inner, held)
            self.flush()

    def structure(self, inner: Layout, held: str) -> None:
        for field in inner.plain:
            value = f"{held}.{field.name}"
            self.value(field.type, inner, value, name=field.name, nullable=field.nullable, compact=field.compact)
        if not inner.flexible:
            return
        if not inner.tagged:
            self.fixed("x")
            return
        tags = self.name("tags")
        told = [f"({held}.{field.name} {self.differs(field)})" for field in inner.tagged]
        self.line(f"{tags} = {' + '.join(told)}")
        self.fixed("B", tags)
        self.flush()
        with self.block(f"if {tags}:"):
            for field in inner.tagged:
                with self.block(f"if {held}.{field.name} {self.differs(field)}:"):
                    self.tagged(inner, field, f"{held}.{field.name}")

    def differs(self, field: Placed) -> str:
        if field.default is None:
            return "is not None"
        if isinstance(field.default, (Message, bytes)):
            return f"!= {self.constant('default_' + field.name + self.name(''), field.default)}"
        return f"!= {field.default!r}"

    def tagged(self, inner: Layout, field: Placed, value: str) -> None:
        outer, self.out = self.out, self.name("tagged")
        self.line(f"{self.out} = bytearray()")
        if field.nullable and isinstance(field.type, Structure):
            held = self.hold(value, field.name)
            self.nullable_structure(inner.of(field.type.kind), held, tagged=True)
        else:
            self.value(field.type, inner, value, name=field.name, nullable=field.nullable, compact=True)
            self.flush()
        data, self.out = self.out, outer
        self.put(f"tag_header({field.tag}, len({data}))")
        self.put(data)
