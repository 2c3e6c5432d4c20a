"""Whatever members, topics, time and crashes do to a consumer group, in any order:

- a partition is one member's at a time, and no member reads what the group does not know it may be reading;
- who was thrown out, or comes with an epoch of the past, cannot commit for what is somebody else's;
- a coordinator made from the log knows what the one before it knew;
- once members behave, every partition has an owner, and the group is still.

Members of both protocols take part, so groups are upgraded and downgraded on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millstream.groups.consumer.group import ConsumerGroup
from millstream.protocol.errors import BrokerError, ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import GROUP, Pending
from tests.groups.consumer_scene import (
    SESSION_MS,
    ConsumerScene,
    Owned,
    assigned_in,
    assignment_of,
    pairs,
    stored_state,
    topic_id,
)

NOTHING: Owned = frozenset()
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"subscribed_topic_names": ["t"], "subscribed_topic_regex": ""},
    {"subscribed_topic_names": ["t", "u"], "subscribed_topic_regex": ""},
    {"subscribed_topic_names": [], "subscribed_topic_regex": "[tu]"},
    {"subscribed_topic_names": ["u"], "subscribed_topic_regex": "t"},
]
GONE = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


@dataclass
class Reader:
    """A consumer of the new protocol, as it sees itself."""

    id: str
    instance_id: str | None
    subscription: dict[str, Any]
    epoch: int = 0
    reading: Owned = NOTHING
    told: Owned = NOTHING
    joined: bool = False
    # An answer was lost: the next heartbeat says everything anew.
    unsure: bool = False

    def hear(self, answer: Any) -> None:
        code = ErrorCode(answer.error_code)
        self.unsure = code not in (*GONE, ErrorCode.NONE)
        if code in GONE or code is ErrorCode.GROUP_ID_NOT_FOUND:
            self.epoch, self.reading, self.told, self.joined = 0, NOTHING, NOTHING, False
        elif code is ErrorCode.NONE:
            self.epoch, self.joined = answer.member_epoch, True
            if answer.assignment is not None:
                self.told = pairs({topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions})
                # What is new is read at once; what was taken is let go of later (`let_go`).
                self.reading |= self.told


@dataclass
class OldReader:
    """A classic consumer with the cooperative protocol."""

    number: int
    member_id: str = ""
    generation: int = -1
    reading: Owned = NOTHING
    must_join: bool = True
    waiting: Pending | None = None
    synced: Pending | None = None
    topics: tuple[str, ...] = field(default=("t",))

    def reset(self) -> None:
        self.member_id, self.generation, self.reading = "", -1, NOTHING
        self.must_join, self.waiting, self.synced = True, None, None


class Fleet(RuleBasedStateMachine):
    linger_ms = 0

    def __init__(self) -> None:
        super().__init__()
        self.scene = ConsumerScene(
            {"t": 3}, group_consumer_max_size=6, group_coordinator_append_linger_ms=self.linger_ms
        )
        self.readers: list[Reader] = []
        self.old_readers: list[OldReader] = []

    # --- the new protocol

    @rule(which=st.integers(0, 3), subscription=st.sampled_from(SUBSCRIPTIONS), static=st.booleans())
    def come(self, which: int, subscription: dict[str, Any], static: bool) -> None:
        if len(self.readers) < 4:
            number = len(self.readers)
            instance_id = f"i{which}" if static else None
            self.readers.append(Reader(f"m{number}", instance_id, subscription))
            self.beat(self.readers[-1], lost=False)

    def beat(self, reader: Reader, *, lost: bool) -> None:
        if not reader.joined:
            answer = self.scene.beat(
                reader.id,
                0,
                owned=(),
                instance_id=reader.instance_id,
                rebalance_timeout_ms=60_000,
                **reader.subscription,
            )
        else:
            everything = {"rebalance_timeout_ms": 60_000, **reader.subscription} if reader.unsure else {}
            answer = self.scene.beat(
                reader.id, reader.epoch, owned=reader.reading, instance_id=reader.instance_id, **everything
            )
        if lost:
            reader.unsure = True
        else:
            reader.hear(answer)

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9), lost=st.booleans())
    def heartbeat(self, which: int, lost: bool) -> None:
        self.beat(self.readers[which % len(self.readers)], lost=lost)

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9))
    def short_heartbeat(self, which: int) -> None:
        """With nothing new to say."""
        reader = self.readers[which % len(self.readers)]
        if reader.joined and not reader.unsure:
            reader.hear(self.scene.beat(reader.id, reader.epoch, instance_id=reader.instance_id))

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9))
    def let_go(self, which: int) -> None:
        reader = self.readers[which % len(self.readers)]
        reader.reading = reader.told

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9), subscription=st.sampled_from(SUBSCRIPTIONS))
    def subscribe(self, which: int, subscription: dict[str, Any]) -> None:
        reader = self.readers[which % len(self.readers)]
        reader.subscription = subscription
        if reader.joined:
            reader.hear(
                self.scene.beat(
                    reader.id, reader.epoch, owned=reader.reading, instance_id=reader.instance_id, **subscription
                )
            )

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9), for_a_while=st.booleans(), heard=st.booleans())
    def leave(self, which: int, for_a_while: bool, heard: bool) -> None:
        reader = self.readers[which % len(self.readers)]
        if heard and reader.joined:
            static = for_a_while and reader.instance_id is not None
            self.scene.beat(reader.id, -2 if static else -1, instance_id=reader.instance_id)
        reader.epoch, reader.reading, reader.told, reader.joined = 0, NOTHING, NOTHING, False

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9))
    def start_anew(self, which: int) -> None:
        """A process that was killed comes back under another member id, its instance id being its own."""
        reader = self.readers[which % len(self.readers)]
        reader.id += "'"
        reader.epoch, reader.reading, reader.told, reader.joined = 0, NOTHING, NOTHING, False

    # --- the classic protocol

    @rule()
    def come_as_classic(self) -> None:
        if len(self.old_readers) < 2:
            self.old_readers.append(OldReader(len(self.old_readers)))

    @initialize(old=st.integers(0, 2), new=st.integers(0, 2))
    def begin(self, old: int, new: int) -> None:
        """Groups that have a past are the interesting ones."""
        for _ in range(old):
            self.come_as_classic()
        for _ in range(4 * old):
            self.everybody_acts()
        for number in range(new):
            self.come(number, SUBSCRIPTIONS[0], static=False)
            self.everybody_acts()

    def everybody_acts(self) -> None:
        self.scene.pass_ms(1)
        for old in self.old_readers:
            self.act(old)
        for reader in self.readers:
            self.beat(reader, lost=False)

    @precondition(lambda self: self.old_readers)
    @rule(which=st.integers(0, 9), times=st.integers(1, 4))
    def act_as_classic(self, which: int, times: int) -> None:
        for _ in range(times):
            self.act(self.old_readers[which % len(self.old_readers)])
            self.scene.pass_ms(1)

    def act(self, reader: OldReader) -> None:
        """What a classic consumer does next."""
        scene = self.scene
        if reader.waiting is not None:
            self.hear_join(reader)
        elif reader.synced is not None:
            self.hear_sync(reader)
        elif reader.must_join:
            told = scene.subscription(*reader.topics, owned=reader.reading)
            reader.waiting = scene.join(reader.member_id, protocols=told, session_ms=SESSION_MS)
            self.hear_join(reader)
        else:
            code = scene.heartbeat(reader.member_id, reader.generation)
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                reader.must_join = True
            elif code is not ErrorCode.NONE:
                reader.reset()

    def hear_join(self, reader: OldReader) -> None:
        pending = reader.waiting
        assert pending is not None
        if pending.answer is None:
            return
        reader.waiting = None
        code, answer = pending.error, pending.answer
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            reader.member_id = answer.member_id
        elif code is ErrorCode.NONE:
            reader.member_id, reader.generation, reader.must_join = answer.member_id, answer.generation_id, False
            # The leader of a classic group gives everything of "t" to everybody in turn.
            names = sorted(member.member_id for member in answer.members)
            shares = {
                name: assignment_of([("t", index) for index in range(3) if index % len(names) == place])
                for place, name in enumerate(names)
            }
            leads = answer.leader == answer.member_id
            reader.synced = self.scene.sync(
                reader.member_id, reader.generation, shares if leads else {}, protocol="cooperative"
            )
            self.hear_sync(reader)
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
            reader.reset()

    def hear_sync(self, reader: OldReader) -> None:
        pending = reader.synced
        assert pending is not None
        if pending.answer is None:
            return
        reader.synced = None
        if pending.error is ErrorCode.NONE:
            told = assigned_in(pending.answer.assignment) if pending.answer.assignment else NOTHING
            let_go = reader.reading - told
            reader.reading = told
            # The cooperative protocol joins again to say that it let go.
            reader.must_join = bool(let_go)
        elif pending.error is ErrorCode.REBALANCE_IN_PROGRESS:
            reader.must_join = True
        else:
            reader.reset()

    @precondition(lambda self: self.old_readers)
    @rule(which=st.integers(0, 9))
    def leave_as_classic(self, which: int) -> None:
        reader = self.old_readers.pop(which % len(self.old_readers))
        if reader.member_id:
            self.scene.leave((reader.member_id, None))

    # --- the world around

    @rule(t=st.integers(3, 5), u=st.integers(0, 2))
    def topics_change(self, t: int, u: int) -> None:
        old = self.scene.topics
        topics = {"t": max(t, old.get("t", 0))}
        if u or "u" in old:
            topics["u"] = max(u, old.get("u", 0))
        if topics != old:
            self.scene.set_topics(**topics)

    @rule(duration_ms=st.sampled_from([1, 1_000, 11_000, SESSION_MS, 61_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.scene.pass_ms(duration_ms)

    @rule()
    def broker_crashes(self) -> None:
        self.scene.crash()
        for reader in self.old_readers:
            reader.waiting = reader.synced = None
            reader.must_join = True

    @rule(which=st.integers(0, 9))
    def a_write_fails(self, which: int) -> None:
        if self.readers:
            self.scene.fail_writes = NotEnoughReplicas
            self.beat(self.readers[which % len(self.readers)], lost=False)
            self.scene.fail_writes = None

    # --- what has to hold

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.scene.machine.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @invariant()
    def a_partition_is_one_members(self) -> None:
        if self.group is None:
            return
        seen: dict[tuple[str, int], str] = {}
        for member in self.group.members.values():
            for pair in pairs(member.assigned) | pairs(member.revoking):
                assert pair not in seen, f"{pair} is {seen[pair]}'s and {member.id}'s"
                seen[pair] = member.id
            assert not pairs(member.assigned) & pairs(member.revoking)

    @invariant()
    def nobody_reads_what_the_group_does_not_know_of(self) -> None:
        for reader in self.readers:
            member = self.group.members.get(reader.id) if self.group else None
            if member is not None and member.epoch >= 0 and reader.joined:
                assert reader.reading <= pairs(member.assigned) | pairs(member.revoking), (reader, member)

    @invariant()
    def the_past_cannot_commit(self) -> None:
        group = self.group
        if group is None:
            return
        owners = {pair: member.id for member in group.members.values() for pair in pairs(member.assigned)}
        for reader in self.readers:
            for pair in reader.reading:
                if reader.joined and owners.get(pair, reader.id) != reader.id:
                    assert not self.may_commit(group, reader, pair), f"{reader} commits for {pair} of {owners[pair]}"

    def may_commit(self, group: ConsumerGroup, reader: Reader, pair: tuple[str, int]) -> bool:
        try:
            check = group.check_commit(reader.id, reader.instance_id, reader.epoch, transactional=False, version=9)
            if check is not None:
                check(pair[0], topic_id(pair[0]), pair[1])
        except BrokerError:
            return False
        return True

    @invariant()
    def a_replay_knows_the_same(self) -> None:
        assert stored_state(self.scene.replayed()) == stored_state(self.scene.machine)

    def teardown(self) -> None:
        """Everybody behaves from now on; who has gone has gone."""
        for _ in range(40):
            self.scene.pass_ms(5_000)
            for reader in self.readers:
                reader.reading = reader.told
                self.beat(reader, lost=False)
            for old in self.old_readers:
                self.act(old)
        group = self.group
        if group is None or not self.readers:
            return
        # Two readers with one instance id fight for it, as they should; one of them is out at any time.
        if len({reader.instance_id for reader in self.readers if reader.instance_id}) < sum(
            reader.instance_id is not None for reader in self.readers
        ):
            return
        assert group.state_name(0) == "Stable", self.scene.describe()
        wanted = {
            (topic, index) for topic in group.subscriptions.topics() for index in range(self.scene.topics.get(topic, 0))
        }
        reading = [pair for reader in self.readers for pair in reader.reading]
        reading += [pair for old in self.old_readers for pair in old.reading]
        assert sorted(reading) == sorted(wanted)


TestFleet = Fleet.TestCase
TestFleet.settings = settings(stateful_step_count=40)
