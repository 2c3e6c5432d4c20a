"""Compiles the decoder of one (message, version) into straight-line Python.

The generated function reads a whole message, nested structures included, without calling anything per field: runs of
fields of fixed size become one `struct` call that also takes in the first byte (or the fixed length) of what follows,
and a length below 128 costs no call at all. What it produces for `SyncGroupResponse` v4, say, is

    (throttle_time_ms_1, error_code_2, n_3,) = unpack_ihB(b, p)
    p += 7
    if n_3 > 127:
        n_3, p = uvarint_rest(b, p, n_3)
    q = p + n_3 - 1
    ...

Nothing in the input is believed. A length is compared with what is left before a slice is taken, and a count with what
is left divided by the smallest size of an element, so a message cannot make us allocate more than a multiple of its own
size. Reading past the end surfaces as IndexError or struct.error, which the function turns into MalformedMessage.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any

from millstream.protocol.declare import Kind, Message
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.shape import (
    FIXED,
    FIXED_SIZE,
    STRING_BYTES_MAX,
    Array,
    Layout,
    Placed,
    Structure,
    Type,
    layout,
    smallest_size,
)
from millstream.protocol.source import Source
from millstream.protocol.uuid import Uuid
from millstream.protocol.varint import Buffer, decode_uvarint, uvarint_rest

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_ARRAY = 32


@cache
def _unpackers(code: str) -> tuple[Callable[[Buffer, int], tuple[Any, ...]], ...]:
    return tuple(Struct(f">{count}{code}").unpack_from for count in range(SMALL_ARRAY + 1))


def skip_tags(buffer: Buffer, position: int, first: int) -> int:
    """Step over a section of tagged fields none of which is known here."""
    count, position = (first, position) if first < 128 else uvarint_rest(buffer, position, first)
    seen: set[int] = set()
    for _ in range(count):
        _, position, _ = tag_header(buffer, position, seen)
    return position


def tag_header(buffer: Buffer, position: int, seen: set[int]) -> tuple[int, int, int]:
    """Read a tag and its size: (tag, where the field ends, where it starts)."""
    tag, size = buffer[position], buffer[position + 1]
    if tag < 128 and size < 128:
        position += 2  # nearly always
    else:
        tag, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
    if tag in seen:
        raise MalformedMessage(f"tag {tag} appears twice")
    seen.add(tag)
    if size > len(buffer) - position:
        raise MalformedMessage(f"tag {tag} claims {size} bytes, {len(buffer) - position} are left")
    return tag, position + size, position


def compile_decoder(kind: type[Message], version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    """Make `decode(buffer, position) -> (message, position after it)`."""
    compiled: Callable[[Buffer, int], tuple[Any, int]] = _DecoderSource(layout(kind, version)).compile()
    return compiled


class _DecoderSource(Source):
    """Generated code speaks of `b` (buffer), `p` (position), `end` (its length), `q` (where a slice ends)."""

    def __init__(self, message: Layout) -> None:
        super().__init__()
        self.message = message
        self.title = f"{message.kind.__name__} v{message.version}"
        self.pending: list[tuple[str, str]] = []
        self.globals.update(
            error=error,
            MalformedMessage=MalformedMessage,
            Uuid=Uuid,
            uvarint_rest=uvarint_rest,
            skip_tags=skip_tags,
            tag_header=tag_header,
        )

    def compile(self) -> Any:
        self.line("def decode(b, p):")
        with self.block():
            self.line("end = len(b)")
            with self.block("try:"):
                built = self.structure(self.message)
                self.flush()
                self.line(f"m = {built}")
            with self.block("except (IndexError, error) as problem:"):
                self.fail("ends too early", "from problem")
            with self.block("except UnicodeDecodeError as problem:"):
                self.fail("has a string that is not UTF-8", "from problem")
            self.line("return m, p")
        return self.execute(f"<decoder of {self.title}>")["decode"]

    # Fixed-size values wait in `pending` until something of another kind needs the position.

    def fixed(self, code: str, target: str) -> str:
        self.pending.append((code, target))
        return target

    def flush(self) -> None:
        if not self.pending:
            return
        codes = "".join(code for code, _ in self.pending)
        targets = [target for _, target in self.pending]
        size = sum(FIXED_SIZE[code] for code, _ in self.pending)
        self.pending.clear()
        if codes == "B":
            self.line(f"{targets[0]} = b[p]")
        else:
            unpack = self.constant("unpack_" + codes.replace("?", "o"), Struct(">" + codes).unpack_from)
            self.line(f"({', '.join(targets)},) = {unpack}(b, p)")
        self.line(f"p += {size}")

    def fail(self, what: str, cause: str = "") -> None:
        self.line(f"raise MalformedMessage({f'{self.title} {what}'!r}) {cause}".rstrip())

    # Each reader below emits code and answers with the expression of what was read.

    def value(self, kind: Type, where: Layout, *, name: str, nullable: bool, compact: bool) -> str:
        match kind:
            case Kind.STRING | Kind.BYTES | Kind.RECORDS:
                return self.slice(kind, name=name, nullable=nullable, compact=compact)
            case Kind.UUID:
                return f"Uuid({self.fixed('16s', self.name(name))})"
            case Kind():
                return self.fixed(FIXED[kind], self.name(name))
            case Array(element):
                return self.array(element, where, name=name, nullable=nullable, compact=compact)
            case Structure(nested):
                inner = where.of(nested)
                return self.nullable_structure(inner, name) if nullable else self.structure(inner)

    def length(self, name: str, *, compact: bool, code: str, at_most: int | None = None) -> str:
        """Read a length or count; a compact one is one too high, as on the wire."""
        count = self.fixed("B" if compact else code, self.name("n"))
        self.flush()
        if compact:
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, p = uvarint_rest(b, p, {count})")
                if at_most is not None:
                    with self.block(f"if {count} > {at_most + 1}:"):
                        self.fail(f"has a {name} of more than {at_most} bytes")
        return count

    def slice(self, kind: Kind, *, name: str, nullable: bool, compact: bool) -> str:
        is_string = kind is Kind.STRING
        limit = STRING_BYTES_MAX if is_string else None
        count = self.length(name, compact=compact, code="h" if is_string else "i", at_most=limit)
        target = self.name(name)
        size = f"{count} - 1" if compact else count
        null = "0" if compact else "-1"
        taken = {
            Kind.STRING: "str(b[p:q], 'utf-8')",
            Kind.BYTES: "bytes(b[p:q])",
            Kind.RECORDS: "memoryview(b)[p:q]",
        }[kind]

        def take() -> None:
            self.line(f"q = p + {size}")
            # q < p is a null or negative length where none may be.
            with self.block("if not p <= q <= end:"):
                self.fail(f"has a {name} of impossible length")
            self.line(f"{target} = {taken}")
            self.line("p = q")

        if nullable:
            with self.block(f"if {count} == {null}:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                take()
        else:
            take()
        return target

    def array(self, element: Type, where: Layout, *, name: str, nullable: bool, compact: bool) -> str:
        count = self.length(name, compact=compact, code="i")
        target = self.name(name)
        if compact:
            self.line(f"{count} -= 1")

        def take() -> None:
            # Elements of no size at all are bounded like those of one byte.
            smallest = max(1, smallest_size(element, where, compact=compact))
            scaled = count if smallest == 1 else f"{count} * {smallest}"
            with self.block(f"if not 0 <= {scaled} <= end - p:"):
                self.fail(f"has an impossible number of {name}")
            if isinstance(element, Kind) and element in FIXED and element is not Kind.UUID:
                self.numbers(target, count, FIXED[element])
                return
            self.line(f"{target} = []")
            with self.block(f"for _ in range({count}):"):
                read = self.value(element, where, name=name, nullable=False, compact=compact)
                self.flush()
                self.line(f"{target}.append({read})")

        if nullable:
            with self.block(f"if {count} == -1:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                take()
        else:
            take()
        return target

    def numbers(self, target: str, count: str, code: str) -> None:
        table = self.constant("unpackers_" + code.replace("?", "o"), _unpackers(code))
        self.globals.setdefault("Struct", Struct)
        unpack = f"{table}[{count}] if {count} <= {SMALL_ARRAY} else Struct(f'>{{{count}}}{code}').unpack_from"
        self.line(f"{target} = list(({unpack})(b, p))")
        self.line(f"p += {count} * {FIXED_SIZE[code]}")

    def nullable_structure(self, inner: Layout, name: str, *, tagged: bool = False) -> str:
        # A byte says whether a structure follows: below zero for null; but in a tagged field a varint, zero for null.
        target = self.name(name)
        if tagged:
            present = self.length(name, compact=True, code="")
            condition = f"if {present} == 0:"
        else:
            present = self.fixed("b", self.name("present"))
            self.flush()
            condition = f"if {present} < 0:"
        with self.block(condition):
            self.line(f"{target} = None")
        with self.block("else:"):
            built = self.structure(inner)
            self.flush()
            self.line(f"{target} = {built}")
        return target

    def structure(self, inner: Layout) -> str:
        arguments = [
            f"{f.name}={self.value(f.type, inner, name=f.name, nullable=f.nullable, compact=f.compact)}"
            for f in inner.plain
        ]
        built = f"{self.constant(inner.kind.__name__, inner.kind)}({', '.join(arguments)})"
        if not inner.flexible:
            return built
        tags = self.fixed("B", self.name("tags"))
        self.flush()
        if not inner.tagged:
            with self.block(f"if {tags}:"):
                self.line(f"p = skip_tags(b, p, {tags})")
            return built
        target = self.name("s")
        self.line(f"{target} = {built}")
        with self.block(f"if {tags}:"):
            self.tagged(inner, tags, target)
        return target

    def tagged(self, inner: Layout, tags: str, target: str) -> None:
        seen, tag, stop = self.name("seen"), self.name("tag"), self.name("stop")
        self.line(f"{seen} = set()")
        with self.block(f"if {tags} > 127:"):
            self.line(f"{tags}, p = uvarint_rest(b, p, {tags})")
        with self.block(f"for _ in range({tags}):"):
            self.line(f"{tag}, {stop}, p = tag_header(b, p, {seen})")
            for number, field in enumerate(inner.tagged):
                with self.block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                    read = self.tagged_value(field, inner)
                    self.flush()
                    self.line(f"{target}.{field.name} = {read}")
            with self.block("else:"):
                self.line(f"p = {stop}")
            with self.block(f"if p != {stop}:"):
                self.fail("has a tagged field whose size is wrong")

    def tagged_value(self, field: Placed, inner: Layout) -> str:
        if field.nullable and isinstance(field.type, Structure):
            return self.nullable_structure(inner.of(field.type.kind), field.name, tagged=True)
        return self.value(field.type, inner, name=field.name, nullable=field.nullable, compact=True)
