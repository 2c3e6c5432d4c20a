"""Apache Kafka's own tools against the broker, beyond what the shared claims need of them: what administrators run.

A tool prints what it was told, so a claim here is about its words. Every one of them holds for Apache Kafka too
(`--against both`).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.reference import Reference
from tests.support.apache_kafka import dump_log_segments, java_command, run_tool
from tests.support.batches import Record
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CONFIG = "kafka.admin.ConfigCommand"


def run(broker: RunningBroker, tool: str, *arguments: str) -> str:
    """What the tool printed, when all went well."""
    return run_tool(tool, "--bootstrap-server", broker.bootstrap_servers, *arguments, check=True).stdout


def on_controller(broker: RunningBroker, tool: str, *arguments: str) -> str:
    return run_tool(tool, "--bootstrap-controller", broker.controller_bootstrap, *arguments, check=True).stdout


@pytest.fixture
def node_id(broker: RunningBroker, topic: str) -> str:
    described = run(broker, "TopicCommand", "--describe", "--topic", topic)
    found = re.search(r"Leader: (\d+)", described)
    assert found is not None
    return found[1]


def test_topics_are_listed(broker: RunningBroker, topic: str) -> None:
    assert topic in run(broker, "TopicCommand", "--list").splitlines()


def test_a_topic_is_described(broker: RunningBroker, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(fresh_name, partitions=2, configs={"retention.ms": "1000"})
    described = run(broker, "TopicCommand", "--describe", "--topic", fresh_name)
    head, *rows = described.strip().splitlines()
    assert re.search(r"TopicId: [\w-]{22}\s", head)
    assert "PartitionCount: 2\tReplicationFactor: 1" in head
    assert "retention.ms=1000" in head
    assert len(rows) == 2
    for number, row in enumerate(rows):
        assert re.search(rf"Partition: {number}\s+Leader: (\d+)\s+Replicas: \1\s+Isr: \1\s", row)


def test_nothing_is_under_replicated_or_offline(broker: RunningBroker, topic: str) -> None:
    # Only of the test's own topic: the broker is shared, and other tests leave topics that ask for more replicas.
    for which in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert run(broker, "TopicCommand", "--describe", "--topic", topic, which) == ""


def test_offsets_of_all_partitions_are_shown(broker: RunningBroker, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(fresh_name, partitions=2)
    reference.produce(fresh_name, [Record(b"v", None, (), int(time.time() * 1000))] * 3, partition=1)
    assert run(broker, "GetOffsetShell", "--topic", fresh_name).split() == [f"{fresh_name}:0:0", f"{fresh_name}:1:3"]


@pytest.mark.parametrize(
    ("when", "offset"), [("earliest", 0), ("latest", 3), ("max-timestamp", 1), ("-1", 3), ("-2", 0)]
)
def test_offsets_of_special_times(
    broker: RunningBroker, topic: str, reference: Reference, when: str, offset: int
) -> None:
    now_ms = int(time.time() * 1000)
    stamps = [now_ms - 50, now_ms, now_ms - 20]
    reference.produce(topic, [Record(b"v", None, (), stamp) for stamp in stamps])
    assert run(broker, "GetOffsetShell", "--topic", topic, "--time", when).strip() == f"{topic}:0:{offset}"


def test_log_directories_are_described(broker: RunningBroker, topic: str, reference: Reference) -> None:
    reference.produce(topic, [Record(b"v" * 1000, None, (), int(time.time() * 1000))])
    described = json.loads(run(broker, "LogDirsCommand", "--describe", "--topic-list", topic).splitlines()[-1])
    (directory,) = described["brokers"][0]["logDirs"]
    assert directory["logDir"] == str(broker.data_directory)
    assert directory["error"] is None
    (partition,) = directory["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 1000
    assert (partition["offsetLag"], partition["isFuture"]) == (0, False)


@pytest.mark.parametrize("ask", [run, on_controller], ids=["broker", "controller"])
def test_the_quorum_is_described(broker: RunningBroker, node_id: str, ask: object) -> None:
    assert callable(ask)
    status = ask(broker, "MetadataQuorumCommand", "describe", "--status")
    assert re.search(rf"^LeaderId:\s+{node_id}$", status, re.MULTILINE)
    assert re.search(r"^MaxFollowerLag:\s+0$", status, re.MULTILINE)
    voters = re.search(r"^CurrentVoters:\s+(.*)$", status, re.MULTILINE)
    assert voters is not None
    assert [str(voter["id"]) for voter in json.loads(voters[1])] == [node_id]
    replication = ask(broker, "MetadataQuorumCommand", "describe", "--replication").splitlines()
    assert len(replication) == 2
    assert replication[1].split()[0] == node_id
    assert replication[1].split()[-1] == "Leader"


@pytest.mark.parametrize("ask", [run, on_controller], ids=["broker", "controller"])
def test_features_are_described(broker: RunningBroker, ask: object) -> None:
    assert callable(ask)
    described = ask(broker, "FeatureCommand", "describe")
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.\d-IV\d", described)


def test_a_feature_beyond_the_supported_is_refused(broker: RunningBroker) -> None:
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "upgrade", "--feature", "metadata.version=99")
    done = run_tool("FeatureCommand", *arguments)
    assert done.returncode == 1
    assert "Could not upgrade metadata.version" in done.stdout + done.stderr


def test_the_preferred_leader_leads_already(broker: RunningBroker, topic: str) -> None:
    for kind in ("preferred", "unclean"):
        said = run(broker, "LeaderElectionCommand", "--election-type", kind, "--topic", topic, "--partition", "0")
        assert said.strip() == f"Valid replica already elected for partitions {topic}-0"


def test_leaders_are_elected_for_all_partitions(broker: RunningBroker, topic: str) -> None:
    said = run(broker, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert "Error" not in said


def test_api_versions_are_shown(broker: RunningBroker) -> None:
    said = run(broker, "BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): 0 to 1[0-9] \[usable: 1[0-9]\]", said)
    assert re.search(r"Fetch\(1\): 4 to 1[0-9] \[usable: 1[0-9]\]", said)
    assert re.search(r"ApiVersions\(18\): 0 to 4 ", said)


def test_a_reassignment_to_where_it_is_already_completes(
    broker: RunningBroker, topic: str, node_id: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [int(node_id)]}]})
    )
    run(broker, REASSIGN, "--execute", "--reassignment-json-file", str(plan))
    said = run(broker, REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    assert f"Reassignment of partition {topic}-0 is completed." in said
    assert "No partition reassignments found." in run(broker, REASSIGN, "--list")


def test_a_reassignment_to_an_unknown_broker_is_refused(broker: RunningBroker, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [777]}]}))
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "--execute", "--reassignment-json-file", str(plan))
    done = run_tool(REASSIGN, *arguments)
    assert done.returncode == 1
    assert "Unknown broker id 777" in done.stdout


def test_a_reassignment_is_proposed(broker: RunningBroker, topic: str, node_id: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    arguments = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", node_id)
    proposal = json.loads(run(broker, REASSIGN, *arguments).strip().splitlines()[-1])
    assert proposal["partitions"][0]["replicas"] == [int(node_id)]


def test_configs_of_a_topic_are_added_described_and_removed(broker: RunningBroker, topic: str) -> None:
    place = ("--entity-type", "topics", "--entity-name", topic)
    run(broker, CONFIG, "--alter", *place, "--add-config", "retention.ms=4711,cleanup.policy=[compact,delete]")
    described = run(broker, CONFIG, "--describe", *place)
    assert "retention.ms=4711 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=4711" in described
    assert "cleanup.policy=compact,delete" in described
    run(broker, CONFIG, "--alter", *place, "--delete-config", "retention.ms")
    assert "retention.ms" not in run(broker, CONFIG, "--describe", *place)


def test_default_configs_of_brokers_are_changed_live(broker: RunningBroker, topic: str) -> None:
    place = ("--entity-type", "brokers", "--entity-default")
    run(broker, CONFIG, "--alter", *place, "--add-config", "log.retention.ms=987654321")
    try:
        assert "log.retention.ms=987654321" in run(broker, CONFIG, "--describe", *place)
        inherited = run(broker, CONFIG, "--describe", "--all", "--entity-type", "topics", "--entity-name", topic)
        assert "retention.ms=987654321" in inherited
    finally:
        run(broker, CONFIG, "--alter", *place, "--delete-config", "log.retention.ms")


def test_the_static_configs_of_a_broker_are_described(broker: RunningBroker, node_id: str) -> None:
    described = run(broker, CONFIG, "--describe", "--all", "--entity-type", "brokers", "--entity-name", node_id)
    assert re.search(rf"^  node\.id={node_id} ", described, re.MULTILINE)
    assert re.search(r"^  log\.segment\.bytes=1073741824 ", described, re.MULTILINE)


def test_the_cluster_id_is_told(broker: RunningBroker) -> None:
    done = run_tool("ClusterTool", "cluster-id", "--bootstrap-server", broker.bootstrap_servers, check=True)
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", done.stdout)


def test_endpoints_are_listed(broker: RunningBroker, node_id: str) -> None:
    done = run_tool("ClusterTool", "list-endpoints", "--bootstrap-server", broker.bootstrap_servers, check=True)
    assert done.stdout.splitlines()[1].split()[:3] == [node_id, "127.0.0.1", str(broker.port)]


def test_the_perf_tool_produces(broker: RunningBroker, topic: str, reference: Reference) -> None:
    arguments = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    said = run(broker, "ProducerPerformance", "--topic", topic, *arguments)
    assert "20000 records sent" in said
    assert reference.first_and_next_offset(topic, 0) == (0, 20000)


def test_a_console_consumer_reads_a_partition_from_its_beginning(
    broker: RunningBroker, topic: str, reference: Reference
) -> None:
    values = [b"one", b"two", b"three"]
    reference.produce(topic, [Record(value, None, (), int(time.time() * 1000)) for value in values])
    place = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "3")
    said = run(broker, "org.apache.kafka.tools.consumer.ConsoleConsumer", *place, "--timeout-ms", "60000")
    assert said.split() == ["one", "two", "three"]


def test_replicas_are_verified(broker: RunningBroker, topic: str, reference: Reference, tmp_path: Path) -> None:
    reference.produce(topic, [Record(b"v", None, (), int(time.time() * 1000))])
    report = tmp_path / "report"
    arguments = ("--broker-list", broker.bootstrap_servers, "--topics-include", topic, "--report-interval-ms", "200")
    command = [*java_command("org.apache.kafka.tools.ReplicaVerificationTool"), *arguments]
    with report.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as tool:
        try:
            lag = wait_until(lambda: re.search(r"max lag is (\d+)", report.read_text()), "a report", within_s=120)
            assert lag[1] == "0"
        finally:
            tool.kill()


def test_the_tools_read_the_files_of_a_stopped_broker(own_broker: RunningBroker, fresh_name: str) -> None:
    reference = Reference(own_broker.bootstrap_servers)
    reference.create_topic(fresh_name, configs={"segment.bytes": "1048576"})
    # Random bytes, so that every batch is larger than the interval between two index entries.
    now_ms = int(time.time() * 1000)
    records = [Record(random.Random(n).randbytes(3000), b"key", (("h", b"x"),), now_ms + n) for n in range(25)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for _ in range(8):
            reference.produce(fresh_name, records, codec=codec, idempotent=True)
    own_broker.stop()
    folder = own_broker.data_directory / f"{fresh_name}-0"
    segments = sorted(folder.glob("*.log"))
    assert len(segments) >= 3
    dumped = dump_log_segments(segments, "--deep-iteration", "--print-data-log")
    assert dumped.returncode == 0, dumped.stderr
    assert len(re.findall(r"^\| offset: ", dumped.stdout, re.MULTILINE)) == 1000
    assert "isvalid: false" not in dumped.stdout
    # The last segment may be too short for an entry.
    indexes = [segment.with_suffix(suffix) for segment in segments[:-1] for suffix in (".index", ".timeindex")]
    sane = dump_log_segments(indexes, "--index-sanity-check")
    for index in indexes:
        assert f"{index} passed sanity check." in sane.stdout, sane.stdout + sane.stderr
    snapshots = dump_log_segments(sorted(folder.glob("*.snapshot")))
    assert snapshots.returncode == 0, snapshots.stderr


def test_the_tools_read_the_metadata_log(broker: RunningBroker, topic: str) -> None:
    segment = broker.data_directory / "__cluster_metadata-0" / "00000000000000000000.log"
    dumped = dump_log_segments([segment], "--cluster-metadata-decoder")
    assert dumped.returncode == 0, dumped.stderr
    assert f'"name":"{topic}"' in dumped.stdout
    assert '"type":"REGISTER_BROKER_RECORD"' in dumped.stdout
