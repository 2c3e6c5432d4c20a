# The C types of _scatter.py.
cimport cython

from millstream.records._columns cimport BytesOut, Ints, IntsOut, Longs
from millstream.records._walker cimport Bytes, int64, murmur2_between, uint64

cdef bint _COMPILED
cdef uint64 _MASK_64
cdef int64 _INT64_MAX
cdef int64 _RECORD_BYTES_MAX
cdef int64 _FINE
cdef int64 _WRONG_TIME
cdef int64 _TOO_LARGE

cdef bint _is_there(Bytes valid, Py_ssize_t at) noexcept nogil

@cython.locals(row=Py_ssize_t, rows=Py_ssize_t)
cpdef void partitions_of_keys(
    Ints ends, Bytes data, Bytes valid, Py_ssize_t valid_at, int64 partitions, IntsOut chosen
)

@cython.locals(row=Py_ssize_t, rows=Py_ssize_t, with_sizes=bint, overhead=int64, size=int64)
cpdef tuple spread(IntsOut chosen, Ints ends, int64 partitions, int64 current, int64 filled, int64 sticky_bytes)

@cython.locals(row=Py_ssize_t, rows=Py_ssize_t, partitions=int64, partition=int64, at=int64)
cpdef Py_ssize_t group(Ints chosen, IntsOut starts, IntsOut order)

@cython.locals(raw=uint64, size=int64)
cdef int64 _varint_size(int64 value) noexcept nogil

@cython.locals(raw=uint64)
cdef Py_ssize_t _put_varint(BytesOut out, Py_ssize_t position, int64 value) noexcept nogil

cdef Py_ssize_t _put_bytes(BytesOut out, Py_ssize_t position, Bytes data, Py_ssize_t start, int64 size) noexcept nogil

@cython.locals(found=(int64, Py_ssize_t, Py_ssize_t, int64, int64))
cpdef tuple encode(
    Ints order, Py_ssize_t at, Py_ssize_t stop, Longs times,
    Ints key_ends, Bytes key_data, Bytes key_valid, Py_ssize_t key_valid_at,
    Ints value_ends, Bytes value_data, Bytes value_valid, Py_ssize_t value_valid_at,
    Ints header_ends, Bytes header_valid, Py_ssize_t header_valid_at,
    Ints name_ends, Bytes name_data,
    Ints content_ends, Bytes content_data, Bytes content_valid, Py_ssize_t content_valid_at,
    BytesOut out, Py_ssize_t position,
)

@cython.locals(
    row=Py_ssize_t, index=int64, header=Py_ssize_t, headers=int64, last_header=Py_ssize_t, size=int64, body=int64,
    key_at=Py_ssize_t, key_size=int64, value_at=Py_ssize_t, value_size=int64, base_timestamp=int64,
    max_timestamp=int64, timestamp=int64, delta=int64, with_keys=bint, with_values=bint, with_headers=bint,
    room=Py_ssize_t,
)
cdef (int64, Py_ssize_t, Py_ssize_t, int64, int64) _encode_rows(
    Ints order, Py_ssize_t at, Py_ssize_t stop, Longs times,
    Ints key_ends, Bytes key_data, Bytes key_valid, Py_ssize_t key_valid_at,
    Ints value_ends, Bytes value_data, Bytes value_valid, Py_ssize_t value_valid_at,
    Ints header_ends, Bytes header_valid, Py_ssize_t header_valid_at,
    Ints name_ends, Bytes name_data,
    Ints content_ends, Bytes content_data, Bytes content_valid, Py_ssize_t content_valid_at,
    BytesOut out, Py_ssize_t position,
) noexcept nogil
