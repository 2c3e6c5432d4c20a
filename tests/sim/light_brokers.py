"""As much of a broker as its controllers see of it, so that hundreds fit into one process.

A light broker registers, sends heartbeats, fetches the metadata log as an observer does (the real messages, over the
simulated network) and asks for its followers to be taken back into the ISR. It has no partitions and no log: what it
fetches is followed by its batches' headers alone, and which partitions it leads it reads from a controller's image,
once it has fetched that far itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream.broker.peers import Peers, PeerUnreachable
from millstream.broker.quorum_messages import fetch_request, seen_in_fetch
from millstream.metadata.features import registered_features
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import broker_registration
from millstream.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from millstream.protocol.messages.broker_registration import BrokerRegistrationRequest
from millstream.protocol.uuid import Uuid
from millstream.quorum.positions import LogPosition
from millstream.records.batch import HEADER, LENGTH_END, BatchHeader
from millstream.settings import BROKER_HEARTBEAT_INTERVAL_MS
from millstream.testing.cluster import CLIENT_PORT, CONTROLLER_PORT
from millstream.testing.loop import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.metadata.image import MetadataImage
    from millstream.testing.cluster import SimulatedCluster

HEARTBEAT_S = BROKER_HEARTBEAT_INTERVAL_MS.default / 1000
IMPATIENT_S = 0.2
# As a broker that fetches: after `controller.quorum.fetch.timeout.ms` it looks for another controller.
ANSWER_MS = 2_000
LOOK_S = 0.2
FETCH_WAIT_MS = 500
FETCH_BYTES_MAX = 8 << 20


class LightBroker:
    """One of many. `newest_image` is where it looks up what it leads."""

    def __init__(
        self, cluster: SimulatedCluster, number: int, rack: str, newest_image: Callable[[], MetadataImage | None]
    ) -> None:
        self.id = number
        self.rack = rack
        self.host = f"broker-{number}"
        self.epoch = -1
        self.is_fenced = True
        self.end = LogPosition(0, 0)
        self.high_watermark = 0
        self.fencings = 0
        self._cluster = cluster
        self._newest_image = newest_image
        self._directory = Uuid(b"\x40" + cluster.random_for(f"directory of {number}").randbytes(15))
        self._random = cluster.random_for(self.host)
        self._process: Process | None = None
        self._controller = 1
        self._quorum_epoch = 0
        self._lives = 0
        self._looked_at = -1

    @property
    def is_up(self) -> bool:
        return self._process is not None and not self._process.is_dead

    def boot(self) -> None:
        self._lives += 1
        self.epoch, self.is_fenced = -1, True
        self.end, self.high_watermark = LogPosition(0, 0), 0
        self._cluster.network.machine_back(self.host)
        self._peers = Peers(self._cluster.network.at(self.host), self.host)
        self._process = Process(self._cluster.loop, f"{self.host}#{self._lives}")
        for work in (self._follow(), self._take_part()):
            self._process.start(work)

    def lose_power(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._cluster.network.machine_lost(self.host, power=True)

    # --- following the metadata

    async def _follow(self) -> None:
        while True:
            request = fetch_request(
                own_id=self.id,
                own_directory_id=self._directory,
                cluster_id=self._cluster.cluster_id,
                epoch=self._quorum_epoch,
                end=self.end,
                high_watermark=self.high_watermark,
                bytes_max=FETCH_BYTES_MAX,
                wait_ms=FETCH_WAIT_MS,
            )
            try:
                seen, answer = seen_in_fetch(await self._ask(request, "fetch"))
            except PeerUnreachable:
                await self._try_the_next()
                continue
            if seen.leader_epoch >= self._quorum_epoch and seen.leader_id > 0:
                self._quorum_epoch, self._controller = seen.leader_epoch, seen.leader_id
            if seen.error_code or answer is None:
                await asyncio.sleep(0.1 * (1 + self._random.random()))
                continue
            if answer.diverging_epoch.end_offset >= 0:
                self.end = LogPosition(answer.diverging_epoch.end_offset, answer.diverging_epoch.epoch)
                continue
            assert answer.snapshot_id.end_offset < 0, "a light broker does not read snapshots"
            self._pass_over(bytes(answer.records or b""))
            self.high_watermark = max(self.high_watermark, min(answer.high_watermark, self.end.offset))

    def _pass_over(self, records: bytes) -> None:
        position = 0
        while position + HEADER.size <= len(records):
            header = BatchHeader(*HEADER.unpack_from(records, position))
            position += header.batch_length + LENGTH_END
            if position > len(records):
                break
            self.end = LogPosition(header.next_offset, header.leader_epoch)

    # --- taking part

    async def _take_part(self) -> None:
        # Nobody is served here, but a controller in doubt dials: a machine that refuses has no broker any more.
        await self._cluster.network.at(self.host).listen(asyncio.Protocol, self.host, CLIENT_PORT)
        await self._register()
        while True:
            request = BrokerHeartbeatRequest(
                broker_id=self.id,
                broker_epoch=self.epoch,
                current_metadata_offset=self.high_watermark - 1,
                want_fence=False,
                want_shut_down=False,
            )
            try:
                answer = await self._ask(request)
            except PeerUnreachable:
                await asyncio.sleep(IMPATIENT_S)
                continue
            if answer.error_code == ErrorCode.NONE:
                self.fencings += not self.is_fenced and answer.is_fenced
                self.is_fenced = answer.is_fenced
                if not self.is_fenced:
                    await self._take_followers_back()
            await asyncio.sleep(IMPATIENT_S if self.is_fenced or answer.error_code else HEARTBEAT_S)

    async def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=self._cluster.cluster_id,
            incarnation_id=Uuid(b"\x40" + self._random.randbytes(15)),
            listeners=[
                broker_registration.Listener(name="PLAINTEXT", host=self.host, port=CLIENT_PORT, security_protocol=0)
            ],
            features=[
                broker_registration.Feature(
                    name=name, min_supported_version=known.min_level, max_supported_version=known.max_level
                )
                for name, known in sorted(registered_features({}).items())
            ],
            rack=self.rack,
            log_dirs=[self._directory],
        )
        while self.epoch < 0:
            with suppress(PeerUnreachable):
                answer = await self._ask(request)
                if answer.error_code == ErrorCode.NONE:
                    self.epoch = answer.broker_epoch
                    return
            await asyncio.sleep(IMPATIENT_S)

    async def _take_followers_back(self) -> None:
        """What a leader does when its followers have caught up; without logs they always have."""
        image = self._newest_image()
        if image is None or image.offset > self.high_watermark or image.offset == self._looked_at:
            return
        self._looked_at = image.offset
        topics: list[TopicData] = []
        for topic in image.topics.by_name.values():
            parts = [
                PartitionData(
                    partition_index=index,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=each, broker_epoch=image.brokers[each].epoch) for each in live
                    ],
                )
                for index, partition in topic.partitions.items()
                if partition.leader == self.id
                and len(partition.isr) < len(partition.replicas)
                and len(live := [each for each in partition.replicas if image.brokers[each].active])
                > len(partition.isr)
            ]
            if parts:
                topics.append(TopicData(topic_id=topic.id, partitions=parts))
        if topics:
            # Whatever becomes of it, it is looked at again: the answer may be lost, or be a refusal.
            self._looked_at = -1
            with suppress(PeerUnreachable):
                await self._ask(AlterPartitionRequest(broker_id=self.id, broker_epoch=self.epoch, topics=topics))

    # --- asking

    async def _ask(self, request: Any, purpose: str = "") -> Any:
        asked = self._controller
        peer = self._peers.at(f"node-{asked}", CONTROLLER_PORT, purpose)
        task = asyncio.ensure_future(peer.ask(request, timeout_ms=ANSWER_MS))
        try:
            # Who was asked may never answer; a fetch finds out first who else is active by now.
            while not (await asyncio.wait((task,), timeout=LOOK_S))[0]:
                if self._controller != asked:
                    raise PeerUnreachable("another controller took over")
            return task.result()
        finally:
            task.cancel()

    async def _try_the_next(self) -> None:
        self._controller = self._controller % len(self._cluster.nodes) + 1
        await asyncio.sleep(IMPATIENT_S * (1 + self._random.random()))
