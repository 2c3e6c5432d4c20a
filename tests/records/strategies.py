"""What batches are made of, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

timestamps = st.one_of(st.just(-1), st.integers(0, 2**45), st.integers(0, 2**63 - 2))
blobs = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=120, max_size=300))
headers = st.lists(st.tuples(st.text(max_size=10), st.one_of(st.none(), st.binary(max_size=20))), max_size=4)
records = st.tuples(blobs, blobs, headers, timestamps)
record_lists = st.lists(records, min_size=1, max_size=20)


@st.composite
def mangled(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes flipped, cut, doubled or put in between."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(out) - 1, 0)))
        match draw(st.integers(0, 3)):
            case 0 if out:
                out[at] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, out[at] ^ 1, out[at] ^ 0x80]))
            case 1:
                del out[at : at + draw(st.integers(1, 8))]
            case 2:
                out[at:at] = draw(st.binary(min_size=1, max_size=12))
            case _:
                out[at:at] = b"\xff" * draw(st.integers(1, 12))
    return bytes(out)
