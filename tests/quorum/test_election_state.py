"""quorum-state is the file that Apache Kafka writes, in both of its versions."""

from __future__ import annotations

import pytest

from millstream.protocol.uuid import Uuid
from millstream.quorum.election_state import (
    BrokenElectionState,
    ElectionState,
    decode_election_state,
    encode_election_state,
)

# As Apache Kafka 4.3.1 left them after a clean stop of a combined node.
STATIC_FILE = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
DYNAMIC_FILE = (
    b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


@pytest.mark.parametrize(
    ("content", "kraft_version", "epoch"), [(STATIC_FILE, 0, 3), (DYNAMIC_FILE, 1, 2)], ids=["static", "dynamic"]
)
def test_apache_kafkas_file_is_read_and_written_byte_for_byte(content: bytes, kraft_version: int, epoch: int) -> None:
    state = decode_election_state(content)
    assert state == ElectionState(epoch=epoch, leader_id=1)
    assert encode_election_state(state, kraft_version=kraft_version, voter_ids=(1,)) == content


def test_a_vote_survives() -> None:
    state = ElectionState(epoch=4, voted_id=2, voted_directory_id=Uuid(b"d" * 16))
    assert decode_election_state(encode_election_state(state, kraft_version=1, voter_ids=(1,))) == state


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"data_version":2}', b'{"data_version":0,"leaderId":1}'])
def test_a_broken_file_is_an_error(content: bytes) -> None:
    with pytest.raises(BrokenElectionState):
        decode_election_state(content)
