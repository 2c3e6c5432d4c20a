"""Is there a Java that Spark can run on? Asked before Spark is, whose own answer is a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from millstream.client.errors import ClientError

OLDEST: Final = 17


class NoJava(ClientError):
    """Spark cannot start: there is no Java, or it is too old."""


def check_java() -> int:
    """The version of the Java that Spark will start."""
    java = _find_java()
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"Spark needs Java {OLDEST} or newer, and {java} does not run: {error}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None:
        said = (done.stderr + done.stdout).strip().partition("\n")[0]
        raise NoJava(f"Spark needs Java {OLDEST} or newer, and {java} does not say its version: {said}")
    version = int(found[1])
    if version < OLDEST:
        raise NoJava(f"Spark needs Java {OLDEST} or newer, but {java} is Java {version}: set JAVA_HOME to a newer one")
    return version


def _find_java() -> str:
    """As Spark's launcher looks for it: JAVA_HOME, then the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
        if not os.path.exists(java):
            raise NoJava(f"Spark needs Java {OLDEST} or newer, but JAVA_HOME is {home}, where there is no bin/java")
        return java
    on_path = shutil.which("java")
    if on_path is None:
        raise NoJava(f"Spark needs Java {OLDEST} or newer, and there is none: install one, or set JAVA_HOME")
    return on_path
