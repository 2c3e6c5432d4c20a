"""The metadata log: what is answered is committed, what is committed is there after a restart."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest
from tests.support.metadata_node import NodePorts, allocated, joined, left, run, running_node

from millstream.broker.metadata_log import QUORUM_STATE
from millstream.broker.metadata_replay import METADATA_DIRECTORY, read_metadata
from millstream.metadata.broker_lifecycle import PRODUCER_IDS_PER_BLOCK
from millstream.metadata.decision import Decision
from millstream.metadata.delta import BrokenMetadata, Changes
from millstream.metadata.image import Endpoint, MetadataImage
from millstream.metadata.record_types import (
    BeginTransactionRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from millstream.protocol.errors import InvalidTopic, StorageError
from millstream.protocol.uuid import Uuid
from millstream.quorum.election_state import decode_election_state
from millstream.runtime.real import RealFile

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.broker.controller_node import ControllerNode
    from millstream.runtime.ports import Buffer


def topic_records(number: int) -> tuple[MetadataRecord, ...]:
    topic_id = Uuid((1000 + number).to_bytes(16, "big"))
    return (
        TopicRecord(name=f"t{number}", topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            removing_replicas=[],
            adding_replicas=[],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[Uuid(b"d" * 16)],
        ),
    )


async def create(node: ControllerNode, number: int) -> str:
    return await node.submit(lambda image, now_ms: Decision(topic_records(number), f"t{number}"))


def log_directory(directory: Path) -> str:
    return str(directory / METADATA_DIRECTORY)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_restart_finds_the_image_that_was_committed(tmp_path: Path, static: bool) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, static=static) as node:
            await joined(node)
            for number in range(5):
                assert await create(node, number) == f"t{number}"
            before = node.image
        async with running_node(tmp_path, static=static) as node:
            assert node.image.topics == before.topics
            assert node.image.features == before.features
            assert node.image.brokers == before.brokers
            assert node.log.epoch == 2

    run(scenario())


def test_an_answer_comes_when_its_records_are_committed_and_listeners_know(tmp_path: Path) -> None:
    heard: list[str] = []

    async def scenario() -> None:
        async with running_node(tmp_path) as node:

            def listener(image: MetadataImage, changes: Changes) -> None:
                assert node.image is image
                heard.extend(topic.name for topic in changes.topics_created)

            node.subscribe(listener)
            await create(node, 1)
            assert heard == ["t1"]
            assert node.log.high_watermark == node.log.end_offset == node.image.offset + 1

    run(scenario())


def test_decisions_see_what_was_appended_before_them_though_it_is_not_committed_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            seen: list[int] = []

            def decide(number: int, image: MetadataImage) -> Decision[None]:
                seen.append(len(image.topics.by_name))
                return Decision(topic_records(number), None)

            await asyncio.gather(
                *(node.submit(lambda image, _, number=number: decide(number, image)) for number in range(20))
            )
            assert seen == list(range(20))
            assert len(node.image.topics.by_name) == 20

    run(scenario())


def test_a_burst_of_decisions_shares_its_syncs(tmp_path: Path) -> None:
    ports = NodePorts()
    syncs = 0
    in_thread = ports.workers.in_thread

    def counted(call, *arguments):  # type: ignore[no-untyped-def]
        nonlocal syncs
        syncs += 1
        return in_thread(call, *arguments)

    async def scenario() -> None:
        async with running_node(tmp_path, ports=ports) as node:
            ports.workers.in_thread = counted  # type: ignore[method-assign]
            await asyncio.gather(*(create(node, number) for number in range(100)))

    run(scenario())
    assert 1 <= syncs <= 5


def test_a_refusal_changes_nothing_and_waits_for_what_it_may_have_read(tmp_path: Path) -> None:
    def refuse(image: MetadataImage, _: int) -> Decision[None]:
        assert "t1" in image.topics.by_name
        raise InvalidTopic("t1 exists")

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            creating = asyncio.ensure_future(create(node, 1))
            await asyncio.sleep(0)
            with pytest.raises(InvalidTopic):
                await node.submit(refuse)
            assert creating.done()
            assert "t1" in node.image.topics.by_name

    run(scenario())


def test_records_that_do_not_fit_the_state_never_reach_the_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            end = node.log.end_offset
            with pytest.raises(BrokenMetadata):
                await node.submit(lambda image, _: Decision(topic_records(1)[1:], None))
            assert node.log.end_offset == end
            assert await create(node, 2) == "t2"

    run(scenario())


def test_a_decision_of_more_records_than_a_batch_holds_is_a_metadata_transaction(tmp_path: Path) -> None:
    many = tuple(
        ConfigRecord(resource_type=4, resource_name=str(number % 7), name=f"n{number}", value="v")
        for number in range(25_000)
    )

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            start, set_before = node.log.end_offset, len(node.image.config(4, ""))
            await node.submit(lambda image, _: Decision(many, None))
            assert sum(len(values) for values in node.image.configs.values()) == 25_000 + set_before
            assert node.log.end_offset == start + 25_002
            before = node.image.configs
        assert read_metadata(NodePorts().disk, log_directory(tmp_path)).image.configs == before

    run(scenario())


def test_a_transaction_that_a_dead_controller_left_open_is_aborted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.submit(lambda image, _: Decision((BeginTransactionRecord(), *topic_records(1)), None))
            assert node.image.pending is not None
        async with running_node(tmp_path) as node:
            assert node.image.pending is None
            assert not node.image.topics.by_name

    run(scenario())


def test_every_start_leads_a_new_epoch_and_remembers_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        for epoch in (1, 2, 3):
            async with running_node(tmp_path) as node:
                assert node.log.epoch == epoch
            state = decode_election_state((tmp_path / METADATA_DIRECTORY / QUORUM_STATE).read_bytes())
            assert (state.epoch, state.leader_id, state.voted_id) == (epoch, 1, -1)

    run(scenario())


def test_a_lost_quorum_state_does_not_bring_an_old_epoch_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        for _ in range(2):
            async with running_node(tmp_path):
                pass
        (tmp_path / METADATA_DIRECTORY / QUORUM_STATE).unlink()
        async with running_node(tmp_path) as node:
            assert node.log.epoch == 3

    run(scenario())


def test_voters_are_logged_once_and_again_when_the_controller_moved(tmp_path: Path) -> None:
    def voters() -> list[int]:
        found = read_metadata(NodePorts().disk, log_directory(tmp_path))
        assert found.kraft_version == 1
        assert found.voters is not None
        assert found.voters_logged
        return [endpoint.port for voter in found.voters for endpoint in voter.endpoints]

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            first = node.log.end_offset
        assert voters() == [9093]
        moved = Endpoint(name="CONTROLLER", host="127.0.0.1", port=9999)
        async with running_node(tmp_path, controller=moved) as node:
            # Leader change, version and voters; then the registration.
            assert node.log.end_offset == first + 4
        assert voters() == [9999]
        async with running_node(tmp_path, controller=moved) as node:
            assert node.log.end_offset == first + 6

    run(scenario())


@pytest.mark.parametrize("lost", range(1, 200, 13))
def test_a_torn_tail_costs_what_was_not_committed_and_nothing_else(tmp_path: Path, lost: int) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            for number in range(3):
                await create(node, number)
            before = node.image
            size = node.log.log.size_bytes
            await create(node, 3)
            last = node.log.log.size_bytes - size
        segment = tmp_path / METADATA_DIRECTORY / "00000000000000000000.log"
        with segment.open("r+b") as file:
            file.truncate(size + last - min(lost, last))
        async with running_node(tmp_path) as node:
            assert node.image.topics == before.topics

    run(scenario())


def test_a_failing_disk_fails_everybody_who_waits_and_everybody_after(tmp_path: Path) -> None:
    ports = NodePorts()

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    async def scenario() -> None:
        async with running_node(tmp_path, ports=ports) as node:
            in_thread = ports.workers.in_thread
            ports.workers.in_thread = lambda call, *_: in_thread(broken)  # type: ignore[method-assign]
            answers = await asyncio.gather(*(create(node, number) for number in range(3)), return_exceptions=True)
            assert [type(answer) for answer in answers] == [StorageError] * 3
            with pytest.raises(StorageError):
                await create(node, 4)
            assert not node.image.topics.by_name

    run(scenario())


def test_a_full_disk_refuses_one_change_and_the_node_goes_on(tmp_path: Path) -> None:
    ports = NodePorts()
    real_append = RealFile.append

    def torn(file: RealFile, *buffers: Buffer) -> None:
        real_append(file, b"".join(buffers)[:70])
        raise OSError(errno.ENOSPC, "No space left on device")

    async def scenario() -> None:
        async with running_node(tmp_path, ports=ports) as node:
            await create(node, 1)
            end_offset = node.log.end_offset
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RealFile, "append", torn)
                with pytest.raises(StorageError):
                    await create(node, 2)
            assert node.log.end_offset == end_offset
            assert await create(node, 3) == "t3"
        async with running_node(tmp_path, ports=NodePorts()) as node:
            assert list(node.image.topics.by_name) == ["t1", "t3"]

    run(scenario())


def test_producer_ids_of_two_runs_never_overlap(tmp_path: Path) -> None:
    blocks: list[range] = []

    async def scenario() -> None:
        for _ in range(2):
            async with running_node(tmp_path) as node:
                await joined(node)
                blocks.extend([await allocated(node), await allocated(node)])

    run(scenario())
    assert [block.start for block in blocks] == [number * PRODUCER_IDS_PER_BLOCK for number in range(4)]


def test_leadership_moves_to_a_new_epoch_with_every_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        epochs = []
        for run_number in range(3):
            async with running_node(tmp_path) as node:
                await joined(node, clean_shutdown_epoch=node.image.brokers[1].epoch if run_number else -1)
                if run_number == 0:
                    topic_id = Uuid(b"t" * 16)
                    topic, partition = topic_records(1)
                    topic.topic_id = partition.topic_id = topic_id  # type: ignore[union-attr]
                    partition.directories = [node.config.directory_id]  # type: ignore[union-attr]
                    await node.submit(lambda image, _: Decision((topic, partition), None))  # noqa: B023
                led = node.image.topics.by_name["t1"].partitions[0]
                assert led.leader == 1
                epochs.append(led.leader_epoch)
                await left(node)
                assert node.image.topics.by_name["t1"].partitions[0].leader == -1
                assert node.image.brokers[1].fenced
        assert epochs == [0, 2, 4]

    run(scenario())
