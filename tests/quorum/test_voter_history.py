"""Who voted from which offset on: the newest record counts, until it is cut off."""

from __future__ import annotations

from millstream.quorum.voter_history import VoterHistory
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet

ONE, TWO, THREE = (VoterSet(tuple(Voter(number) for number in range(1, count + 1))) for count in (1, 2, 3))


def grown() -> VoterHistory:
    history = VoterHistory(ONE)
    history.add_version(10, DYNAMIC)
    history.add_voters(11, TWO)
    history.add_voters(20, THREE)
    return history


def test_the_configuration_counts_until_a_record_says_otherwise() -> None:
    assert VoterHistory(ONE).latest.voters is ONE
    assert grown().latest.voters is THREE
    assert grown().latest.kraft_version == DYNAMIC


def test_a_snapshot_names_the_voters_of_its_own_offset() -> None:
    assert [grown().at(offset).voters for offset in (9, 10, 11, 19, 20, 99)] == [ONE, ONE, TWO, TWO, THREE, THREE]
    assert [grown().at(offset).kraft_version for offset in (9, 10)] == [STATIC, DYNAMIC]


def test_a_record_that_is_cut_off_gives_the_voters_before_it_back() -> None:
    history = grown()
    history.truncate(20)
    assert history.latest.voters is TWO
    history.truncate(11)
    assert (history.latest.voters, history.latest.kraft_version) == (ONE, DYNAMIC)
    history.truncate(0)
    assert (history.latest.voters, history.latest.kraft_version) == (ONE, STATIC)


def test_what_a_snapshot_covers_is_forgotten() -> None:
    history = grown()
    history.forget_before(15)
    assert history.at(15).voters is TWO
    assert history.at(3).voters is TWO
    history.truncate(0)
    assert history.latest.voters is TWO
