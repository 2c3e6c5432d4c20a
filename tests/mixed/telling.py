"""Exchanges as text: a table of what was said in which order, and the bytes of those that tell the most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.mixed.recorder import Exchange

# What nodes of different kinds say to each other, and nobody else does.
TELLING = (
    "BrokerRegistration", "BrokerHeartbeat", "Fetch", "FetchSnapshot", "AlterPartition", "AllocateProducerIds",
    "AssignReplicasToDirs", "Envelope", "WriteTxnMarkers", "AddPartitionsToTxn", "ControllerRegistration", "Vote",
    "BeginQuorumEpoch", "EndQuorumEpoch", "UpdateRaftVoter",
)  # fmt: skip

FEW_BYTES = 400


def between_kinds(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Those of a node of one kind with a node of the other; clients and talks among equals are left out."""
    kinds = ("millstream", "kafka")
    return [
        each for each in exchanges if each.asker.split()[0] in kinds and each.asker.split()[0] != each.asked.split()[0]
    ]


def errors_of(message: Any) -> list[str]:
    """The names of all errors anywhere in an answer, in order."""
    found: dict[str, None] = {}
    for name, value in _fields(message):
        if name == "error_code" and value:
            found[ErrorCode(value).name] = None
    return list(found)


def _fields(message: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(message, list | tuple):
        for item in message:
            yield from _fields(item)
    for name in getattr(message, "__struct_fields__", ()):
        value = getattr(message, name)
        yield name, value
        yield from _fields(value)


def table(exchanges: Iterable[Exchange]) -> list[str]:
    """Rows of a Markdown table; neighbours that differ in nothing but their sizes share one."""
    rows: list[tuple[tuple[str, ...], list[Exchange]]] = []
    for each in exchanges:
        errors = "unanswered" if each.response is None else ", ".join(errors_of(each.answer()))
        key = (each.asker, each.asked, each.api, str(each.version), errors)
        # A poll of two kinds of things goes on all the time: what differs is what is new.
        known = next((row for row in rows[-6:] if row[0] == key), None)
        if known is None:
            rows.append((key, [each]))
        else:
            known[1].append(each)
    lines = [
        "| who | asks | API | v | times | request, bytes | answer, bytes | errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (asker, asked, api, version, errors), group in rows:
        sizes = _range(len(each.request) for each in group)
        answers = _range(len(each.response or b"") for each in group)
        lines.append(f"| {asker} | {asked} | {api} | {version} | {len(group)} | {sizes} | {answers} | {errors} |")
    return lines


def _range(sizes: Iterable[int]) -> str:
    found = sorted(sizes)
    return str(found[0]) if found[0] == found[-1] else f"{found[0]}-{found[-1]}"


def dump(exchange: Exchange) -> list[str]:
    """Both frames in hexadecimal digits, without their lengths, and what they say."""
    lines = [f"{exchange.asker} -> {exchange.asked}: {exchange.api} v{exchange.version}"]
    for sign, frame, meaning in (
        (">", exchange.request, exchange.question()),
        ("<", exchange.response or b"", exchange.answer()),
    ):
        digits = frame.hex()
        lines += [f"{sign} {digits[start : start + 96]}" for start in range(0, len(digits), 96)]
        lines.append(f"  {meaning}")
    return lines


def telling(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Of each API and direction, one exchange: among those that say the most, the first."""
    found: dict[tuple[str, str, str], tuple[int, Exchange]] = {}
    for each in exchanges:
        if each.api not in TELLING or each.response is None:
            continue
        key = (each.api, each.asker.split()[0], _kind_and_role(each.asked))
        worth = _worth(each)
        if worth > found.get(key, (0, each))[0]:
            found[key] = (worth, each)
    return [found[key][1] for key in sorted(found, key=lambda key: (TELLING.index(key[0]), key))]


def _worth(exchange: Exchange) -> int:
    answer = exchange.answer()
    if errors_of(answer) not in ([], [ErrorCode.NEW_LEADER_ELECTED.name]):
        return 0
    if exchange.api == "BrokerHeartbeat":
        return 2 if answer.should_shut_down else 1
    if exchange.api == "Fetch":
        # Some records, but not pages of them.
        sizes = [len(part.records or b"") for topic in answer.responses for part in topic.partitions]
        return 2 if sizes and 0 < sum(sizes) < FEW_BYTES else 1
    return 1


def _kind_and_role(asked: str) -> str:
    kind, _, role = asked.split()
    return f"{kind} {role}"


def as_captured(exchange: Exchange) -> str:
    """The form of captured.txt."""
    assert exchange.response is not None
    head = f"{exchange.asker.split()[0]} -> {_kind_and_role(exchange.asked)}: {exchange.api} v{exchange.version}"
    return f"{head}\n> {exchange.request.hex()}\n< {exchange.response.hex()}\n"
