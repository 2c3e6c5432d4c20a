"""Voters are known by node id in a static quorum, by node id and directory id in a dynamic one."""

from __future__ import annotations

from millstream.protocol import codec
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.protocol.uuid import Uuid
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet

HERE, ELSEWHERE = Uuid(b"h" * 16), Uuid(b"e" * 16)


def test_a_voter_with_an_empty_disk_is_another_voter() -> None:
    voters = VoterSet((Voter(1, HERE),))
    assert voters.includes(1, HERE)
    assert not voters.includes(1, ELSEWHERE)
    assert not voters.includes(2, HERE)


def test_a_static_quorum_does_not_look_at_directories() -> None:
    assert VoterSet((Voter(1),)).includes(1, ELSEWHERE)


def test_voters_survive_their_record() -> None:
    voters = VoterSet((Voter(1, HERE, (VoterEndpoint("CONTROLLER", "localhost", 9093),)), Voter(2, ELSEWHERE)))
    assert VoterSet.from_record(codec.decode(VotersRecord, 0, codec.encode(voters.to_record(), 0))) == voters


def test_a_majority_is_more_than_half() -> None:
    assert [VoterSet(tuple(Voter(i) for i in range(n))).majority for n in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
