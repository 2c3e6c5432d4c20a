"""What a simulation ends with when something is wrong."""

from __future__ import annotations


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


class TookTooLong(Violation):
    """Something that must happen has not happened in time."""

    def __init__(self, what: str) -> None:
        super().__init__("it comes to rest", what)
