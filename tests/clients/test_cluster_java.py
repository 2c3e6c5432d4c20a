"""Apache Kafka's own tools for clusters, against three Millstream processes: what administrators of several nodes run.

The tools of one node have their claims in test_java_tools.py. What the replicas hold is compared byte by byte.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from millstream import arrow
from millstream.records.scanning import scan_batches
from tests.cluster_chaos.links import Loopback
from tests.cluster_chaos.processes import ChaosCluster
from tests.cluster_chaos.views import Quorum, is_whole, moving, newest, quorum
from tests.support.apache_kafka import dump_log_segments, java_command, run_tool
from tests.support.topics import until_settled
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

NODES = (1, 2, 3)
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
EARLIEST = ("--reset-policy", "earliest")
# Leaders stay where the tools put them.
SETTINGS = {"auto.leader.rebalance.enable": "false"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosCluster]:
    running = ChaosCluster(tmp_path_factory.mktemp("tools"), Loopback(NODES), 1, NODES, SETTINGS)
    try:
        running.start()
        until_whole(running)
        yield running
        assert set(running.stop().values()) == {0}, running.last_words()
    finally:
        running.kill()


def until_whole(cluster: ChaosCluster) -> None:
    wait_until(lambda: is_whole(cluster, NODES), "all replicas in sync", within_s=180, every_s=0.1)


def run(cluster: ChaosCluster, tool: str, *arguments: str) -> str:
    """What the tool printed, when all went well."""
    done = run_tool(tool, "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def create_topic(cluster: ChaosCluster, name: str, *replicas: list[int], **configs: str) -> None:
    """A topic with one partition for each list of replicas."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    wanted = NewTopic(name, len(replicas), replica_assignment=list(replicas), config=config)
    admin.create_topics([wanted])[name].result(60)
    wait_until(lambda: newest(cluster, (name, len(replicas) - 1)), f"{name} to be known", within_s=60)


def write(cluster: ChaosCluster, topic: str, count: int, partitions: int, **options: Any) -> None:
    refused: list[object] = []
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "log_level": 0,
        "linger.ms": 1,
        "batch.num.messages": 20,
    }
    producer = Producer({**settings, "enable.idempotence": True, **options})
    for number in range(count):
        producer.produce(
            topic,
            b"value %d" % number,
            b"key %d" % number,
            partition=number % partitions,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not refused


def rows(told: str) -> list[list[str]]:
    return [line.split() for line in told.splitlines() if line.strip()]


# --- the quorum


def status(cluster: ChaosCluster) -> dict[str, str]:
    told = run(cluster, "MetadataQuorumCommand", "describe", "--status")
    return dict(re.findall(r"^(\w+):\s+(.*?)\s*$", told, re.MULTILINE))


def voters_in(told: dict[str, str]) -> list[int]:
    return sorted(voter["id"] for voter in json.loads(told["CurrentVoters"]))


def test_the_quorum_tool_tells_the_state_of_the_quorum(cluster: ChaosCluster) -> None:
    def told_between() -> tuple[Quorum, dict[str, str]] | None:
        """What the tool says, if nobody was elected meanwhile."""
        before, told, after = quorum(cluster), status(cluster), quorum(cluster)
        return None if before is None or before != after else (before, told)

    seen, told = wait_until(told_between, "a quorum that stays", within_s=180)
    assert (int(told["LeaderId"]), int(told["LeaderEpoch"])) == (seen.leader, seen.epoch)
    assert int(told["HighWatermark"]) > 0
    assert voters_in(told) == list(NODES)
    assert json.loads(told["CurrentObservers"]) == []


def test_the_quorum_tool_tells_how_far_each_node_is(cluster: ChaosCluster) -> None:
    head, *each = rows(run(cluster, "MetadataQuorumCommand", "describe", "--replication"))
    assert head[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert sorted((int(row[0]), row[1]) for row in each) == [
        (node, str(directory)) for node, directory in sorted(cluster.directory_ids.items())
    ]
    assert sorted(row[-1] for row in each) == ["Follower", "Follower", "Leader"]
    assert all(int(row[3]) < 100 for row in each)


def test_the_quorum_tool_removes_a_voter_and_adds_it_again(cluster: ChaosCluster) -> None:
    leader = wait_until(lambda: quorum(cluster), "a quorum").leader
    leaving = next(node for node in NODES if node != leader)
    directory = str(cluster.directory_ids[leaving])
    run(
        cluster,
        "MetadataQuorumCommand",
        "remove-controller",
        *("--controller-id", str(leaving), "--controller-directory-id", directory),
    )
    left = [node for node in NODES if node != leaving]
    assert voters_in(status(cluster)) == left
    arguments = ("--bootstrap-server", cluster.bootstrap_servers)
    arguments += ("--command-config", str(cluster.nodes[leaving].directory / "server.properties"))
    done = run_tool("MetadataQuorumCommand", *arguments, "add-controller")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert voters_in(status(cluster)) == list(NODES)


# --- replicas and leaders


def test_the_reassignment_tool_plans_moves_throttles_and_verifies(cluster: ChaosCluster, tmp_path: Path) -> None:
    create_topic(cluster, "moved", [1, 2], [1, 2])
    write(cluster, "moved", 500, 2)
    topics = tmp_path / "topics.json"
    topics.write_text('{"version": 1, "topics": [{"topic": "moved"}]}')
    told = run(cluster, REASSIGN, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3")
    current, proposed = (json.loads(line) for line in told.splitlines() if line.startswith("{"))
    assert [part["replicas"] for part in current["partitions"]] == [[1, 2], [1, 2]]
    assert {part["partition"]: len(part["replicas"]) for part in proposed["partitions"]} == {0: 2, 1: 2}

    plan = tmp_path / "plan.json"
    targets = {0: [3, 1], 1: [2, 3]}
    parts = [{"topic": "moved", "partition": index, "replicas": to} for index, to in targets.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": parts}))
    file = ("--reassignment-json-file", str(plan))
    told = run(cluster, REASSIGN, "--execute", *file, "--throttle", "5000000")
    assert "The inter-broker throttle limit was set to 5000000 B/s" in told
    assert "Successfully started partition reassignments for moved-0,moved-1" in told
    configs = run(
        cluster, "kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", "moved"
    )
    assert re.search(r"leader\.replication\.throttled\.replicas=\S*0:1\b", configs)
    wait_until(lambda: not moving(cluster), "the moves to end", within_s=120, every_s=0.1)
    told = run(cluster, REASSIGN, "--verify", *file)
    assert told.count("is completed.") == 2
    assert "Clearing topic-level throttles on topic moved" in told
    for index, to in targets.items():
        standing = newest(cluster, ("moved", index))
        assert standing is not None
        assert list(standing.replicas) == to
        assert list(standing.isr) == sorted(to)
    configs = run(
        cluster, "kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", "moved"
    )
    assert "throttled" not in configs


def test_the_election_tool_gives_a_partition_its_preferred_leader_back(cluster: ChaosCluster) -> None:
    create_topic(cluster, "preferred", [2, 3, 1])
    assert cluster.nodes[2].stop() == 0
    wait_until(lambda: (now := newest(cluster, ("preferred", 0))) and now.leader != 2, "another leader", within_s=60)
    cluster.nodes[2].start()
    until_whole(cluster)
    where = ("--topic", "preferred", "--partition", "0")
    told = run(cluster, "LeaderElectionCommand", "--election-type", "preferred", *where)
    assert told.strip() == "Successfully completed leader election (PREFERRED) for partitions preferred-0"
    wait_until(lambda: (now := newest(cluster, ("preferred", 0))) and now.leader == 2, "the preferred one", within_s=60)


def test_the_election_tool_elects_a_replica_that_lacks_records_when_told_to(cluster: ChaosCluster) -> None:
    place = ("unclean", 0)
    create_topic(cluster, "unclean", [3, 2], min_insync_replicas="1")
    write(cluster, "unclean", 20, 1)
    cluster.nodes[2].kill()
    wait_until(lambda: (now := newest(cluster, place)) and now.isr == (3,), "the ISR to be 3 alone", within_s=60)
    write(cluster, "unclean", 20, 1)
    cluster.nodes[3].kill()
    cluster.nodes[2].start()
    wait_until(lambda: (now := newest(cluster, place)) and now.leader == -1, "a partition without leader", within_s=60)
    where = ("--topic", "unclean", "--partition", "0")
    told = run(cluster, "LeaderElectionCommand", "--election-type", "unclean", *where)
    assert told.strip() == "Successfully completed leader election (UNCLEAN) for partitions unclean-0"
    wait_until(lambda: (now := newest(cluster, place)) and now.leader == 2, "the replica that is there", within_s=60)
    cluster.nodes[3].start()
    until_whole(cluster)
    write(cluster, "unclean", 20, 1)
    same_batches(cluster, place, records=40)


# --- what was written


def events(told: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def test_the_verifiable_clients_agree(cluster: ChaosCluster) -> None:
    create_topic(cluster, "verifiable", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    produced = events(
        run(cluster, "VerifiableProducer", "--topic", "verifiable", "--max-messages", "1000", "--acks", "-1")
    )
    acked = [event["value"] for event in produced if event["name"] == "producer_send_success"]
    assert len(acked) == 1000
    group = ("--topic", "verifiable", "--group-id", "verifiers", "--group-protocol", "consumer")
    consumed = events(run(cluster, "VerifiableConsumer", *group, "--max-messages", "1000", "--verbose", *EARLIEST))
    read = [event["value"] for event in consumed if event["name"] == "record_data"]
    assert sorted(read) == sorted(acked)


def test_transactions_of_java_go_on_while_every_node_is_restarted(cluster: ChaosCluster, tmp_path: Path) -> None:
    """A transaction begins while the markers of the one before are late, because their leader is another one now."""
    records = 20_000
    create_topic(cluster, "restarted", [1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1])
    arguments = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", "restarted")
    amount = ("--num-records", str(records), "--record-size", "100", "--throughput", "1000")
    transactions = ("--transactional-id", "restarted", "--transaction-duration-ms", "100")
    command = [*java_command("org.apache.kafka.tools.ProducerPerformance"), *arguments, *amount, *transactions]
    said = tmp_path / "said"
    with said.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as tool:
        try:
            wait_until(lambda: "records sent" in said.read_text(), "the first records", within_s=120)
            for node in cluster.nodes.values():
                assert node.stop() == 0
                node.start()
                until_whole(cluster)
            assert tool.wait(180) == 0, said.read_text()
        finally:
            tool.kill()
    until_settled(cluster.bootstrap_servers, "restarted")
    assert len(arrow.read(cluster.bootstrap_servers, "restarted", columns=["offset"])) == records


def test_the_replicas_are_the_same_by_kafkas_accounts_and_by_their_bytes(cluster: ChaosCluster, tmp_path: Path) -> None:
    create_topic(cluster, "same", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    write(cluster, "same", 600, 3)
    write(cluster, "same", 300, 3, **{"compression.type": "zstd"})
    for index in range(3):
        same_batches(cluster, ("same", index), records=300)
    assert len(set(dumped(cluster, "same-0"))) == 1
    report = tmp_path / "report"
    arguments = ("--broker-list", cluster.bootstrap_servers, "--topics-include", "same", "--report-interval-ms", "200")
    command = [*java_command("org.apache.kafka.tools.ReplicaVerificationTool"), *arguments]
    with report.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as tool:
        try:
            wait_until(lambda: report.read_text().count("max lag is") >= 2, "two reports", within_s=120)
        finally:
            tool.kill()
    told = report.read_text()
    assert set(re.findall(r"max lag is (\d+)", told)) == {"0"}
    assert "among 3 partitions" in told
    assert "different" not in told


def dumped(cluster: ChaosCluster, folder: str) -> list[str]:
    """Each replica's log in the words of Apache Kafka's tool, without the lines that name the file."""
    found = []
    for node in cluster.nodes.values():
        said = dump_log_segments(sorted((node.data / folder).glob("*.log")), "--deep-iteration", "--print-data-log")
        assert said.returncode == 0, said.stderr
        assert "isvalid: false" not in said.stdout
        lines = [line for line in said.stdout.splitlines() if line.startswith(("baseOffset:", "|"))]
        assert sum(line.startswith("| offset:") for line in lines) == 300
        found.append("\n".join(lines))
    return found


def same_batches(cluster: ChaosCluster, place: tuple[str, int], *, records: int) -> None:
    """All that was acknowledged is below the high watermark, so the replicas come to hold the same batches."""
    standing = newest(cluster, place)
    assert standing is not None

    def logs() -> list[bytes]:
        folders = [cluster.nodes[node].data / f"{place[0]}-{place[1]}" for node in standing.replicas]
        found = [b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) for folder in folders]
        return found if len(set(found)) == 1 else []

    (log, *_) = wait_until(logs, f"the replicas of {place} to hold the same bytes", within_s=60, every_s=0.05)
    batches = scan_batches(log).batches
    assert sum(header.last_offset_delta + 1 for _, header in batches) == records
