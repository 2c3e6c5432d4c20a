"""What is refused when a topology is built, each with its reason; and what ends one that runs."""

from __future__ import annotations


class TopologyError(ValueError):
    """The topology cannot be right; the text says why."""


class NameCollision(TopologyError):
    """Two nodes or two stores under one name."""


class StateLost(RuntimeError):
    """State cannot be read back whole: the application ends instead of going on with a part of it."""


class InputLost(RuntimeError):
    """Records that the application had still to read are gone; the text says what can be done."""


class NotCopartitioned(TopologyError):
    """A join of topics whose equal keys may lie in partitions of different number."""
