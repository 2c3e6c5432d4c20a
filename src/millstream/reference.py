"""The reference documentation, written from the declarations it describes.

    python -m millstream.reference            writes docs/reference/*.md
    python -m millstream.reference --check    says which of them no longer match, and fails

Settings come from `settings`, errors from `protocol.errors`, APIs from the broker's table of handlers together with
`security.operations`, metrics from `broker.metrics`. Nothing here is typed twice, so the pages cannot drift unnoticed:
`make check` runs the check. The broker never imports this module.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import load_handlers
from millstream.broker.metrics import METRICS
from millstream.protocol import errors
from millstream.protocol.apis import API_NAMES, api
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.security.operations import API_NEEDS
from millstream.settings.catalog import FAMILIES, declared_in, name_of
from millstream.settings.declare import IfIgnored, Live, Scope, Setting
from millstream.settings.kinds import DOUBLE_MAX, INT_MAX, LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.protocol.declare import Versions
    from millstream.security.operations import Need

WRITTEN = "<!-- Written by `python -m millstream.reference` from the declarations. Change those, not this file. -->"


def settings_page() -> str:
    """Every setting by subject."""
    lines = [
        "# Settings",
        "",
        "Names, kinds, defaults and bounds are Apache Kafka 4.3's unless a row says otherwise; `millstream.*` is ours.",
        "From weak to strong: default, `server.properties`, `KAFKA_*` variables, `--set`, dynamic values of the",
        "cluster, dynamic values of the broker, and for a topic its own value.",
        "",
        "*live*: can change while the broker runs, for the whole cluster or for one broker; those of topics and",
        "groups always can. *acted on*: whether this release does anything with it. If it does not, setting it is",
        "answered with a warning or, where ignoring it would not be safe, with a refusal to start.",
    ]
    for family in FAMILIES:
        subject = family.__name__.rpartition(".")[2].capitalize()
        lines += ["", f"## {subject}", "", _first_paragraph(family.__doc__), ""]
        lines += _table(
            ("setting", "kind", "default", "allowed", "live", "acted on", "meaning"), map(_row, declared_in(family))
        )
    return _page(lines)


def _row(setting: Setting[Any]) -> tuple[str, ...]:
    meaning = setting.doc
    if setting.synonyms:
        meaning += " Default from " + ", ".join(f"`{name_of(synonym)}`" for synonym in setting.synonyms) + "."
    if setting.differs:
        meaning += f" *{setting.differs}*"
    return (
        f"`{setting.name}`",
        setting.kind.name,
        _shown(setting, setting.default),
        _allowed(setting),
        _live(setting),
        "yes" if setting.implemented else "**refused**" if setting.if_ignored is IfIgnored.UNSAFE else "no",
        meaning,
    )


def _shown(setting: Setting[Any], value: Any) -> str:
    if value is None:
        return "none"
    if value in ((), ""):
        return "empty"
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (INT_MAX, LONG_MAX, DOUBLE_MAX):
        return "unlimited"
    return f"`{setting.render(value)}`"


def _allowed(setting: Setting[Any]) -> str:
    if setting.one_of:
        return ", ".join(f"`{choice}`" for choice in setting.one_of)
    bounds = [f">= {setting.at_least}"] if setting.at_least is not None else []
    if setting.at_most is not None:
        bounds.append(f"<= {setting.at_most}")
    return ", ".join(bounds)


def _live(setting: Setting[Any]) -> str:
    if setting.scope is not Scope.BROKER:
        return f"per {setting.scope.value}"
    return {Live.NO: "", Live.PER_BROKER: "broker", Live.CLUSTER_WIDE: "cluster"}[setting.live]


def errors_page() -> str:
    """Every error code."""
    meanings: dict[ErrorCode, str] = {}
    for kind in vars(errors).values():
        if (
            isinstance(kind, type)
            and issubclass(kind, BrokerError)
            and "code" in vars(kind)
            and kind is not BrokerError
        ):
            meanings.setdefault(kind.code, _first_paragraph(kind.__doc__))
    rows = (
        (str(code.value), f"`{code.name}`", "yes" if code.retriable else "", meanings.get(code, ""))
        for code in sorted(ErrorCode)
    )
    return _page(
        [
            "# Errors",
            "",
            "The protocol's error codes. *retriable*: a client may send the same request again and expect another",
            "answer. A meaning stands where this release answers with the code itself.",
            "",
            *_table(("code", "name", "retriable", "meaning"), rows),
        ]
    )


def apis_page() -> str:
    """Every API: what is declared, what is served and advertised, and what it takes."""
    handlers = load_handlers()

    def rows() -> Iterator[tuple[str, ...]]:
        for key in sorted(API_NAMES):
            declared, handling = api(key), handlers.get(key)
            yield (
                str(key),
                declared.name,
                _versions(declared.versions),
                _versions(handling.served) if handling else "",
                _versions(handling.advertised) if handling else "",
                ", ".join(declared.listeners),
                "; ".join(map(_need, API_NEEDS[key])),
            )

    return _page(
        [
            "# APIs",
            "",
            "*declared*: the versions of Apache Kafka 4.3, all of which can be read and written. *served* and",
            "*advertised*: what this release answers and what it tells clients; an API without them is not handled.",
            "*needs*: the operation on the resource that an authorizer is asked for.",
            "",
            *_table(("key", "API", "declared", "served", "advertised", "listeners", "needs"), rows()),
        ]
    )


def _versions(versions: Versions) -> str:
    return str(versions.first) if versions.first == versions.last else f"{versions.first}-{versions.last}"


def _need(need: Need) -> str:
    ways = " or ".join(
        f"{operation.name} on {resource.name.lower().replace('_', ' ')}" for operation, resource in need.alternatives
    )
    return f"{ways} ({need.when})" if need.when else ways


def metrics_page() -> str:
    """Every metric."""
    rows = ((f"`{metric.name}`", metric.kind, ", ".join(metric.labels), metric.doc) for metric in METRICS)
    return _page(
        [
            "# Metrics",
            "",
            "Served in Prometheus' format by `millstream broker --metrics HOST:PORT`.",
            "",
            *_table(("metric", "kind", "labels", "meaning"), rows),
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "apis.md": apis_page,
    "metrics.md": metrics_page,
}


def _page(lines: Sequence[str]) -> str:
    title, *rest = lines
    return "\n".join([title, "", WRITTEN, *rest]) + "\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [header, tuple("---" for _ in header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _first_paragraph(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m millstream.reference", description="Write docs/reference.")
    parser.add_argument("--check", action="store_true", help="only say which pages are out of date")
    parser.add_argument("--directory", type=Path, default=Path("docs/reference"))
    options = parser.parse_args(arguments)
    stale = []
    for name, page in PAGES.items():
        path, text = options.directory / name, page()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path))
        if not options.check:
            options.directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale and options.check:
        sys.stderr.write(f"Out of date: {', '.join(stale)}. Run python -m millstream.reference.\n")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
