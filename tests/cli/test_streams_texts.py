"""`millstream streams` without a broker: which topics are internal, which directories may go, where a topology is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.declare import UsageError
from millstream.cli.main import main
from millstream.cli.streams_reset import Wish, checkpoints_in, delete_checkpoints, topics_to_delete
from millstream.cli.topologies import load_topology
from millstream.client.offsets import EARLIEST
from millstream.client.streams_topics import is_internal
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

WORD_COUNT = PROJECT_ROOT / "examples" / "streams_word_count.py"
TOPOLOGY = """
from millstream.streams import StreamsBuilder

builder = StreamsBuilder()
builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
made = builder.build()
number = 7


def needs(something):
    return made


class Application:
    topology = made
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "an_application_of_a_test.py"
    path.write_text(TOPOLOGY)
    return path


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("shop-counts-changelog", True),
        ("shop-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition", True),
        ("shop-accounts-subscription-registration-topic", True),
        ("shop-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000009-topic", True),
        ("shop-orders", False),
        ("shop2-counts-changelog", False),
        ("counts-changelog", False),
        ("shop-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-x-topic", False),
    ],
)
def test_internal_topics_are_known_by_their_names(topic: str, internal: bool) -> None:
    assert is_internal("shop", topic) is internal


def test_what_the_application_reads_is_never_deleted() -> None:
    names = ["shop-a-changelog", "shop-b-changelog", "shop-c-repartition", "orders"]
    wish = Wish("shop", input_topics=["shop-a-changelog"], intermediate_topics=["shop-c-repartition"])
    assert topics_to_delete(wish, names) == ["shop-b-changelog"]


def test_only_internal_topics_can_be_named_for_deletion() -> None:
    names = ["shop-a-changelog", "shop-b-changelog", "orders"]
    assert topics_to_delete(Wish("shop", internal_topics=["shop-b-changelog"]), names) == ["shop-b-changelog"]
    with pytest.raises(UsageError, match="'orders' is no internal topic of 'shop'"):
        topics_to_delete(Wish("shop", internal_topics=["orders"]), names)


def test_without_a_word_an_application_begins_at_the_beginning() -> None:
    assert Wish("shop").target(0).timestamp_ms == EARLIEST  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="only one of"):
        Wish("shop", to_latest=True, shift_by=-3).target(0)


def checkpoint(folder: Path) -> None:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text("{}")


def test_a_directory_of_checkpoints_can_go(tmp_path: Path) -> None:
    checkpoint(tmp_path / "shop" / "query-0")
    checkpoint(tmp_path / "shop" / "query-1")
    (found,) = checkpoints_in(f"file://{tmp_path}/shop")
    delete_checkpoints([found])
    assert not (tmp_path / "shop").exists()
    assert checkpoints_in(str(tmp_path / "shop")) == []


def test_a_directory_with_anything_else_in_it_stays(tmp_path: Path) -> None:
    checkpoint(tmp_path / "shop")
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(UsageError, match="other things"):
        checkpoints_in(str(tmp_path))
    with pytest.raises(UsageError, match="not on this machine"):
        checkpoints_in("s3://bucket/shop")


@pytest.mark.parametrize("name", ["made", "builder", "Application"])
def test_a_topology_is_found_by_what_it_can_do(file: Path, name: str) -> None:
    assert "Sink: KSTREAM-SINK-0000000003 (topic: out)" in load_topology(f"{file}:{name}").describe()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{file}", "has no 'topology'; there is made"),
        ("{file}:number", "no topology and makes none"),
        ("{file}:needs", "cannot be called without arguments"),
        ("{file}x.py", "there is no file"),
        ("no.such.module", "there is no module 'no.such.module'"),
    ],
)
def test_what_is_no_topology_is_refused_in_one_sentence(file: Path, words: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        load_topology(words.format(file=file))


def described(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> str:
    assert main(["streams", "describe", str(WORD_COUNT), *words]) == 0
    return capsysbinary.readouterr().out.decode()


def test_an_example_is_described(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert "Sink: KSTREAM-SINK-0000000008 (topic: counts)" in described(capsysbinary)
    assert "(topic: shop-word-counts-repartition)" in described(capsysbinary, "--application-id", "shop")
    assert described(capsysbinary, "--mermaid").startswith("flowchart TD\n")
    assert "FlatMapValues" in described(capsysbinary, "--plan")
    topics = described(capsysbinary, "--topics", "--application-id", "shop").splitlines()
    assert [line.split()[:2] for line in topics[1:]] == [
        ["shop-word-counts-repartition", "delete"],
        ["shop-word-counts-changelog", "compact"],
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("streams", "describe"),
        ("streams", "describe", str(WORD_COUNT), "--topics"),
        ("streams", "describe", str(WORD_COUNT), "--plan", "--mermaid"),
        ("streams", "reset"),
        ("kafka-streams-application-reset", "--bootstrap-server", "127.0.0.1:1"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_command_line_without_sense_is_one_sentence(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
