"""`millstream format`: who votes at first, for each way in which a cluster can begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.metadata_node import NodePorts

from millstream.broker.formatting import FormatPlan, format_node
from millstream.broker.metadata_replay import METADATA_DIRECTORY, read_metadata
from millstream.broker.storage_format import Storage, StorageRefused

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.broker.metadata_replay import ReplayedMetadata

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
DIRECTORIES = ("QAAAAAAAAAAAAAAAAAAAAQ", "QAAAAAAAAAAAAAAAAAAAAg", "QAAAAAAAAAAAAAAAAAAAAw")
THREE = ",".join(f"{number}@c{number}:9093:{each}" for number, each in enumerate(DIRECTORIES, 1))
LISTENERS = {"listeners": "PLAINTEXT://:9092,CONTROLLER://c2:9093", "controller.listener.names": "CONTROLLER"}
BOTH = {**LISTENERS, "process.roles": "broker,controller", "node.id": "2"}
BROKER = {
    "process.roles": "broker",
    "node.id": "9",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "c1:9093",
}


def formatted(directory: Path, properties: dict[str, str], **plan: object) -> tuple[Storage, ReplayedMetadata]:
    given = {**properties, "log.dirs": str(directory)}
    ports = NodePorts()
    storage = format_node(ports, FormatPlan(cluster_id=CLUSTER, properties=given, **plan))  # type: ignore[arg-type]
    ports.workers.close()
    return storage, read_metadata(ports.disk, str(directory / METADATA_DIRECTORY))


def test_one_of_several_initial_controllers_gets_the_directory_id_that_it_was_promised(tmp_path: Path) -> None:
    storage, metadata = formatted(tmp_path, BOTH, initial_controllers=THREE)
    assert (storage.cluster_id, storage.node_id, str(storage.metadata_directory_id)) == (CLUSTER, 2, DIRECTORIES[1])
    assert metadata.voters is not None
    assert metadata.kraft_version == 1
    assert [(voter.id, str(voter.directory_id), voter.endpoints[0].host) for voter in metadata.voters] == [
        (1, DIRECTORIES[0], "c1"),
        (2, DIRECTORIES[1], "c2"),
        (3, DIRECTORIES[2], "c3"),
    ]


def test_a_standalone_controller_is_the_only_voter(tmp_path: Path) -> None:
    storage, metadata = formatted(tmp_path, BOTH, standalone=True)
    assert metadata.voters is not None
    (voter,) = metadata.voters
    assert (voter.id, voter.directory_id) == (2, storage.metadata_directory_id)
    assert (voter.endpoints[0].host, voter.endpoints[0].port) == ("c2", 9093)


def test_others_reach_a_controller_where_it_is_advertised(tmp_path: Path) -> None:
    advertised = "PLAINTEXT://outside:9092,CONTROLLER://outside:19093"
    _, metadata = formatted(tmp_path, BOTH | {"advertised.listeners": advertised}, standalone=True)
    assert metadata.voters is not None
    (voter,) = metadata.voters
    assert (voter.endpoints[0].host, voter.endpoints[0].port) == ("outside", 19093)


@pytest.mark.parametrize(
    ("properties", "plan"),
    [
        ({**BOTH, "controller.quorum.voters": "1@c1:9093,2@c2:9093"}, {}),
        (BOTH, {"no_initial_controllers": True}),
        (BROKER, {}),
    ],
    ids=["fixed voters", "a controller that joins", "a broker"],
)
def test_the_others_are_formatted_without_voters(
    tmp_path: Path, properties: dict[str, str], plan: dict[str, bool]
) -> None:
    storage, metadata = formatted(tmp_path, properties, **plan)
    assert metadata.voters is None
    assert storage.cluster_id == CLUSTER


@pytest.mark.parametrize(
    ("properties", "plan", "why"),
    [
        (BOTH, {}, "needs one of"),
        (BOTH, {"standalone": True, "initial_controllers": THREE}, "cannot both be"),
        ({**BOTH, "controller.quorum.voters": "2@c2:9093"}, {"standalone": True}, "fixed by"),
        (BROKER, {"standalone": True}, "only a broker"),
        ({**BOTH, "node.id": "4"}, {"initial_controllers": THREE}, "does not name node 4"),
        (BOTH, {"initial_controllers": f"{THREE},2@c9:9093:{DIRECTORIES[1][:-1]}Q"}, "names a node twice"),
        (BOTH, {"initial_controllers": f"1@c1:9093:{DIRECTORIES[1]},2@c2:9093:{DIRECTORIES[1]}"}, "directory twice"),
        (BOTH, {"initial_controllers": "2@c2:9093"}, "id@host:port:directory-id"),
        (BOTH, {"initial_controllers": "2@c2:9093:short"}, "--initial-controllers has"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, properties: dict[str, str], plan: dict[str, object], why: str
) -> None:
    with pytest.raises(StorageRefused, match=why):
        formatted(tmp_path, properties, **plan)
    assert not (tmp_path / "meta.properties").exists()


def test_a_formatted_directory_is_left_alone_on_request(tmp_path: Path) -> None:
    first, _ = formatted(tmp_path, BOTH, standalone=True)
    again, _ = formatted(tmp_path, BOTH, standalone=True, ignore_formatted=True)
    assert again.directory_ids == first.directory_ids
    with pytest.raises(StorageRefused, match="formatted already"):
        formatted(tmp_path, BOTH, standalone=True)
