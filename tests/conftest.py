"""Fixtures that all tests share: running brokers, and how hypothesis behaves.

Brokers are processes and cost seconds, so one of each serves a whole session; tests keep apart by topic names
(`fresh_name`). A test that needs a broker of its own asks for `fresh_millstream`.

`--against` says which brokers the claims of `tests/clients` run against: `millstream` (the default), `apache-kafka`
to check the claims themselves, or `both`. Tests that compare the two ask for `either` and always run on both.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Verbosity, settings

from tests.support.apache_kafka import ApacheKafka
from tests.support.longest_first import LongestFirst
from tests.support.millstream_process import MillstreamProcess
from tests.support.own_broker import own_broker_of
from tests.support.simulator_time import pytest_terminal_summary  # noqa: F401  # pytest finds it here
from tests.support.skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401  # these as well

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.running import RunningBroker

# In CI a run must repeat: examples follow from the test alone. Elsewhere each run explores, and a failure prints the
# blob that replays it. Machines are slow at times, so no deadline per example.
_common = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=100, **_common)
settings.register_profile("dev", max_examples=50, **_common)
settings.register_profile("soak", max_examples=5_000, **_common)
settings.register_profile("debug", max_examples=10, verbosity=Verbosity.verbose, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# As for Apache Kafka (tests/support/apache_kafka.py): tests don't wait for members that nobody starts.
QUICK = {"group.initial.rebalance.delay.ms": "0"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("millstream", "apache-kafka", "both"),
        default="millstream",
        help="which brokers the claims of tests/clients run against",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LongestFirst())
    # A shell starts background jobs (`make test &`) with SIGINT ignored, and every process below inherits that: what
    # Ctrl-C does to a command could not be tested there.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Other people's libraries warn about themselves; ours stay errors.
    for module in ("kafka", "aiokafka", "confluent_kafka"):
        config.addinivalue_line("filterwarnings", rf"ignore::DeprecationWarning:{module}\b.*")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    against = metafunc.config.getoption("--against")
    names = ["apache-kafka", "millstream"] if against == "both" else [against]
    for fixture, scope in (("broker", "session"), ("own_broker", "function")):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names, indirect=True, scope=scope)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What Apache Kafka does otherwise is no claim about it (`millstream_only` says why): deselected, not skipped."""
    others = [item for item in items if item.get_closest_marker("millstream_only") and _is_of_apache_kafka(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _is_of_apache_kafka(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("broker") == "apache-kafka"


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Apache Kafka, formatted and running."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        kafka.format()
        kafka.start()
        yield kafka
        kafka.stop()


@pytest.fixture(scope="session")
def millstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillstreamProcess]:
    """Millstream as a process, running."""
    process = MillstreamProcess(tmp_path_factory.mktemp("millstream"), settings=QUICK, controller_listener=True)
    with process:
        process.start()
        yield process
        process.stop()


@pytest.fixture
def fresh_millstream(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., MillstreamProcess]]:
    """Makes processes of a test's own, not yet started; whatever still runs at its end is killed."""
    made: list[MillstreamProcess] = []

    def make(**options: object) -> MillstreamProcess:
        process = MillstreamProcess(tmp_path_factory.mktemp("millstream"), **options)  # type: ignore[arg-type]
        made.append(process)
        return process

    yield make
    for process in made:
        process.kill()


def _running(name: str, request: pytest.FixtureRequest) -> RunningBroker:
    found: RunningBroker = request.getfixturevalue(name.replace("-", "_"))
    return found


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    """The broker that `--against` names."""
    return _running(request.param, request)


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApacheKafka | MillstreamProcess]:
    """A running broker of the kind that `--against` names, for tests that stop or kill it."""
    with own_broker_of(request.param, tmp_path, settings=QUICK, controller_listener=True) as made:
        yield made


@pytest.fixture(scope="session", params=["apache-kafka", "millstream"])
def either(request: pytest.FixtureRequest) -> RunningBroker:
    """Both brokers, one after the other."""
    return _running(request.param, request)


_names = count(1)


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> str:
    """A topic name that nobody else uses in this session."""
    words = "".join(letter if letter.isalnum() else "-" for letter in request.node.originalname)
    return f"{words[:100]}-{next(_names)}"
