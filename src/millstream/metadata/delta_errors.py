"""The one error of replaying."""

from __future__ import annotations


class BrokenMetadata(Exception):
    """The metadata log holds a record that does not fit the state before it."""
