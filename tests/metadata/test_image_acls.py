"""Access rules in the image, against a naive model: bug 58, CVE-2024-27309, where taking one away hid others.

Nothing enforces them yet; they are kept for who does, byte for byte, and whatever is removed is all that is removed.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.metadata.delta import apply
from millstream.metadata.image import EMPTY_IMAGE
from millstream.metadata.record_types import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from millstream.metadata.snapshot import snapshot_records
from millstream.protocol.uuid import Uuid

IDS = [Uuid(bytes(15) + bytes([number])) for number in range(1, 9)]


@st.composite
def rules(draw: st.DrawFn) -> AccessControlEntryRecord:
    """Few names and principals, so that many rules speak of the same resource."""
    return AccessControlEntryRecord(
        id=draw(st.sampled_from(IDS)),
        resource_type=draw(st.sampled_from([2, 3])),
        resource_name=draw(st.sampled_from(["orders", "ord", "*"])),
        pattern_type=draw(st.sampled_from([3, 4])),
        principal=draw(st.sampled_from(["User:ada", "User:*"])),
        host="*",
        operation=draw(st.integers(2, 4)),
        permission_type=draw(st.sampled_from([2, 3])),
    )


@given(st.lists(rules() | st.sampled_from(IDS), max_size=60), st.integers(1, 7))
def test_removing_a_rule_removes_that_rule_alone(steps: list[AccessControlEntryRecord | Uuid], batch: int) -> None:
    model: dict[Uuid, AccessControlEntryRecord] = {}
    records = []
    for step in steps:
        if isinstance(step, AccessControlEntryRecord):
            model[step.id] = step
            records.append(step)
        elif model.pop(step, None) is not None:
            records.append(RemoveAccessControlEntryRecord(id=step))
    image = EMPTY_IMAGE
    for start in range(0, len(records), batch):
        image, _ = apply(image, records[start : start + batch], offset=start)
    assert dict(image.acls) == model
    again, _ = apply(EMPTY_IMAGE, snapshot_records(image))
    assert dict(again.acls) == model
