"""The transaction coordinator of this broker: a machine for each partition of `__transaction_state` that is led here.

    producer ──InitProducerId, AddPartitionsToTxn, EndTxn──> shard: decide ──records──> __transaction_state
                                                               │ effect: WriteMarkers
                                                               v
                                    transaction_markers ──> the leader of every partition of the transaction
                                                               │ all written
                                                               v
                                                         shard: decide_complete

The answer to EndTxn leaves when the decision is committed; the markers follow, in the same call where their partitions
are led here, so that the producer's next transaction finds this one complete.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.broker.coordinator import Coordinator
from millstream.broker.dispatch import Deferred
from millstream.broker.transaction_markers import MarkerRound
from millstream.metadata.features import TRANSACTION_VERSION
from millstream.metadata.names import TRANSACTIONS_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.settings import REQUEST_TIMEOUT_MS
from millstream.transactions.ending import WriteMarkers
from millstream.transactions.machine import TransactionMachine
from millstream.transactions.participants import decide_add_partitions, decide_verify
from millstream.transactions.transaction import EPOCH_BUMP_SINCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.broker.node import Node
    from millstream.replicated import Decision, Token
    from millstream.runtime.shard import Shard

    Place = tuple[str, int]


class TransactionCoordinator(Coordinator[TransactionMachine]):
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        super().__init__(
            node,
            TRANSACTIONS_TOPIC,
            "transactions",
            lambda index: TransactionMachine(
                index,
                lambda: node.settings,
                lambda: node.image.features.get(TRANSACTION_VERSION, 0),
                node.producer_ids.take,
            ),
            self._carry_out,
            REQUEST_TIMEOUT_MS,
        )

    def submit(
        self,
        name: str,
        decide: Callable[[TransactionMachine, Token, int], Decision[Any]],
        *,
        refuse: Callable[[ErrorCode], Any],
        must_be_certain: bool = True,
        doubt_s: float = 0.0,
    ) -> Deferred:
        """As for every coordinator. That an id is not empty is known without asking which shard it belongs to."""
        if name:
            return super().submit(name, decide, refuse=refuse, must_be_certain=must_be_certain, doubt_s=doubt_s)
        refused = Deferred()
        refused.finish(refuse(ErrorCode.INVALID_REQUEST))
        return refused

    def take_part(
        self, transactional_id: str, producer_id: int, epoch: int, places: Sequence[Place], *, add: bool
    ) -> Deferred:
        """Whether partitions are part of a producer's transaction, or (`add`) make them so: an ErrorCode for each.

        For those who are about to write for the producer: the leaders of the partitions (KIP-890).
        """
        return self.submit(
            transactional_id,
            partial(_take_part, transactional_id, producer_id, epoch, places, add),
            refuse=lambda code: dict.fromkeys(places, code),
        )

    def _carry_out(self, shard: Shard[TransactionMachine], effect: Any) -> None:
        assert isinstance(effect, WriteMarkers), f"{effect!r} is no effect of a transaction"
        partition = self._node.partitions.get(self.topic, shard.machine.index)
        if partition is not None and partition.leader is not None:
            MarkerRound(self._node, shard, effect, partition.leader.epoch).attempt()


def _take_part(
    transactional_id: str,
    producer_id: int,
    epoch: int,
    places: Sequence[Place],
    add: bool,  # noqa: FBT001  # bound by `partial`
    machine: TransactionMachine,
    _token: Token,
    now_ms: int,
) -> Decision[dict[Place, ErrorCode]]:
    if not add:
        return decide_verify(machine, transactional_id, producer_id, epoch, places)
    return decide_add_partitions(
        machine,
        transactional_id,
        producer_id,
        epoch,
        places,
        client_version=EPOCH_BUMP_SINCE,
        answer=dict.fromkeys(places, ErrorCode.NONE),
        now_ms=now_ms,
    )
