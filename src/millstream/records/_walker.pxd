# The C types of _walker.py. Sizes come from 32 bits and positions are as wide as memory: no sum of the two can wrap.
cimport cython

ctypedef long long int64
ctypedef unsigned long long uint64
ctypedef const unsigned char[::1] Bytes

cdef uint64 _MASK_32
cdef uint64 _MASK_64
cdef int64 _INT64_MAX

@cython.locals(raw=uint64, byte=uint64, shift=int)
cpdef (int64, Py_ssize_t) _varint32(Bytes data, Py_ssize_t position, Py_ssize_t limit) noexcept

@cython.locals(raw=uint64, byte=uint64, shift=int)
cdef (int64, Py_ssize_t) _varint64(Bytes data, Py_ssize_t position, Py_ssize_t limit) noexcept

@cython.locals(size=int64)
cdef Py_ssize_t _headers_end(Bytes data, Py_ssize_t position, Py_ssize_t limit, int64 count) noexcept

@cython.locals(
    size=int64, end=Py_ssize_t, timestamp_delta=int64, offset_delta=int64, key_size=int64, key_at=Py_ssize_t,
    value_size=int64, value_at=Py_ssize_t, headers=int64, headers_at=Py_ssize_t,
)
cpdef (Py_ssize_t, int64, int64, Py_ssize_t, int64, Py_ssize_t, int64, Py_ssize_t, int64) _record(
    Bytes data, Py_ssize_t position, Py_ssize_t limit
) noexcept

cpdef bint _fits(int64 base, int64 delta) noexcept

@cython.locals(
    index=int64, max_timestamp=int64, max_index=int64, keyless=int64, out_of_range=int64, delta=int64,
    offset_delta=int64, key_size=int64, timestamp=int64,
)
cpdef tuple validate(
    Bytes data, Py_ssize_t position, Py_ssize_t limit, int64 count, int64 base_timestamp, int64 low, int64 high
)

@cython.locals(index=int64, delta=int64, offset_delta=int64)
cpdef tuple find_timestamp(
    Bytes data, Py_ssize_t position, Py_ssize_t limit, int64 count, int64 base_timestamp, int64 target
)

@cython.locals(
    view=Bytes, limit=Py_ssize_t, position=Py_ssize_t, index=int64, delta=int64, offset_delta=int64,
    key_at=Py_ssize_t, key_size=int64, value_at=Py_ssize_t, value_size=int64, at=Py_ssize_t, headers=int64,
    timestamp=int64, records=list,
)
cpdef list decode(bytes data, int64 count, int64 base_offset, int64 base_timestamp, int64 append_time)

@cython.locals(size=int64, pairs=list)
cdef tuple _headers(bytes data, Bytes view, Py_ssize_t position, Py_ssize_t limit, int64 count)

@cython.locals(
    view=Bytes, limit=Py_ssize_t, position=Py_ssize_t, index=int64, previous=int64, delta=int64, offset_delta=int64,
    key_at=Py_ssize_t, key_size=int64, value_size=int64, found=list,
)
cpdef list keys(bytes data, int64 count)

@cython.locals(
    view=Bytes, limit=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, index=int64, delta=int64, timestamp=int64,
    max_timestamp=int64, body=Py_ssize_t, tail=Py_ssize_t, out=bytearray,
)
cpdef tuple retain(bytes data, int64 count, bytes kept, int64 base_timestamp, int64 new_base_timestamp)

@cython.locals(raw=uint64, size=int)
cpdef int _varint_size(int64 value) noexcept

@cython.locals(raw=uint64)
cdef void _append_varint(bytearray out, int64 value)

cdef void _append_bytes(bytearray out, content)

@cython.locals(out=bytearray, body=bytearray, index=int64, timestamp=int64, delta=int64)
cpdef bytes encode(records, int64 base_timestamp)

cpdef uint64 murmur2(Bytes data)

@cython.locals(mixed=uint64, word=uint64)
cpdef uint64 murmur2_between(Bytes data, Py_ssize_t position, Py_ssize_t limit) noexcept
