"""Bytes to messages and back: declarations, compiled codecs, frames, error codes. No sockets, no clocks."""
