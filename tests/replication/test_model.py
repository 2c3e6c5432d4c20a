"""Whatever happens in whatever order, nothing committed is lost and nobody shows what was not committed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replication.model import LAG_MAX_MS, Cluster

BROKERS = (1, 2, 3)

steps = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(BROKERS)),
    st.tuples(st.just("fetch"), st.sampled_from(BROKERS)),
    st.tuples(st.just("fetch"), st.sampled_from(BROKERS)),
    st.tuples(st.just("fetch undecided"), st.sampled_from(BROKERS)),
    st.tuples(st.just("alter"), st.sampled_from(BROKERS)),
    st.tuples(st.just("elect"), st.sampled_from(BROKERS)),
    st.tuples(st.just("hear"), st.sampled_from(BROKERS)),
    st.tuples(st.just("shrink"), st.sampled_from(BROKERS)),
    st.tuples(st.just("reboot"), st.sampled_from(BROKERS)),
)


def play(cluster: Cluster, step: str, broker_id: int, value: str) -> None:
    replica = cluster[broker_id]
    match step:
        case "append" if replica.leader is not None:
            cluster.append(value, at=broker_id)
        case "fetch":
            cluster.fetch(broker_id)
        case "fetch undecided":
            cluster.fetch(broker_id, decide=False)
        case "alter" if replica.leader is not None and replica.leader.proposal is not None:
            cluster.alter(broker_id)
        case "elect" if broker_id in cluster.metadata.isr:
            cluster.elect(broker_id, heard_by=[broker_id])
        case "hear":
            cluster.hear(broker_id)
        case "shrink":
            cluster.now_ms += LAG_MAX_MS
            cluster.shrink(broker_id, decide=False)
        case "reboot" if cluster.metadata.leader != broker_id and len(cluster.metadata.isr) > 1:
            # What was not synced is gone, and with it everything, in the worst case.
            cluster.reboot(broker_id, keep=0)


@settings(max_examples=400, deadline=None)
@given(st.lists(steps, max_size=60))
def test_committed_records_survive_and_are_the_same_everywhere(plan: list[tuple[str, int]]) -> None:
    cluster = Cluster(replicas=len(BROKERS))
    for number, (step, broker_id) in enumerate(plan):
        play(cluster, step, broker_id, chr(ord("a") + number % 26))
        cluster.check()
    cluster.settle()
    cluster.check()
    leader = cluster[cluster.metadata.leader].log
    for replica in cluster.replicas.values():
        assert replica.log.records == leader.records
    assert cluster.metadata.isr != ()
