"""A metadata quorum of two Millstream nodes and one of Apache Kafka: all three speak KRaft, whoever leads.

Its fixed voters become voters in the log (kraft.version 1) by Apache Kafka's own tool. And Apache Kafka's node counts:
after one of ours was killed, nothing is committed without its acknowledgement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.support.apache_kafka import ApacheKafka, run_tool
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.java

CLUSTER_ID = "bWlsbHN0cmVhbS10ZXN0cw"
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def replication(bootstrap_servers: str) -> dict[int, tuple[int, str]]:
    """Of each node in the quorum: the end of its log as the leader knows it, and its role, told by Kafka's own tool."""
    told = run_tool("MetadataQuorumCommand", "--bootstrap-server", bootstrap_servers, "describe", "--replication")
    rows = re.findall(r"^(\d+)\s+\S+\s+(-?\d+)\s+-?\d+\s+-?\d+\s+-?\d+\s+(\w+)", told.stdout, re.MULTILINE)
    return {int(node): (int(end), role) for node, end, role in rows}


def test_a_quorum_of_both_agrees_and_outlives_the_loss_of_one(tmp_path: Path) -> None:
    controllers = free_ports(3)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
    quorum = {"controller.quorum.voters": voters, "controller.listener.names": "CONTROLLER"}
    ours = {
        number: MillstreamProcess(
            tmp_path / f"node-{number}",
            settings={
                **quorum,
                "process.roles": "broker,controller",
                "node.id": str(number),
                "listeners": f"CONTROLLER://127.0.0.1:{controllers[number - 1]}",
            },
            arguments=("--cluster-id", CLUSTER_ID),
        )
        for number in (1, 2)
    }
    (broker_port,) = free_ports(1)
    theirs = ApacheKafka(
        tmp_path / "kafka",
        node_id=3,
        cluster_id=CLUSTER_ID,
        properties={
            **quorum,
            "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controllers[2]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        },
    )
    theirs.format()
    try:
        theirs.launch()
        for node in ours.values():
            node.launch()
        for node in ours.values():
            node.until_ready(within_s=120)
        both = ",".join(node.bootstrap_servers for node in ours.values())
        wait_until(lambda: followers_are_level(both, 3), "all three to hold the same log", within_s=120, every_s=1)
        wait_until(lambda: created(both, "one"), "a topic to be created", within_s=120, every_s=1)
        assert set(wait_until(lambda: directories(both), "the voters").values()) == {NO_DIRECTORY}
        wait_until(lambda: feature(both, "upgrade", 1).returncode == 0, "kraft.version 1", within_s=120, every_s=1)
        told = run_tool("FeatureCommand", "--bootstrap-server", both, "describe", check=True).stdout
        assert re.search(r"kraft\.version\s.*FinalizedVersionLevel: 1\b", told), told
        refused = feature(both, "downgrade", 0)
        assert refused.returncode != 0
        assert "kraft.version" in refused.stdout + refused.stderr
        wait_until(lambda: all_have_directories(both), "the voters' directories", within_s=120, every_s=1)
        ours[1].kill()
        left = ours[2].bootstrap_servers
        wait_until(lambda: created(left, "two"), "a topic to be created without node 1", within_s=120, every_s=1)
        wait_until(lambda: followers_are_level(left, 2), "both that are left to be level", within_s=120, every_s=1)
    finally:
        for node in ours.values():
            node.kill()
        theirs.kill()


def feature(bootstrap_servers: str, command: str, level: int) -> subprocess.CompletedProcess[str]:
    return run_tool(
        "FeatureCommand", "--bootstrap-server", bootstrap_servers, command, "--feature", f"kraft.version={level}"
    )


def directories(bootstrap_servers: str) -> dict[int, str]:
    """By voter, the id of its directory."""
    told = run_tool("MetadataQuorumCommand", "--bootstrap-server", bootstrap_servers, "describe", "--replication")
    return {int(node): directory for node, directory in re.findall(r"^(\d+)\s+(\S+)", told.stdout, re.MULTILINE)}


def all_have_directories(bootstrap_servers: str) -> bool:
    found = directories(bootstrap_servers)
    return sorted(found) == [1, 2, 3] and NO_DIRECTORY not in found.values()


def followers_are_level(bootstrap_servers: str, count: int) -> bool:
    """Whether a leader is known, and so many nodes have the end of its log."""
    rows = replication(bootstrap_servers)
    leading = [end for end, role in rows.values() if role == "Leader"]
    return len(leading) == 1 and sum(end == leading[0] for end, _ in rows.values()) >= count


def created(bootstrap_servers: str, topic: str) -> bool:
    done = run_tool(
        "TopicCommand", "--bootstrap-server", bootstrap_servers, "--create", "--if-not-exists", "--topic", topic
    )
    return done.returncode == 0
