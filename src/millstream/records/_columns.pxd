# The C types of _columns.py. What walks a record is _walker's, called across modules as a C function.
cimport cython

from millstream.records._walker cimport Bytes, _fits, _record, _varint32, int64, uint64

ctypedef const int[::1] Ints
ctypedef const long long[::1] Longs
ctypedef unsigned char[::1] BytesOut
ctypedef int[::1] IntsOut
ctypedef long long[::1] LongsOut

cdef bint _COMPILED

cpdef void _copy(BytesOut out, Py_ssize_t at, Bytes data, Py_ssize_t start, Py_ssize_t size) noexcept

cdef void _mark(BytesOut bits, Py_ssize_t row, bint valid) noexcept

@cython.locals(
    batch=Py_ssize_t, batches=Py_ssize_t, position=Py_ssize_t, limit=Py_ssize_t, count=int64, index=int64,
    base_offset=int64, base_timestamp=int64, delta=int64, offset_delta=int64, offset=int64, previous=int64,
    key_at=Py_ssize_t, key_size=int64, value_at=Py_ssize_t, value_size=int64, at=Py_ssize_t, headers=int64, size=int64,
    rows=int64, key_bytes=int64, null_keys=int64, value_bytes=int64, null_values=int64, with_headers=int64,
    all_headers=int64, name_bytes=int64, content_bytes=int64, null_contents=int64,
)
cpdef tuple measure(Bytes data, Longs plan, int64 low, int64 high)

@cython.locals(
    batch=Py_ssize_t, batches=Py_ssize_t, position=Py_ssize_t, limit=Py_ssize_t, count=int64, base_offset=int64,
    base_timestamp=int64, append_time=int64, delta=int64, offset_delta=int64, offset=int64,
    key_at=Py_ssize_t, key_size=int64, value_at=Py_ssize_t, value_size=int64, at=Py_ssize_t, headers=int64, size=int64,
    with_offsets=bint, with_times=bint, with_keys=bint, with_values=bint, with_headers=bint,
    mark_keys=bint, mark_values=bint,
)
cpdef tuple fill(
    Bytes data, Longs plan, int64 low, int64 high,
    Py_ssize_t row, Py_ssize_t key_end, Py_ssize_t value_end, Py_ssize_t header, Py_ssize_t name_end,
    Py_ssize_t content_end,
    LongsOut offsets, LongsOut times, IntsOut key_ends, BytesOut key_data, BytesOut key_valid,
    IntsOut value_ends, BytesOut value_data, BytesOut value_valid,
    IntsOut header_ends, BytesOut header_valid, IntsOut name_ends, BytesOut name_data,
    IntsOut content_ends, BytesOut content_data, BytesOut content_valid,
)
