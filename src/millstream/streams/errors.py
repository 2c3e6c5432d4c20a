"""What is refused when a topology is built, each with its reason."""

from __future__ import annotations


class TopologyError(ValueError):
    """The topology cannot be right; the text says why."""


class NameCollision(TopologyError):
    """Two nodes or two stores under one name."""


class NotCopartitioned(TopologyError):
    """A join of topics whose equal keys may lie in partitions of different number."""
