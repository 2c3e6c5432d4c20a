"""Files that Apache Kafka wrote are read, and what we would write in their place is the same to the byte.

`captured/README.md` says how they were made. Only times differ, and with them the checksums.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.broker.metadata_batches import decode_batch
from millstream.broker.metadata_snapshot import read_snapshot, snapshot_batches
from millstream.metadata.delta import apply
from millstream.metadata.image import EMPTY_IMAGE
from millstream.metadata.metadata_version import record_version
from millstream.metadata.snapshot import snapshot_records
from millstream.protocol.metadata_frame import decode_metadata_record, encode_metadata_record
from millstream.records.batch import HEADER_BYTES, BatchHeader
from millstream.records.reading import decode_records, each_batch

CAPTURED = Path(__file__).parent / "captured"
SNAPSHOTS = sorted(CAPTURED.glob("*.checkpoint"))
LOG = (CAPTURED / "00000000000000000000.log").read_bytes()


def timeless(content: bytes) -> list[tuple[BatchHeader, bytes]]:
    """The batches of a file without their times and checksums."""
    return [
        (
            header._replace(base_timestamp=0, max_timestamp=0, crc=0),
            content[position + HEADER_BYTES : position + header.size],
        )
        for position, header in each_batch(content)
    ]


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name)
def test_a_snapshot_is_written_back_byte_for_byte(path: Path) -> None:
    content = path.read_bytes()
    snapshot = read_snapshot(content)
    image, _ = apply(EMPTY_IMAGE, snapshot.records)
    epoch = next(header.leader_epoch for _, header in each_batch(content))
    ours = b"".join(
        snapshot_batches(
            snapshot_records(image),
            level=image.metadata_version,
            epoch=epoch,
            last_contained_ms=snapshot.timestamp_ms,
            now_ms=0,
            voters=snapshot.voters,
        )
    )
    assert timeless(ours) == timeless(content)


def test_every_record_of_a_log_is_written_back_in_the_version_it_had() -> None:
    values = [
        record.value
        for position, header in each_batch(LOG)
        if not header.is_control
        for record in decode_records(LOG, position)
    ]
    assert len(values) > 150
    for value in values:
        assert value is not None
        record, _ = decode_metadata_record(value)
        assert encode_metadata_record(record, record_version(record, 30)) == value


def test_a_log_replays_to_what_its_controller_knew() -> None:
    image = EMPTY_IMAGE
    for position, header in each_batch(LOG):
        image, _ = apply(image, decode_batch(LOG, position, header).records)
    assert list(image.topics.by_name) == ["orders", "__consumer_offsets"]
    assert image.topic_config("orders") == {"cleanup.policy": "compact", "min.insync.replicas": "1"}
    assert (len(image.acls), len(image.scram), image.next_producer_id) == (6, 1, 1000)
    assert image.quotas == {
        (("client-id", None), ("user", "bob")): {"consumer_byte_rate": 2048.0, "producer_byte_rate": 1024.0}
    }
    # The last run ended cleanly: nobody leads, and eligible leader replicas remember who could.
    led = image.topics.by_name["orders"].partitions[0]
    assert (led.leader, led.leader_epoch, led.isr, led.elr, led.last_known_elr) == (-1, 5, (), (1,), (1,))
