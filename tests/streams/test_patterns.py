"""Streams of several topics, by a list or by a pattern: in the driver, in descriptions, and with what is there."""

from __future__ import annotations

import asyncio
import pickle
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from millstream.streams import StreamsBuilder, Topology, TopologyError, TopologyTestDriver
from millstream.streams.lower.deciding import engines
from millstream.streams.lower.patterns import with_present_topics, with_topics
from millstream.streams.lower.subtopologies import subtopologies

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ORDERS = re.compile("orders-.*")


def counting(*topics: object) -> Topology:
    builder = StreamsBuilder(key=str, value=str)
    builder.stream(*topics).group_by_key().count(store="counts").to_stream().to("counts")  # type: ignore[arg-type]
    return builder.build()


@pytest.mark.parametrize("topics", [("orders-a", "orders-b"), (["orders-a", "orders-b"],), (ORDERS,)])
def test_records_of_all_topics_are_one_stream(topics: tuple[object, ...]) -> None:
    with TopologyTestDriver(counting(*topics)) as driver:
        for topic in ("orders-a", "orders-b"):
            driver.input_topic(topic).pipe_input("k", "v", 5)
        assert driver.store("counts").get("k") == 2
        with pytest.raises(TopologyError, match="does not read topic 'all-orders-a'"):
            driver.input_topic("all-orders-a")


def test_what_is_written_to_a_topic_that_matches_is_read() -> None:
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").to("orders-new")
    builder.stream(ORDERS, timestamp_of=lambda _key, value, _time: int(value)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", "17", 5)
        assert driver.output_topic("out").read_record().timestamp_ms == 17


def test_a_description_shows_the_pattern() -> None:
    topology = counting(ORDERS)
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: orders-.*)\n" in topology.describe()
    assert '[/"orders-.*"/]' in topology.mermaid()
    assert "orders-.*" in str(topology.plan)


def test_a_plan_gets_the_topics_that_are_there() -> None:
    plan = pickle.loads(cloudpickle.dumps(counting(ORDERS).plan))
    found = with_topics(plan, ["other", "orders-b", "orders-a", "more-orders-c"])
    (part,) = subtopologies(found)
    assert part.topics == ("orders-a", "orders-b")
    assert found != plan
    with pytest.raises(TopologyError, match=r"no topic matches 'orders-\.\*'"):
        with_topics(plan, ["other"])


@pytest.mark.parametrize("present", [["orders-a"], ["orders-a", "orders-b"]])
def test_how_many_topics_match_does_not_decide_what_runs_it(present: list[str]) -> None:
    (said,) = engines(with_topics(counting(ORDERS).plan, present))
    assert said.endswith("it is not fed from one topic")


def test_the_applications_own_topics_match_nothing() -> None:
    names = ("orders-counts-changelog", "orders-once-repartition", "__consumer_offsets", "orders-a", "orders-tasks")
    topics = [SimpleNamespace(name=name, internal=name.startswith("__")) for name in names]

    async def everything() -> list[SimpleNamespace]:
        return topics

    class Client:
        metadata = SimpleNamespace(all_topics=everything)

        async def retrying(self, call: Callable[[], Awaitable[object]]) -> object:
            return await call()

    client: Any = Client()
    found = asyncio.run(with_present_topics(client, counting(re.compile(".*(s|g|n|a)")).plan, "orders"))
    (part,) = subtopologies(found)
    assert part.topics == ("orders-a", "orders-tasks")


def test_a_topic_is_read_once() -> None:
    builder = StreamsBuilder(key=str, value=str)
    stream = builder.stream(ORDERS)
    assert builder.stream(re.compile("orders-.*")).flow == stream.flow, "the same pattern is the same stream"
    with pytest.raises(TopologyError, match="'orders-a' is read already, by KSTREAM-SOURCE-0000000000"):
        builder.stream("orders-a")
    with pytest.raises(TopologyError, match="'orders-a' is read already"):
        builder.table("orders-a")
    with pytest.raises(TopologyError, match=r"the pattern 'b\.\*' stands alone"):
        builder.stream(re.compile("b.*"), "c")
    builder.table("users")
    with pytest.raises(TopologyError, match="'users' is read already"):
        builder.stream(re.compile("u.*"))
    # Whether two patterns meet shows when there is a topic.
    builder.stream(re.compile(".*-a")).merge(stream).to("out")
    topology = builder.build()
    with pytest.raises(TopologyError, match="'orders-a' would be read twice"):
        with_topics(topology.plan, ["orders-a", "orders-b", "b-a"])
    with TopologyTestDriver(topology) as driver, pytest.raises(TopologyError, match="'orders-a' would be read twice"):
        driver.input_topic("orders-a")
