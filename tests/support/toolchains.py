"""Clients from other languages, fetched by name on demand and kept in the cache.

kcat comes from the distribution's packages: from the PATH, or unpacked into the cache without installing anything.
kafkajs comes from npm, franz-go and sarama are compiled once with Go. Where one can't be had, the test is skipped and
says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.requirements import built_once, require, unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KAFKAJS = "kafkajs@2.2.4"
# The snappy and zstd codecs are plug-ins of kafkajs; lz4 has none that builds on current Node.
KAFKAJS_CODECS = ("kafkajs-snappy@1.1.0",)
FRANZ_GO = {"github.com/twmb/franz-go": "v1.22.2", "github.com/twmb/franz-go/pkg/kadm": "v1.19.0"}
SARAMA = {"github.com/IBM/sarama": "v1.61.1"}


def _run(command: Sequence[str], cwd: Path, what: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | dict(environment or {}),
    )
    if done.returncode != 0:
        unavailable(
            f"{what}: `{' '.join(command)}` ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        )
    return done.stdout


def kcat() -> tuple[str, dict[str, str]]:
    """The path of kcat, and the environment that it needs."""
    if installed := shutil.which("kcat") or shutil.which("kafkacat"):
        return installed, {}
    with built_once("kcat") as (folder, complete):
        root = folder / "root"
        if not complete:
            require("apt-get", "install kcat by hand")
            plan = _run(
                ["apt-get", "install", "--simulate", "kcat"], folder, "kcat is not among this machine's packages"
            )
            packages = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
            _run(["apt-get", "download", *packages], folder, "kcat could not be downloaded")
            for package in sorted(folder.glob("*.deb")):
                _run(["dpkg", "-x", str(package), str(root)], folder, "kcat could not be unpacked")
    libraries = sorted({str(library.parent) for library in root.glob("usr/lib/**/*.so.*")})
    return str(root / "usr/bin/kcat"), {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def kafkajs() -> tuple[str, dict[str, str]]:
    """The path of node, and the environment in which a script finds kafkajs."""
    node = require("node", "kafkajs needs Node.js")
    with built_once(KAFKAJS) as (folder, complete):
        if not complete:
            npm = require("npm", "npm fetches kafkajs")
            (folder / "package.json").write_text('{"private": true}')
            command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", KAFKAJS, *KAFKAJS_CODECS]
            _run(command, folder, "npm could not fetch kafkajs")
    return node, {"NODE_PATH": str(folder / "node_modules")}


def go_program(source: Path, modules: Mapping[str, str] = FRANZ_GO) -> Path:
    """A Go program on these modules, compiled again only when its source changed."""
    text = source.read_text()
    fingerprint = hashlib.sha256((text + repr(modules)).encode()).hexdigest()[:16]
    client = "franz-go" if modules is FRANZ_GO else "sarama"
    with built_once(f"{client}/{fingerprint}") as (folder, complete):
        if not complete:
            go = require("go", f"{client} needs Go")
            (folder / "main.go").write_text(text)
            requirements = "".join(f"require {module} {version}\n" for module, version in modules.items())
            (folder / "go.mod").write_text(f"module claims\n\ngo 1.24\n\n{requirements}")
            # Modules and build cache stay with Go's own; only the binary is ours.
            _run([go, "mod", "tidy"], folder, f"Go could not fetch {client}")
            _run([go, "build", "-o", "claims", "."], folder, f"the {client} program does not compile")
    return folder / "claims"
