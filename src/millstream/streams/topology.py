"""Topology: a finished plan, and what can be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.streams.plan.describing import describe, mermaid
from millstream.streams.plan.physical import InternalTopic, internal_topics

if TYPE_CHECKING:
    from millstream.streams.plan.plan import Plan


@dataclass(frozen=True)
class Topology:
    """What an application does. It is run by Spark, or in a test by TopologyTestDriver."""

    plan: Plan

    def describe(self, application_id: str | None = None) -> str:
        """As Kafka Streams' TopologyDescription prints it. With an application id internal topics have full names."""
        return describe(self.plan, application_id)

    def mermaid(self) -> str:
        """The same as a Mermaid flowchart, which GitHub and many editors draw."""
        return mermaid(self.plan)

    def internal_topics(self, application_id: str) -> list[InternalTopic]:
        """The topics that the application owns, as Kafka Streams would name and set them."""
        return internal_topics(self.plan, application_id)

    def __str__(self) -> str:
        return self.describe()
