"""Whatever members, time and crashes do to a classic group, in any order:

- a partition has one owner in a generation, also for those who come late or come back;
- every request is answered once, none is forgotten;
- a coordinator made from the log knows what the one before it knew;
- once everybody has gone, the group is empty.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import GROUP, SESSION_MS, Pending, Scene

PARTITIONS = range(3)
PROTOCOLS = [{"range": b"a"}, {"range": b"b"}, {"range": b"a", "sticky": b"a"}, {"sticky": b"a", "range": b"a"}]
LONG_MS = 30 * 60 * 1000

which = st.integers(0, 30)


class Members(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(group_max_size=4, group_initial_rebalance_delay_ms=1_000)
        # Every (member id, instance id, generation) that somebody was ever told: zombies are among them.
        self.told: list[tuple[str, str | None, int]] = []
        self.asked: list[tuple[Pending, str | None]] = []
        self.owners: dict[tuple[int, int], str] = {}

    def ask(self, pending: Pending, instance_id: str | None) -> None:
        self.asked.append((pending, instance_id))
        self.listen()

    def listen(self) -> None:
        """Look at all answers that came meanwhile."""
        waiting = []
        for pending, instance_id in self.asked:
            if pending.answer is None:
                waiting.append((pending, instance_id))
            elif pending.kind == "join":
                self.joined(pending.answer, instance_id)
            else:
                self.synced(pending, instance_id)
        self.asked = waiting
        if GROUP not in self.scene.machine.groups:
            # It was empty for so long that it was removed; the next one of its name counts from the start.
            self.owners.clear()

    def joined(self, answer: Any, instance_id: str | None) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.told.append((answer.member_id, instance_id, answer.generation_id))

    def synced(self, pending: Pending, instance_id: str | None) -> None:
        if pending.error is not ErrorCode.NONE:
            return
        generation = pending.generation  # type: ignore[attr-defined]
        for partition in pending.answer.assignment:
            owner = instance_id or pending.member_id
            assert self.owners.setdefault((generation, partition), owner) == owner, "two owners"

    def pick(self, number: int) -> tuple[str, str | None, int] | None:
        # The newest first: small numbers are the interesting ones.
        return self.told[-1 - number % len(self.told)] if self.told else None

    # --- what happens

    @rule(protocols=st.sampled_from(PROTOCOLS), version=st.sampled_from([0, 3, 5, 9]))
    def somebody_comes(self, protocols: dict[str, bytes], version: int) -> None:
        self.ask(self.scene.join(protocols=protocols, version=version), None)

    @rule(protocols=st.sampled_from(PROTOCOLS), name=st.sampled_from("ab"), version=st.sampled_from([5, 9]))
    def a_static_member_comes(self, protocols: dict[str, bytes], name: str, version: int) -> None:
        self.ask(self.scene.join(protocols=protocols, version=version, instance_id=name), name)

    @rule(number=which, protocols=st.sampled_from(PROTOCOLS))
    def a_member_joins(self, number: int, protocols: dict[str, bytes]) -> None:
        if picked := self.pick(number):
            self.ask(self.scene.join(picked[0], instance_id=picked[1], protocols=protocols), picked[1])

    @rule()
    def all_members_join(self) -> None:
        group = self.scene.machine.groups.get(GROUP)
        for member in list(group.members.values()) if group else []:  # type: ignore[attr-defined]
            if member.id in group.members:  # type: ignore[union-attr]
                join = self.scene.join(member.id, instance_id=member.instance_id, protocols=member.protocols)
                self.ask(join, member.instance_id)

    @rule(number=which)
    def a_member_syncs(self, number: int) -> None:
        if picked := self.pick(number):
            self.sync(*picked)

    @rule()
    def all_members_sync(self) -> None:
        group = self.scene.machine.groups.get(GROUP)
        for member in list(group.members.values()) if group else []:  # type: ignore[attr-defined]
            self.sync(member.id, member.instance_id, group.generation)  # type: ignore[union-attr]

    def sync(self, member_id: str, instance_id: str | None, generation: int) -> None:
        group = self.scene.machine.groups.get(GROUP)
        members: list[str] = list(group.members) if group else []  # type: ignore[attr-defined]
        shares = {each: bytes(PARTITIONS[at :: len(members)]) for at, each in enumerate(members)}
        pending = self.scene.sync(
            member_id, generation, shares, instance_id=instance_id, protocol_type=None, protocol=None
        )
        pending.generation = generation  # type: ignore[attr-defined]
        self.ask(pending, instance_id)

    @rule(number=which)
    def a_heartbeat(self, number: int) -> None:
        if picked := self.pick(number):
            self.scene.heartbeat(picked[0], picked[2], picked[1])

    @rule(number=which, by_admin=st.booleans())
    def a_member_leaves(self, number: int, by_admin: bool) -> None:
        if picked := self.pick(number):
            self.scene.leave(("" if by_admin else picked[0], picked[1]))
            self.listen()

    @rule(duration_ms=st.sampled_from([0, 500, 1_000, SESSION_MS // 2, SESSION_MS, 60_000, 300_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.scene.pass_ms(duration_ms)
        self.listen()

    @rule(fails=st.booleans())
    def the_disk(self, fails: bool) -> None:
        self.scene.fail_writes = NotEnoughReplicas if fails else None

    @rule()
    def the_broker_crashes(self) -> None:
        self.scene.crash()
        self.asked.clear()

    # --- whole scenes, which single steps seldom come to

    @rule(newcomers=st.integers(0, 3), synced=st.integers(0, 4))
    def a_generation(self, newcomers: int, synced: int) -> None:
        """Newcomers arrive, everybody joins, some sync: the leader last, if it comes to that."""
        for _ in range(newcomers):
            self.somebody_comes(PROTOCOLS[0], 3)
        self.all_members_join()
        self.time_passes(1_000)
        group: Any = self.scene.machine.groups.get(GROUP)
        if group is not None and group.state.value == "CompletingRebalance":
            for member_id in sorted(group.members, key=lambda each: each == group.leader)[:synced]:
                member = group.members[member_id]
                self.sync(member_id, member.instance_id, group.generation)

    @rule(back=st.integers(1, 3))
    def members_sync_with_an_older_generation(self, back: int) -> None:
        group: Any = self.scene.machine.groups.get(GROUP)
        for member in list(group.members.values()) if group else []:
            self.sync(member.id, member.instance_id, group.generation - back)

    @rule(number=which)
    def a_current_member_leaves(self, number: int) -> None:
        group: Any = self.scene.machine.groups.get(GROUP)
        if group is not None and group.members:
            self.scene.leave((list(group.members)[number % len(group.members)], None))
            self.listen()

    # --- what always holds

    @invariant()
    def nobody_is_forgotten(self) -> None:
        group = self.scene.machine.groups.get(GROUP)
        held = set()
        for member in group.members.values() if group else ():  # type: ignore[attr-defined]
            held |= {waiting.token for waiting in (member.join, member.sync) if waiting is not None}
        waiting = {token for token, pending in self.scene.requests.items() if pending.answer is None}
        assert held == waiting

    @invariant()
    def the_log_knows_a_stable_group(self) -> None:
        group: Any = self.scene.machine.groups.get(GROUP)
        if group is None or group.state.value != "Stable":
            return
        again: Any = self.scene.replayed().groups[GROUP]
        for now in (group, again):
            now.known = (
                now.state,
                now.generation,
                now.protocol,
                now.protocol_type,
                now.static_members,
                {
                    member.id: (
                        member.assignment,
                        member.instance_id,
                        member.session_timeout_ms,
                        member.protocols[now.protocol],
                    )
                    for member in now.members.values()
                },
            )
        assert group.known == again.known

    @invariant()
    def the_books_agree(self) -> None:
        group: Any = self.scene.machine.groups.get(GROUP)
        if group is None:
            return
        assert (group.leader in group.members) if group.members else True
        assert set(group.static_members.items()) == {
            (member.instance_id, member.id) for member in group.members.values() if member.instance_id
        }
        assert set(group.pending_sync) <= set(group.members)
        assert not set(group.pending_ids) & set(group.members)
        if group.state.value == "Empty":
            assert not group.members
        if group.members:
            assert group.select_protocol(), "there is always something to agree on"

    def teardown(self) -> None:
        self.scene.pass_ms(LONG_MS)
        assert all(pending.answer is not None for pending in self.scene.requests.values())
        group: Any = self.scene.machine.groups.get(GROUP)
        assert group is None or group.state.value == "Empty"


Members.TestCase.settings = settings(stateful_step_count=60)
TestAnyInterleaving = Members.TestCase
