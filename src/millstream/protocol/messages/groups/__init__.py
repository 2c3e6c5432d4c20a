"""The records of `__consumer_offsets`: groups, members, assignments and committed offsets."""
