"""Tests of `millstream.groups`."""
