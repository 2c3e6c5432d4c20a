"""A small world around a coordinator: producers that come and go, messages that are late or come twice, partitions with
the log's own rules for producers, markers that are written one by one, crashes.

At the end everything heals, and what readers of committed records see is compared with what producers were told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.log.producers import NO_OFFSET, ProducerStates
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.records.batch import MAGIC, TRANSACTIONAL_BIT, BatchHeader
from tests.transactions.scene import TIMEOUT_MS, Scene

if TYPE_CHECKING:
    from millstream.transactions.ending import WriteMarkers

PARTITIONS = 2
Producer = tuple[int, int]


class Write(NamedTuple):
    """A batch of one record on its way."""

    client: Client
    producer: Producer
    transaction: str
    partition: int
    sequence: int
    value: str


class End(NamedTuple):
    """An EndTxn on its way."""

    client: Client
    producer: Producer
    transaction: str
    commit: bool


class Entry(NamedTuple):
    """What a partition holds: a value, or (None) a marker."""

    producer_id: int
    value: str | None
    committed: bool = False


class Client:
    """A producer that does as it should: it ends a transaction when all that it sent was answered, and stops when told
    that it is fenced. The network gives its messages to the broker late, and more than once."""

    def __init__(self, name: str, producer: Producer) -> None:
        self.name = name
        self.producer = producer
        self.number = 0
        self.sequences: dict[int, int] = {}
        self.added: dict[int, None] = {}
        self.unanswered: dict[str, None] = {}
        self.acknowledged: dict[str, list[str]] = {}
        self.must_abort = False
        self.ending: End | None = None
        self.fenced = False

    @property
    def transaction(self) -> str:
        return f"{self.name}.{self.number}"


class Partition:
    """A log of single records and markers, with the real bookkeeping of producers."""

    def __init__(self) -> None:
        self.producers = ProducerStates()
        self.entries: list[Entry] = []

    def has_ongoing(self, producer: Producer) -> bool:
        found = self.producers.get(producer[0])
        return found is not None and found.txn_first_offset != NO_OFFSET and found.epoch == producer[1]

    def append(self, write: Write) -> None:
        producer_id, epoch = write.producer
        if self.producers.check(producer_id, epoch, write.sequence, 1) is not None:
            return  # a duplicate, answered as the first was
        offset = len(self.entries)
        header = BatchHeader(
            base_offset=offset,
            batch_length=0,
            leader_epoch=0,
            magic=MAGIC,
            crc=0,
            attributes=TRANSACTIONAL_BIT,
            last_offset_delta=0,
            base_timestamp=0,
            max_timestamp=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=write.sequence,
            count=1,
        )
        self.producers.apply(header, offset)
        self.entries.append(Entry(producer_id, write.value))

    def append_marker(self, producer: Producer, *, commit: bool, version: int) -> None:
        try:
            self.producers.check_marker(*producer, 0, transaction_version=version)
        except BrokerError:
            return
        completed = self.producers.apply_marker(*producer, 0, len(self.entries), 0, commit=commit)
        self.entries.append(Entry(producer[0], None, commit))
        if completed is not None:
            self.producers.complete(completed)
        self.producers.replicated_to(len(self.entries))

    def fates(self) -> dict[str, bool]:
        """Of every value, whether it is committed; what is still open has none."""
        open_values: dict[int, list[str]] = {}
        decided: dict[str, bool] = {}
        for entry in self.entries:
            if entry.value is not None:
                open_values.setdefault(entry.producer_id, []).append(entry.value)
            else:
                for value in open_values.pop(entry.producer_id, ()):
                    decided[value] = entry.committed
        return decided


class World:
    """Everything, with one transactional id."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.scene = Scene(version)
        self.scene.crash()
        self.partitions = [Partition() for _ in range(PARTITIONS)]
        self.clients: list[Client] = []
        self.network: list[Write | End] = []
        self.rounds: list[tuple[WriteMarkers, list[int]]] = []
        self.told: dict[str, bool] = {}
        self._values = 0

    # --- steps

    def arrive(self) -> None:
        given = self.scene.init()
        if isinstance(given, tuple):
            self.clients.append(Client(f"c{len(self.clients)}", given))

    def send(self, client: Client, partition: int) -> None:
        if client.fenced or client.ending is not None or client.must_abort:
            return
        if self.version < 2 and partition not in client.added:
            code = self.scene.add(client.producer, partition, client_version=0)
            if code is not ErrorCode.NONE:
                self._failed(client, code)
                return
            client.added[partition] = None
        sequence = client.sequences.get(partition, 0)
        client.sequences[partition] = sequence + 1
        self._values += 1
        value = f"v{self._values}"
        client.unanswered[value] = None
        self.network.append(Write(client, client.producer, client.transaction, partition, sequence, value))

    def end(self, client: Client, *, commit: bool) -> None:
        if client.fenced or client.ending is not None or client.unanswered:
            return
        order = End(client, client.producer, client.transaction, commit and not client.must_abort)
        client.ending = order
        self.network.append(order)

    def finish(self, client: Client) -> None:
        """Everything arrives, in order, and the client commits."""
        for _ in range(len(self.network)):
            self.deliver(0, again_later=False)
        self.end(client, commit=True)
        self.deliver(len(self.network) - 1, again_later=False)

    def deliver(self, number: int, *, again_later: bool) -> None:
        if not self.network:
            return
        place = number % len(self.network)
        message = self.network[place] if again_later else self.network.pop(place)
        if isinstance(message, Write):
            self._delivered(message, self._take(message))
        else:
            self._ended(message)

    def _take(self, write: Write) -> ErrorCode:
        partition = self.partitions[write.partition]
        if not partition.has_ongoing(write.producer):
            if self.version >= 2:
                code = self.scene.add(write.producer, write.partition)
                if code is ErrorCode.NONE and write.sequence and partition.producers.get(write.producer[0]) is None:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            else:
                verified = self.scene.verify(write.producer, write.partition)
                code = verified["topic", write.partition] if isinstance(verified, dict) else verified
            if code is not ErrorCode.NONE:
                return code
        try:
            partition.append(write)
        except BrokerError as refusal:
            return refusal.code
        return ErrorCode.NONE

    def _delivered(self, write: Write, code: ErrorCode) -> None:
        client = write.client
        if write.value not in client.unanswered:
            return  # a copy; nobody waits for its answer
        if code is ErrorCode.NONE:
            client.acknowledged.setdefault(write.transaction, []).append(write.value)
        elif code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            self.network.append(write)  # the producer sends it again
            return
        else:
            self._failed(client, code)
        del client.unanswered[write.value]

    @staticmethod
    def _failed(client: Client, code: ErrorCode) -> None:
        client.must_abort = True
        client.fenced = client.fenced or code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)

    def _ended(self, order: End) -> None:
        bumps = 2 if self.version >= 2 else 0
        heard = self.scene.end(order.producer, commit=order.commit, client_version=bumps)
        self._begin_rounds()
        client = order.client
        if client.ending is not order:
            return  # a copy
        if heard is ErrorCode.CONCURRENT_TRANSACTIONS:
            self.network.append(order)
            return
        client.ending = None
        if isinstance(heard, tuple):
            self.told[order.transaction] = order.commit
            client.number += 1
            client.must_abort = False
            client.added.clear()
            if bumps:
                client.producer = heard
                client.sequences.clear()
        else:
            client.fenced = True

    def _begin_rounds(self) -> None:
        orders, self.scene.markers = self.scene.markers, []
        self.rounds += [(order, [index for _, index in order.partitions]) for order in orders]
        self._complete()

    def write_marker(self, number: int) -> None:
        """One marker of one of the rounds."""
        self._begin_rounds()
        if not self.rounds:
            return
        order, left = self.rounds[number % len(self.rounds)]
        partition = self.partitions[left.pop(number % len(left))]
        partition.append_marker(
            (order.producer_id, order.epoch), commit=order.committed, version=order.transaction_version
        )
        self._complete()

    def _complete(self) -> None:
        for order, left in self.rounds:
            if not left:
                self.scene.complete(order)
        self.rounds = [(order, left) for order, left in self.rounds if left]

    def crash(self) -> None:
        """The coordinator dies; the partitions live elsewhere."""
        self.scene.crash()
        self.rounds = []
        self._begin_rounds()

    def wait(self, ms: int) -> None:
        self.scene.pass_time(ms)
        self._begin_rounds()

    # --- the end

    def heal(self) -> None:
        """Messages that are still on their way are lost; time passes, and markers are written."""
        self.network = []
        for _ in range(3):
            self.wait(TIMEOUT_MS + 20_000)
            while self.rounds:
                self.write_marker(0)

    def check(self) -> None:
        fates: dict[str, bool] = {}
        for number, partition in enumerate(self.partitions):
            assert partition.producers.first_unstable_offset is None, f"a transaction hangs in partition {number}"
            values = [entry.value for entry in partition.entries if entry.value is not None]
            assert len(values) == len(set(values)), f"a value is twice in partition {number}"
            fates |= partition.fates()
        for client in self.clients:
            for transaction, values in client.acknowledged.items():
                outcomes = {fates[value] for value in values}
                assert len(outcomes) == 1, f"{transaction} is torn"
                if transaction in self.told:
                    assert outcomes == {self.told[transaction]}, f"{transaction} did not end as its producer was told"
