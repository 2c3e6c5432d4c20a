"""Several log directories: partitions spread over them, and the metadata knows which lives where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.waiting import wait_until

from millstream import Broker

if TYPE_CHECKING:
    from pathlib import Path


def test_partitions_spread_and_stay_where_they_are(tmp_path: Path) -> None:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two"))
    with Broker(settings={"log.dirs": directories}) as broker:
        broker.create_topic("spread", partitions=6)
        node = broker._node
        assert node is not None
        counts = [len(directory.logs) for directory in node.log_directories]
        assert counts == [3, 3]
        ids = {directory.id for directory in node.log_directories}

        def all_assigned() -> bool:
            topic = node.image.topics.by_name["spread"]
            return all(set(partition.directories) <= ids for partition in topic.partitions.values())

        wait_until(all_assigned, "the controller knows where every replica lives")
        before = {(d.path, key) for d in node.log_directories for key in d.logs}
    with Broker(settings={"log.dirs": directories}) as broker:
        node = broker._node
        assert node is not None
        assert {(d.path, key) for d in node.log_directories for key in d.logs} == before
