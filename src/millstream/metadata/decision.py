"""What a controller's decision is: records to write and the answer to give once they are committed.

A `decide_*` function reads an image and a request, may refuse by raising a BrokerError, and returns a Decision. It
changes nothing: the records go through the quorum into the metadata log, and replaying them (`delta.py`) is the only
thing that changes the image. The version in which each record is written follows from the finalized
metadata.version (`metadata_version.py`), so a decision never says it.

The records of one decision are committed together or not at all. A decision without records is an answer alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from millstream.metadata.record_types import MetadataRecord

Response_co = TypeVar("Response_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Response_co]):
    """Records to commit together, and the answer that waits for them."""

    records: tuple[MetadataRecord, ...]
    response: Response_co
