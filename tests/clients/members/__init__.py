"""Members of consumer groups, each a process, so that any of them can be stopped, stalled and killed alike."""

from tests.clients.members.programs import ALL_PROGRAMS

__all__ = ["ALL_PROGRAMS"]
