"""A topology as text and as a drawing.

The text is Kafka Streams' TopologyDescription, letter by letter, so that it can be compared and fed to the tools that
draw those. The drawing is a Mermaid flowchart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.streams.plan.physical import GlobalTable, Layout, Part, Processor, Source, Writer, layout

if TYPE_CHECKING:
    from millstream.streams.plan.plan import Plan


def describe(plan: Plan, application_id: str | None = None) -> str:
    """As TopologyDescription.toString; with an application id internal topics have their full names."""
    prefix = "" if application_id is None else f"{application_id}-"
    lines = ["Topologies:"]
    for number, group in enumerate(layout(plan).groups):
        indent = "   " if number == 0 else "  "
        if isinstance(group, GlobalTable):
            lines.append(f"{indent}Sub-topology: {number} for global store (will not generate tasks)")
            lines += _said(group.source, {group.source.name: [group.processor.name]}, prefix)
            lines += _said(group.processor, {}, prefix)
        else:
            lines.append(f"{indent}Sub-topology: {number}")
            followers = _followers(group)
            for part in _ordered(group, followers):
                lines += _said(part, followers, prefix)
            lines.append("")
    return "\n".join(lines) + "\n"


def _followers(group: tuple[Part, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {part.name: [] for part in group}
    for part in group:
        for name in part.inputs:
            found[name].append(part.name)
    return found


def _ordered(group: tuple[Part, ...], followers: dict[str, list[str]]) -> list[Part]:
    """Those with most behind them first, then by name."""
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1 + sum(size(each) for each in followers[name])
        return sizes[name]

    return sorted(group, key=lambda part: (-size(part.name), part.name))


def _said(part: Part, followers: dict[str, list[str]], prefix: str) -> list[str]:
    after = ", ".join(followers.get(part.name, ())) or "none"
    before = ", ".join(part.inputs) or "none"
    match part:
        case Source(name, topics, internal):
            read = ", ".join(prefix + topic if internal else topic for topic in sorted(topics))
            said = f"[{read}]" if part.pattern is None else part.pattern
            return [f"    Source: {name} (topics: {said})", f"      --> {after}"]
        case Processor(name, _, stores):
            kept = ", ".join(sorted(stores))
            return [f"    Processor: {name} (stores: [{kept}])", f"      --> {after}", f"      <-- {before}"]
        case Writer(name, _, topic, internal):
            where = "extractor" if topic is None else f"topic: {prefix + topic if internal else topic}"
            return [f"    Sink: {name} ({where})", f"      <-- {before}"]


def mermaid(plan: Plan) -> str:
    """A flowchart: topics as barrels, stores as cylinders, one box for each sub-topology."""
    drawing = _Drawing(layout(plan))
    return "\n".join(["flowchart TD", *drawing.lines]) + "\n"


class _Drawing:
    def __init__(self, whole: Layout) -> None:
        self.lines: list[str] = []
        self._topics: dict[str, str] = {}
        arrows: list[str] = []
        for number, group in enumerate(whole.groups):
            title = "global" if isinstance(group, GlobalTable) else f"sub-topology {number}"
            parts = (group.source, group.processor) if isinstance(group, GlobalTable) else group
            self.lines.append(f'  subgraph s{number}["{title}"]')
            for part in parts:
                self.lines.append(f"    {_id(part.name)}[{part.name}]")
                arrows += self._arrows(part)
            self.lines.append("  end")
        self.lines += [f'  {name}[/"{topic}"/]' for topic, name in self._topics.items()]
        self.lines += arrows

    def _arrows(self, part: Part) -> list[str]:
        arrows = [f"  {_id(name)} --> {_id(part.name)}" for name in part.inputs]
        match part:
            case Source(topics=topics, pattern=pattern):
                shown = topics if pattern is None else (pattern,)
                arrows += [f"  {self._topic(topic)} --> {_id(part.name)}" for topic in shown]
            case Writer(topic=topic):
                arrows.append(f"  {_id(part.name)} --> {self._topic(topic or 'by record')}")
            case Processor(stores=stores):
                for store in stores:
                    arrows.append(f'  {_id(part.name)} <-.-> {_id("store " + store)}[("{store}")]')
        return arrows

    def _topic(self, topic: str) -> str:
        return self._topics.setdefault(topic, f"topic{len(self._topics)}")


def _id(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)
