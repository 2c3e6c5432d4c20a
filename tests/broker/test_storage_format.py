"""Directories say whose they are, new ones are made as Apache Kafka makes them, and the wrong ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.metadata_node import NodePorts, formatted, joined, run, running_node

from millstream.broker.kafka_properties import kafka_properties
from millstream.broker.meta_properties import MetaProperties, read_meta_properties
from millstream.broker.metadata_replay import METADATA_DIRECTORY, read_metadata
from millstream.broker.storage_format import (
    StorageLayout,
    StorageRefused,
    check_voters,
    format_storage,
    load_storage,
    open_storage,
)
from millstream.metadata.decision import Decision
from millstream.metadata.record_types import AccessControlEntryRecord, FeatureLevelRecord
from millstream.protocol.uuid import Uuid
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet

if TYPE_CHECKING:
    from pathlib import Path

CONTROLLER = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


def layout(*directories: Path) -> StorageLayout:
    return StorageLayout.of([str(directory) for directory in directories])


def made(tmp_path: Path, *, static: bool = False) -> NodePorts:
    ports = NodePorts()
    format_storage(
        ports,
        layout(tmp_path / "a"),
        cluster_id=CLUSTER,
        node_id=4,
        controller_endpoint=None if static else CONTROLLER,
    )
    return ports


def test_a_dynamic_directory_knows_its_voter_by_its_directory_id(tmp_path: Path) -> None:
    ports = made(tmp_path)
    properties = read_meta_properties(ports.disk, str(tmp_path / "a"))
    assert properties is not None
    found = read_metadata(ports.disk, str(tmp_path / "a" / METADATA_DIRECTORY))
    assert found.kraft_version == 1
    assert found.voters is not None
    (voter,) = found.voters
    assert (voter.id, voter.directory_id, voter.endpoints) == (4, properties.directory_id, (CONTROLLER,))


def test_a_static_directory_has_no_first_snapshot(tmp_path: Path) -> None:
    made(tmp_path, static=True)
    assert not (tmp_path / "a" / METADATA_DIRECTORY).exists()


def test_a_new_cluster_gets_the_levels_of_the_features_whose_apis_are_handled(tmp_path: Path) -> None:
    storage = load_storage(made(tmp_path), layout(tmp_path / "a"))
    assert {record.name: record.feature_level for record in storage.bootstrap} == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }


def test_an_empty_directory_formats_itself_and_is_the_same_afterwards(tmp_path: Path) -> None:
    ports = NodePorts()
    first = open_storage(ports, layout(tmp_path / "a"), node_id=None, controller_endpoint=CONTROLLER)
    again = open_storage(ports, layout(tmp_path / "a"), node_id=None, controller_endpoint=CONTROLLER)
    assert first == again


def test_a_format_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    ports = made(tmp_path)
    (tmp_path / "a" / "meta.properties").unlink()
    assert open_storage(ports, layout(tmp_path / "a"), node_id=4, controller_endpoint=CONTROLLER).node_id == 4


def test_a_directory_with_something_else_in_it_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "a" / "holiday-0").mkdir(parents=True)
    with pytest.raises(StorageRefused, match="holiday-0"):
        open_storage(NodePorts(), layout(tmp_path / "a"), node_id=1, controller_endpoint=CONTROLLER)


def test_a_formatted_directory_is_not_formatted_again(tmp_path: Path) -> None:
    ports = made(tmp_path)
    with pytest.raises(StorageRefused, match="formatted already"):
        format_storage(ports, layout(tmp_path / "a"), cluster_id=CLUSTER, node_id=4, controller_endpoint=None)


def test_the_directory_of_another_cluster_or_node_is_refused(tmp_path: Path) -> None:
    ports = made(tmp_path)
    with pytest.raises(StorageRefused, match=f"cluster {CLUSTER}, and not to other"):
        load_storage(ports, layout(tmp_path / "a"), cluster_id="other")
    with pytest.raises(StorageRefused, match="node 4, and not to node 5"):
        load_storage(ports, layout(tmp_path / "a"), node_id=5)


def test_a_second_disk_joins_the_first_with_an_id_of_its_own(tmp_path: Path) -> None:
    ports = made(tmp_path)
    storage = load_storage(ports, layout(tmp_path / "a", tmp_path / "b"))
    assert len(set(storage.log_dir_ids)) == 2
    assert load_storage(ports, layout(tmp_path / "a", tmp_path / "b")) == storage


def test_a_copied_disk_is_noticed(tmp_path: Path) -> None:
    ports = made(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.properties").write_bytes((tmp_path / "a" / "meta.properties").read_bytes())
    with pytest.raises(StorageRefused, match="copy"):
        load_storage(ports, layout(tmp_path / "a", tmp_path / "b"))


def test_a_disk_of_another_node_is_noticed(tmp_path: Path) -> None:
    ports = made(tmp_path)
    format_storage(ports, layout(tmp_path / "b"), cluster_id=CLUSTER, node_id=9, controller_endpoint=None)
    with pytest.raises(StorageRefused, match="node 9"):
        load_storage(ports, layout(tmp_path / "a", tmp_path / "b"))


def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    ports = NodePorts()
    places = StorageLayout.of([str(tmp_path / "data")], str(tmp_path / "meta"))
    storage = open_storage(ports, places, node_id=1, controller_endpoint=CONTROLLER)
    assert (tmp_path / "meta" / "bootstrap.checkpoint").exists()
    assert not (tmp_path / "data" / "bootstrap.checkpoint").exists()
    assert storage.metadata_directory_id not in storage.log_dir_ids
    assert f"metadata.log.dir={tmp_path / 'meta'}" in kafka_properties(ports.disk, places)


def test_apache_kafkas_meta_properties_is_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Sun Nov 15 08:55:24 UTC 2026\nnode.id=1\ndirectory.id=2tcIEnD-JgRfFOKxJBQRiQ\nversion=1\n"
        f"cluster.id={CLUSTER}\n"
    )
    expected = MetaProperties(CLUSTER, 1, Uuid.parse("2tcIEnD-JgRfFOKxJBQRiQ"))
    assert read_meta_properties(NodePorts().disk, str(tmp_path)) == expected


def test_a_directory_from_before_directory_ids_gets_one(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n")
    storage = load_storage(NodePorts(), layout(tmp_path))
    assert f"directory.id={storage.metadata_directory_id}" in (tmp_path / "meta.properties").read_text()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("version=0\nbroker.id=1\n", "ZooKeeper"), ("version=7\n", "version 7"), ("version=1\n", "incomplete")],
)
def test_a_meta_properties_that_cannot_be_understood_says_why(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(StorageRefused, match=complaint):
        read_meta_properties(NodePorts().disk, str(tmp_path))


def test_a_directory_with_access_rules_is_not_opened_unprotected(tmp_path: Path) -> None:
    rule = AccessControlEntryRecord(
        id=Uuid(b"a" * 16),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:carol",
        host="*",
        operation=3,
        permission_type=3,
    )

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.submit(lambda image, _: Decision((rule,), None))
            end = node.log.end_offset
        with pytest.raises(StorageRefused, match=r"access rules.*--insecure"):
            async with running_node(tmp_path):
                pass
        async with running_node(tmp_path, insecure=True) as node:
            # The refused start wrote nothing: our epoch begins where the first one ended.
            assert node.image.acls[rule.id] == rule
            assert node.log.log.epochs.latest_epoch == 2
            assert node.log.end_offset == end + 2

    run(scenario())


def test_a_newer_metadata_version_is_not_opened(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            newer = FeatureLevelRecord(name="metadata.version", feature_level=31)
            await node.submit(lambda image, _: Decision((newer,), None))
        with pytest.raises(StorageRefused, match="31 is newer than 30"):
            async with running_node(tmp_path):
                pass

    run(scenario())


def test_a_voter_whose_disk_was_replaced_is_refused(tmp_path: Path) -> None:
    async def start() -> None:
        async with running_node(tmp_path):
            pass

    run(start())
    properties = tmp_path / "meta.properties"
    properties.write_bytes(MetaProperties("c", 1, Uuid(b"n" * 16)).encode())
    with pytest.raises(StorageRefused, match="another directory"):
        run(start())


def test_beside_others_a_voter_may_come_back_with_another_directory_and_has_no_vote_then() -> None:
    voters = VoterSet(tuple(Voter(number, Uuid(bytes([number]) * 16)) for number in (1, 2, 3)))
    check_voters(voters, 1, 1, Uuid(b"n" * 16))
    assert not voters.includes(1, Uuid(b"n" * 16))


def test_a_newer_kraft_version_is_refused() -> None:
    with pytest.raises(StorageRefused, match=r"kraft.version 2"):
        check_voters(VoterSet((Voter(1),)), 2, 1, Uuid(b"n" * 16))


def test_levels_found_in_a_directory_are_kept(tmp_path: Path) -> None:
    ports = NodePorts()
    format_storage(
        ports,
        layout(tmp_path),
        cluster_id=CLUSTER,
        node_id=1,
        controller_endpoint=CONTROLLER,
        features={"metadata.version": 25, "group.version": 1},
    )

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await joined(node)
            assert dict(node.image.features) == {"metadata.version": 25, "group.version": 1}
            assert node.image.brokers[1].features["group.version"].max_level == 1

    run(scenario())


def test_eligible_leaders_come_with_one_min_isr_for_the_cluster(tmp_path: Path) -> None:
    ports = NodePorts()
    format_storage(
        ports,
        layout(tmp_path),
        cluster_id=CLUSTER,
        node_id=1,
        controller_endpoint=CONTROLLER,
        features={"metadata.version": 30, "eligible.leader.replicas.version": 1},
    )

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            assert node.image.config(4, "") == {"min.insync.replicas": "1"}

    run(scenario())


def test_a_metadata_log_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def start() -> None:
        async with running_node(tmp_path):
            pass

    run(start())
    (tmp_path / METADATA_DIRECTORY / "quorum-state").write_text("{}")
    with pytest.raises(StorageRefused, match="quorum-state"):
        run(start())


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_kafka_properties_tells_where_the_node_listened(tmp_path: Path, static: bool) -> None:
    ports = NodePorts()

    async def scenario() -> None:
        async with running_node(tmp_path, static=static) as node:
            await joined(node)

    run(scenario())
    properties = dict(line.split("=", 1) for line in kafka_properties(ports.disk, layout(tmp_path)).splitlines())
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert properties["node.id"] == "1"
    assert properties["log.dirs"] == str(tmp_path)
    if static:
        assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"
    else:
        assert properties["controller.quorum.bootstrap.servers"] == "127.0.0.1:9093"


def test_kafka_properties_of_a_directory_that_never_ran(tmp_path: Path) -> None:
    ports = NodePorts()
    formatted(ports, tmp_path)
    assert "CONTROLLER://127.0.0.1:9093" in kafka_properties(ports.disk, layout(tmp_path))
    with pytest.raises(StorageRefused):
        kafka_properties(ports.disk, layout(tmp_path / "nowhere"))
