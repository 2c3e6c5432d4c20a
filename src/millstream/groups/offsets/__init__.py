"""Committed offsets: the store, and the decisions to commit, fetch, delete and expire."""
