"""Patterns and regular expressions, as Java reads them, in Python's engine.

Both engines agree on nearly everything that is in use. What they do not agree on is brought over (names of groups,
classes that are ASCII's alone, the replacement) or refused (what Python cannot read, or would read as something else
with no more than a warning). What is left are the ends of lines and `a{,2}`, which docs/streams.md names. An expression
that is a constant is read when the topology is built.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import lru_cache

from millstream.streams.expressions.errors import ExpressionError

_JAVA_NAME = re.compile(r"(?<!\\)((?:\\\\)*)\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_PYTHON_NAME = re.compile(r"(?<!\\)(?:\\\\)*\(\?P")
# What is done with warnings is the whole process's: two threads at once would leave it changed.
_WARNINGS = threading.Lock()


@lru_cache(1024)
def regex(pattern: str) -> re.Pattern[str]:
    """A regular expression of Java's."""
    if _PYTHON_NAME.search(pattern):
        raise ExpressionError(
            f"{pattern!r} is no regular expression of Java's: a group has its name as in (?<name>...)"
        )
    try:
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return re.compile(_JAVA_NAME.sub(r"\1(?P<\2>", pattern), re.ASCII)
    except FutureWarning as wrong:
        # To Java this is one class within another, or what two have in common; to Python just letters, so far.
        raise ExpressionError(
            f"{pattern!r} is no regular expression that can be read here: within [...] a [ and && || -- ~~ are not "
            f"understood unless each letter has a backslash ({wrong})"
        ) from None
    except (re.error, OverflowError, ValueError, RecursionError) as wrong:
        raise ExpressionError(f"{pattern!r} is no regular expression that can be read here: {wrong}") from None


@lru_cache(1024)
def like(pattern: str) -> re.Pattern[str]:
    """SQL's LIKE: a backslash may stand before %, _ and itself alone, as in Spark."""
    parts, escaped = [], False
    for letter in pattern:
        if escaped and letter not in "%_\\":
            raise ExpressionError(f"LIKE {pattern!r}: a backslash before {letter!r}")
        if escaped or letter not in "%_\\":
            parts.append(re.escape(letter))
            escaped = False
        elif letter == "\\":
            escaped = True
        else:
            parts.append(".*" if letter == "%" else ".")
    if escaped:
        raise ExpressionError(f"LIKE {pattern!r}: a backslash at the end")
    return re.compile("".join(parts), re.DOTALL)


def split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """What is between the matches, at most `limit` parts if that is above zero; groups are not among them."""
    if not pattern:
        # Java's engine would find one more empty text at the end, but Spark splits between letters without it.
        parts = list(text) or [""]
        return parts if not 0 < limit < len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    parts, at = [], 0
    for match in regex(pattern).finditer(text):
        if len(parts) == limit - 1:
            break
        if match.end() == 0:
            # Nothing was found before the first letter: that makes no part.
            continue
        parts.append(text[at : match.start()])
        at = match.end()
    return [*parts, text[at:]]


def replace(text: str, pattern: str, replacement: str) -> str:
    """All matches replaced; the replacement is Java's."""
    compiled = regex(pattern)

    def expand(match: re.Match[str]) -> str:
        # Here, since Java looks into the replacement only where there is a match.
        parts = _replacement(replacement, compiled)
        return "".join([part if isinstance(part, str) else match[part] or "" for part in parts])

    return compiled.sub(expand, text)


@lru_cache(1024)
def _replacement(replacement: str, pattern: re.Pattern[str]) -> tuple[str | int, ...]:
    """Texts and numbers of groups: $1 and ${name} are groups, a backslash takes the meaning from what follows it."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        letter, rest = replacement[at], replacement[at + 1 :]
        if letter == "$":
            group, length = _group(rest, pattern, replacement)
            parts.append(group)
            at += 1 + length
        elif letter == "\\":
            if not rest:
                raise ExpressionError(f"replacement {replacement!r}: a backslash at the end")
            parts.append(rest[0])
            at += 2
        else:
            parts.append(letter)
            at += 1
    return tuple(parts)


def _group(said: str, pattern: re.Pattern[str], replacement: str) -> tuple[int, int]:
    """The group that is named behind a $, and the length of its name; a digit more only if there are so many groups."""
    if (name := re.match(r"\{([a-zA-Z][a-zA-Z0-9]*)\}", said)) is not None and name[1] in pattern.groupindex:
        return pattern.groupindex[name[1]], name.end()
    digits = re.match("[0-9]+", said)
    if digits is None or int(said[0]) > pattern.groups:
        raise ExpressionError(f"replacement {replacement!r}: ${said[:1]} is no group of {pattern.pattern!r}")
    length = 1
    while length < digits.end() and int(said[: length + 1]) <= pattern.groups:
        length += 1
    return int(said[:length]), length
