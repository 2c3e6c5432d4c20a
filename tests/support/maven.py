"""Jars from Maven by name, with everything they stand on, kept in the cache; and Java programs of ours on top of them.

The pom is written at run time, so that no project file says where a registry is.
"""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.support.requirements import built_once, require, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Artifact(NamedTuple):
    """What Maven calls a thing."""

    group: str
    name: str
    version: str


def _pom(artifacts: Iterable[Artifact]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>millstream.tests</groupId><artifactId>fetched</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def fetched_jars(name: str, artifacts: Iterable[Artifact]) -> Path:
    """The folder with these jars and all that they need; fetched on the first call of all."""
    with built_once(name) as (folder, complete):
        if not complete:
            maven = require("mvn", f"Maven fetches the jars of {name}")
            (folder / "pom.xml").write_text(_pom(artifacts))
            command = [maven, "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
            arguments = ["-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"]
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=900)
            if done.returncode != 0:
                unavailable(f"Maven could not fetch {name}: {(done.stdout + done.stderr)[-2000:]}")
    return folder / "lib"


def compiled_class(source: Path, jars: Path) -> Path:
    """The folder with a Java file's classes, compiled against these jars; again only when the file changed."""
    text = source.read_text()
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
    with built_once(f"java/{source.stem}-{fingerprint}") as (folder, complete):
        if not complete:
            compiler = require("javac", "a JDK compiles our Java programs")
            command = [compiler, "-cp", f"{jars}/*", "-d", str(folder / "classes"), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder / "classes"
