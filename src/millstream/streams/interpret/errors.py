"""What stops the driver."""

from __future__ import annotations


class BufferFull(RuntimeError):
    """More results are held back than was allowed, and none may go early."""


class UnknownStore(KeyError):
    """No store of that name exists in the topology."""

    def __str__(self) -> str:
        return str(self.args[0])


class NoTopic(ValueError):
    """A topic was to be chosen for a record, and none was."""
