"""`millstream shims DIR`: kafka-topics and its relatives under their own names, for scripts and fingers."""

from __future__ import annotations

import os
import sys

from millstream.cli.declare import Group, UsageError, argument, flag
from millstream.cli.output import Rows

GROUP = Group("shims", "Put kafka-topics and its relatives into a directory.")
GROUPS = {"shims": GROUP}

# -P: the folder that a script is started from must not shadow modules.
SCRIPT = """#!/bin/sh
exec "{python}" -P -m millstream.cli.main {tool} "$@"
"""


@GROUP.command(
    "",
    argument("directory", "where to put them; add it to PATH"),
    flag("--force", help="overwrite files that are there already"),
    flag("--json", help="print JSON"),
    offline=True,
    example='millstream shims ~/.local/kafka && export PATH="$HOME/.local/kafka:$PATH"',
)
def shims(*, directory: str, force: bool) -> Rows:
    """Write small executables named kafka-topics, kafka-topics.sh, ... into a directory."""
    from millstream.cli.main import TOOLS

    rows = []
    try:
        os.makedirs(directory, exist_ok=True)
        for tool in TOOLS:
            for name in (tool, f"{tool}.sh"):
                path = os.path.join(directory, name)
                if os.path.exists(path) and not force and "millstream" not in _content(path):
                    raise UsageError(f"{path} is there already and not ours; --force overwrites it")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(SCRIPT.format(python=sys.executable, tool=tool))
                os.chmod(path, 0o755)  # noqa: S103 - a program for everybody
                rows.append((name, path))
    except OSError as error:
        raise UsageError(f"{error.filename}: {(error.strerror or '').lower()}") from error
    on_path = os.path.abspath(directory) in map(os.path.abspath, os.environ.get("PATH", "").split(os.pathsep))
    note = "" if on_path else f'now: export PATH="{os.path.abspath(directory)}:$PATH"'
    return Rows(("tool", "file"), rows, note=note)


def _content(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)
