"""The cluster itself: brokers, quorum, features, disks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.client import ANY, CONTROLLER
from millstream.client.errors import NotSupported, Refusal, refuse
from millstream.client.nodes import Broker
from millstream.client.options import Address
from millstream.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from millstream.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from millstream.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from millstream.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from millstream.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from millstream.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.client.client import Client
    from millstream.protocol.messages.describe_log_dirs import DescribeLogDirsResult
    from millstream.protocol.messages.describe_quorum import (
        DescribeQuorumResponse,
        DescribeQuorumResponsePartitionData,
    )


@dataclass(frozen=True, slots=True)
class Cluster:
    """Who is there."""

    id: str | None
    controller_id: int
    brokers: tuple[Broker, ...]
    fenced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Feature:
    """What a broker can do at the most, and what the cluster has agreed on (None: nothing)."""

    name: str
    supported: tuple[int, int]
    finalized: int | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controllers' quorum and the addresses of its nodes, where the broker tells them."""

    state: DescribeQuorumResponsePartitionData
    nodes: dict[int, tuple[Address, ...]]


async def describe_cluster(client: Client, *, fenced: bool = False) -> Cluster:
    """Brokers and controller; with `fenced` also brokers that are registered but not in service."""

    async def attempt() -> Cluster:
        response: DescribeClusterResponse = await client.call(
            DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=fenced),
            at_least=2 if fenced else 0,
        )
        refuse(response.error_code, response.error_message)
        return Cluster(
            id=response.cluster_id,
            controller_id=response.controller_id,
            brokers=tuple(
                Broker(broker.broker_id, Address(broker.host, broker.port), broker.rack)
                for broker in sorted(response.brokers, key=lambda broker: broker.broker_id)
            ),
            fenced=tuple(broker.broker_id for broker in response.brokers if broker.is_fenced),
        )

    try:
        return await client.retrying(attempt)
    except NotSupported:
        await client.retrying(client.metadata.refresh_cluster)
        brokers = tuple(client.nodes.brokers[node_id] for node_id in sorted(client.nodes.brokers))
        return Cluster(client.metadata.cluster_id, client.metadata.controller_id, brokers)


async def describe_quorum(client: Client) -> Quorum:
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
    )

    async def attempt() -> Quorum:
        response: DescribeQuorumResponse = await client.call(request)
        refuse(response.error_code, response.error_message)
        state = response.topics[0].partitions[0]
        refuse(state.error_code, state.error_message, subject="the metadata quorum")
        nodes = {
            node.node_id: tuple(Address(listener.host, listener.port) for listener in node.listeners)
            for node in response.nodes
        }
        return Quorum(state, nodes)

    return await client.retrying(attempt)


async def describe_features(client: Client, *, node: int | None = None) -> list[Feature]:
    """Features by name; every broker tells what it supports in ApiVersions."""

    async def attempt() -> list[Feature]:
        response: ApiVersionsResponse = await client.call(
            ApiVersionsRequest(client_software_name="millstream", client_software_version="0.1.0"),
            node=ANY if node is None else node,
            at_least=3,
        )
        refuse(response.error_code)
        finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
        return [
            Feature(feature.name, (feature.min_version, feature.max_version), finalized.get(feature.name))
            for feature in sorted(response.supported_features, key=lambda feature: feature.name)
        ]

    return await client.retrying(attempt)


async def update_features(
    client: Client, levels: Mapping[str, int], *, downgrade: bool = False, validate_only: bool = False
) -> None:
    """Finalize features at these levels; 0 turns one off, which is a downgrade."""
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(
                feature=name, max_version_level=level, allow_downgrade=downgrade, upgrade_type=2 if downgrade else 1
            )
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )

    async def attempt() -> None:
        response: UpdateFeaturesResponse = await client.call(
            request, node=CONTROLLER, timeout_ms=request.timeout_ms, at_least=1 if validate_only else 0
        )
        for result in response.results:
            refuse(result.error_code, result.error_message, subject=f"feature {result.feature!r}")
        refuse(response.error_code, response.error_message)

    await client.retrying(attempt)


async def describe_log_dirs(
    client: Client, node_ids: Sequence[int], *, topics: Mapping[str, Sequence[int]] | None = None
) -> dict[int, list[DescribeLogDirsResult] | Refusal]:
    """Each broker's directories: their space and the size of every partition in them."""
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=list(indexes)) for name, indexes in topics.items()]

    async def one(node_id: int) -> list[DescribeLogDirsResult] | Refusal:
        async def attempt() -> list[DescribeLogDirsResult]:
            response: DescribeLogDirsResponse = await client.call(DescribeLogDirsRequest(topics=wanted), node=node_id)
            refuse(response.error_code, subject=f"broker {node_id}")
            return response.results

        try:
            return await client.retrying(attempt)
        except Refusal as refusal:
            return refusal

    found = await asyncio.gather(*(one(node_id) for node_id in node_ids))
    return dict(zip(node_ids, found, strict=True))


async def unregister_broker(client: Client, node_id: int) -> None:
    """Forget a broker that will not come back."""

    async def attempt() -> None:
        response: UnregisterBrokerResponse = await client.call(
            UnregisterBrokerRequest(broker_id=node_id), node=CONTROLLER
        )
        refuse(response.error_code, response.error_message, subject=f"broker {node_id}")

    await client.retrying(attempt)
