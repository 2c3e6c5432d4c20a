"""`millstream cluster`: who is there, what they agreed on, how full their disks are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.declare import Group
from millstream.cli.output import Rows
from millstream.client.admin import raise_first
from millstream.client.admin.cluster import (
    describe_cluster,
    describe_features,
    describe_log_dirs,
    describe_quorum,
)

if TYPE_CHECKING:
    from millstream.client.sync import SyncClient

GROUP = Group("cluster", "The cluster: brokers, controllers, features, disks.")
GROUPS = {"cluster": GROUP}


@GROUP.command("describe", example="millstream cluster describe")
def describe(client: SyncClient) -> Rows:
    """Show the cluster's id and its brokers."""
    cluster = client.run(describe_cluster)
    rows = [
        (
            broker.id,
            broker.address.host,
            broker.address.port,
            broker.rack,
            broker.id == cluster.controller_id,
            cluster.id,
        )
        for broker in cluster.brokers
    ]
    return Rows(("broker", "host", "port", "rack", "controller", "cluster_id"), rows)


@GROUP.command("quorum", example="millstream cluster quorum")
def quorum(client: SyncClient) -> Rows:
    """Show the controllers' quorum."""
    found = client.run(describe_quorum)
    state = found.state
    rows = [
        (
            replica.replica_id,
            "leader" if replica.replica_id == state.leader_id else role,
            replica.log_end_offset,
            max(state.high_watermark - replica.log_end_offset, 0),
            state.leader_epoch,
            tuple(str(address) for address in found.nodes.get(replica.replica_id, ())),
        )
        for role, replicas in (("voter", state.current_voters), ("observer", state.observers))
        for replica in replicas
    ]
    return Rows(("node", "role", "log_end_offset", "lag", "epoch", "addresses"), rows)


@GROUP.command("features", example="millstream cluster features")
def features(client: SyncClient) -> Rows:
    """Show feature levels: what the brokers support, and what is in force."""
    return Rows(
        ("feature", "lowest", "highest", "finalized"),
        [(feature.name, *feature.supported, feature.finalized) for feature in client.run(describe_features)],
    )


@GROUP.command("disks", example="millstream cluster disks")
def disks(client: SyncClient) -> Rows:
    """Show the brokers' directories and what lies in them."""
    cluster = client.run(describe_cluster)
    found = raise_first(client.run(describe_log_dirs, [broker.id for broker in cluster.brokers]))
    rows = []
    for node_id, directories in found.items():
        for directory in directories:
            partitions = [partition for topic in directory.topics for partition in topic.partitions]
            rows.append(
                (
                    node_id,
                    directory.log_dir,
                    len(partitions),
                    sum(partition.partition_size for partition in partitions),
                    directory.usable_bytes,
                    directory.total_bytes,
                )
            )
    return Rows(("broker", "directory", "partitions", "log_bytes", "usable_bytes", "total_bytes"), rows)
