r"""Java's properties format, as `java.util.Properties.load` reads it.

Lines are `key=value`, `key: value` or `key value`; `#` and `!` start a comment line; a backslash at the end joins the
next line, whose leading blanks are dropped; `\t`, `\n`, `\r`, `\f` and `\uXXXX` are escapes, and a backslash
before anything else just vanishes. A key that comes twice has its last value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.settings.declare import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["parse_properties", "render_properties"]

_BLANKS = " \t\f"
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|u|.|$)"
_KEY_END = r"(?<!\\)(?:\\\\)*[=: \t\f]"
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = r"\r\n|\r|\n"


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file, in the file's order."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        end = re.search(_KEY_END, line)
        key, rest = (line, "") if end is None else (line[: end.end() - 1], line[end.end() - 1 :])
        rest = rest.lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        found[_unescape(key)] = _unescape(rest)
    return found


def render_properties(values: Mapping[str, str]) -> str:
    """A file that Java reads back as the same values."""
    return "".join(f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in values.items())


def _logical_lines(text: str) -> Iterator[str]:
    pending: str | None = None
    for natural in re.split(_LINE_END, text):
        line = natural.lstrip(_BLANKS)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = None
        yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        if escape == "u":
            raise SettingsError(f"{text!r} has \\u without four hexadecimal digits.")
        if escape[:1] == "u":
            return chr(int(escape[1:], 16))
        return _LETTERS.get(escape, escape)

    if "\\" not in text:
        return text
    # Java writes a letter beyond 16 bits as two escapes; going through UTF-16 makes it one letter again.
    return re.sub(_ESCAPE, replaced, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escape(text: str, *, key: bool) -> str:
    special = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    if key:
        special |= {"=": "\\=", ":": "\\:", " ": "\\ ", "#": "\\#", "!": "\\!"}
    escaped = "".join(special.get(letter, letter) for letter in text)
    if not key and escaped.startswith(" "):
        escaped = "\\" + escaped
    return "".join(letter if " " <= letter <= "~" else _utf16_escape(letter) for letter in escaped)


def _utf16_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
