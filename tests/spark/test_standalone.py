"""A cluster of two workers whose Python finds the package where nobody may write, and has an empty home.

Jobs on a cluster cost many seconds. So the one whose package is installed runs on Millstream, embedded, the one that
brings it in a wheel on Apache Kafka, and those that meet accidents on one after the other, in one Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import millstream
from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.sync import SyncClient
from tests.spark.standalone import standalone
from tests.spark.standalone_accidents import ACCIDENTS
from tests.support.requirements import PROJECT_ROOT
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.arrow.conftest import Embedded
    from tests.support.apache_kafka import ApacheKafka

pytestmark = [pytest.mark.java, pytest.mark.slow]
HERE = Path(__file__).parent


def installed(folder: Path) -> Path:
    """The package as an installation has it, for reading only."""
    source = Path(millstream.__file__).parent
    shutil.copytree(source, folder / "millstream", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


class TwoWorkers(NamedTuple):
    """A running cluster, and what its processes see."""

    master: str
    folder: Path
    packages: Path
    home: Path
    environment: dict[str, str]

    def run(self, script: str, *arguments: str, **environment: str) -> str:
        """What a driver program printed."""
        done = subprocess.run(
            [sys.executable, str(HERE / script), self.master, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=480,
            env={**os.environ, **self.environment, **environment},
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoWorkers]:
    folder = tmp_path_factory.mktemp("standalone")
    packages, home = installed(folder / "packages"), folder / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with standalone(folder, workers=2, environment=environment) as cluster:
        yield TwoWorkers(cluster.address, folder, packages, home, environment)


def last_line(printed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def test_a_job_runs_on_a_cluster_of_two_workers(
    embedded: Embedded, fresh_name: str, two_workers: TwoWorkers, tmp_path: Path
) -> None:
    files = sorted(two_workers.packages.rglob("*"))
    arguments = [embedded.bootstrap_servers, fresh_name, str(tmp_path / "checkpoint")]
    outcome = last_line(two_workers.run("standalone_job.py", *arguments))
    assert (outcome["records"], outcome["sum"]) == (1000, sum(range(1000)))
    assert len(outcome["executors"]) == 2, "both workers took part"
    assert [Path(home).name for home in outcome["packages"]] == [two_workers.packages.name]
    assert sorted(two_workers.packages.rglob("*")) == files, "nothing was written beside the package"
    assert [path.name for path in two_workers.home.iterdir()] == []


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The package as a wheel, built from a copy of the sources so that nothing is left among them."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT_ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    shutil.copytree(PROJECT_ROOT / "src", tmp_path / "src", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path / "wheels"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        # Python cannot load native modules from a wheel that is not installed, so they need not be built.
        env={**os.environ, "MILLSTREAM_PURE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (built,) = (tmp_path / "wheels").glob("*.whl")
    return built


def test_executors_take_the_package_from_a_wheel(
    apache_kafka: ApacheKafka, fresh_name: str, two_workers: TwoWorkers, wheel: Path, tmp_path: Path
) -> None:
    arguments = [apache_kafka.bootstrap_servers, fresh_name, str(tmp_path / "checkpoint")]
    submitted = {"PYSPARK_SUBMIT_ARGS": f"--py-files {wheel} pyspark-shell"}
    outcome = last_line(two_workers.run("standalone_job.py", *arguments, **submitted))
    assert (outcome["records"], outcome["sum"]) == (1000, sum(range(1000)))
    assert [Path(home).name for home in outcome["packages"]] == [wheel.name]
    assert [path.name for path in two_workers.home.iterdir()] == []


@pytest.mark.skipif(
    sys.platform != "linux", reason="speculation needs two hosts, and only Linux has them on one machine"
)
def test_copies_failures_and_stages_that_run_again_double_nothing(
    embedded: Embedded, apache_kafka: ApacheKafka, fresh_name: str, two_workers: TwoWorkers, tmp_path: Path
) -> None:
    source, target = f"{fresh_name}-source", f"{fresh_name}-target"
    brokers = {tmp_path / "millstream": embedded, tmp_path / "apache-kafka": apache_kafka}
    for folder, broker in brokers.items():
        with SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
            raise_first(client.run(create_topics, [NewTopic(source, 2, 1), NewTopic(target, 4, 1)]))
        folder.mkdir()
        for accident in ACCIDENTS:
            (folder / accident).touch()
    places = [f"{folder}={broker.bootstrap_servers}" for folder, broker in brokers.items()]
    printed = two_workers.run("standalone_accidents.py", source, target, *places)
    assert last_line(printed)["left"] == [], "an accident did not happen"
    assert printed.count("runs once, and one has failed") >= len(brokers)
    for folder, broker in brokers.items():
        assert (folder / "copied-slow").exists(), "Spark made no copy"
        servers = broker.bootstrap_servers
        until_settled(servers, target)
        committed = numbers(servers, target, "read_committed")
        assert len(numbers(servers, target, "read_uncommitted")) > len(committed), "nothing was written twice"
        assert committed == list(range(1200))


def numbers(servers: str, topic: str, isolation: Any) -> list[int]:
    found = arrow.read(servers, topic, columns=["value"], isolation=isolation)
    return sorted(int(value[:5]) for value in found["value"].to_pylist())
