"""Partitions on three nodes: followers hold the leader's bytes, take over from it, and find back to it."""

from __future__ import annotations

import asyncio

from tests.broker.replica_scene import TOPIC, Scene, play

from millstream.protocol.errors import ErrorCode


def test_followers_hold_the_leaders_bytes() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        for number in range(20):
            await scene.wrote(1, *(f"{number}-{each}" for each in range(number + 1)))
        await scene.same_everywhere(1, 2, 3)
        assert scene.partition(2).log.end_offset == 210

    play(scenario)


def test_an_append_with_acks_all_is_on_every_replica_in_sync_when_it_is_answered() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b")
        assert [scene.partition(member).log.end_offset for member in (1, 2, 3)] == [2, 2, 2]

    play(scenario)


def test_followers_refuse_writes_and_an_unknown_replica_is_not_counted() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2])
        assert (await scene.produce(2, "a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not scene.hosts(3)

    play(scenario)


def test_the_textbook_case_on_real_nodes() -> None:
    """The leader of epoch 1 dies with events that its followers lack, an in-sync follower leads epoch 2, the old leader
    returns, is told the diverging epoch, truncates from that offset and catches up."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b", "c")
        await scene.same_everywhere(1, 2, 3)
        epoch = scene.state(1).leader_epoch

        # Cut off from the others, but not from its client, it takes three more that nobody else gets.
        scene.cluster.network.block(["node-1"], ["node-2", "node-3"])
        await scene.wrote(1, "x", "y", "z", acks=1)
        assert scene.partition(1).log.end_offset == 6
        assert scene.partition(1).log.high_watermark == 3
        scene.cluster.nodes[1].kill()

        await scene.until(lambda: scene.state(2).leader in (2, 3), "another one leads")
        assert scene.state(2).leader_epoch > epoch
        leader = scene.state(2).leader
        await scene.until(lambda: scene.partition(leader).leader is not None, "it knows that it leads")
        await scene.wrote(leader, "d", "e")
        assert scene.partition(leader).log.end_offset == 5

        scene.cluster.network.heal()
        await scene.cluster.nodes[1].restart()
        assert scene.partition(1).log.end_offset in (5, 6)
        await scene.same_everywhere(1, 2, 3)
        assert scene.partition(1).log.end_offset == 5
        assert b"x" not in scene.contents(1)
        await scene.in_sync(1, 2, 3)

    play(scenario)


def test_epochs_without_writes_leave_nobody_behind() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        for _ in range(2):
            for node_id in (1, 2, 3):
                scene.cluster.nodes[node_id].kill()
                await scene.cluster.nodes[node_id].restart()
                await scene.in_sync(1, 2, 3)
        leader = scene.state(1).leader
        await scene.wrote(leader, "b")
        await scene.same_everywhere(1, 2, 3)

    play(scenario)


def test_a_follower_that_lost_its_disk_copies_everything_again() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, *(str(number) for number in range(50)))
        follower = next(member for member in (2, 3) if scene.node(member).controller.is_active is False)
        scene.cluster.nodes[follower].kill(power=True)
        await scene.in_sync(1, *({2, 3} - {follower}))
        await scene.wrote(1, "more")
        await scene.cluster.nodes[follower].restart()
        await scene.in_sync(1, 2, 3)
        await scene.same_everywhere(1, 2, 3)

    play(scenario)


def test_a_follower_behind_the_start_of_the_leaders_log_begins_anew() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b")
        await scene.same_everywhere(1, 2, 3)
        scene.cluster.nodes[3].kill()
        await scene.in_sync(1, 2)
        await scene.wrote(1, "c", "d")
        await scene.until(lambda: scene.partition(1).log.high_watermark == 4, "it is committed")
        scene.partition(1).log.advance_start_offset(4)
        await scene.wrote(1, "e")
        await scene.cluster.nodes[3].restart()
        await scene.in_sync(1, 2, 3)
        log = scene.partition(3).log
        assert (log.start_offset, log.end_offset) == (4, 5)

    play(scenario)


def test_a_new_leader_hears_of_its_followers_at_once() -> None:
    """They don't end their long polls first: an append after a controlled move is answered within a moment."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3], [2, 3, 1])
        await scene.wrote(1, "a")
        await scene.wrote(2, "a", index=1)
        await asyncio.sleep(2)
        stopping = asyncio.ensure_future(scene.cluster.nodes[1].shut_down())
        await scene.until(lambda: scene.partition(2).leader is not None, "node 2 leads")
        began = scene.cluster.loop.time()
        await scene.wrote(2, "b")
        assert scene.cluster.loop.time() - began < 0.3
        await stopping

    play(scenario)


def test_a_deleted_topic_leaves_no_replica_and_a_moved_one_leaves_its_old_place() -> None:
    async def scenario(scene: Scene) -> None:
        from millstream.client.admin.partitions import alter_reassignments
        from millstream.client.admin.topics import delete_topics

        await scene.create([1, 2])
        await scene.wrote(1, "a", "b")
        client = scene.cluster.client()
        await alter_reassignments(client, {(TOPIC, 0): [3, 2]})
        await scene.until(lambda: scene.state(1).replicas == (3, 2), "the move is complete")
        await scene.until(lambda: not scene.hosts(1), "the old replica is gone")
        await scene.until(lambda: scene.state(3).leader in (2, 3), "it is led")
        assert not [name for name in scene.cluster.nodes[1].disk.list_directory("/data") if name == f"{TOPIC}-0"]
        await scene.same_everywhere(2, 3)
        assert scene.partition(3).log.end_offset == 2
        await delete_topics(client, [TOPIC])
        await scene.until(lambda: not scene.hosts(2) and not scene.hosts(3), "all replicas are gone")
        await client.close()

    play(scenario)
