"""The DSL: Kafka Streams' verbs on streams and tables, in Python's style. Each verb adds nodes to a draft of a plan."""

from __future__ import annotations
