"""The group coordinator: classic and KIP-848 groups, and the offsets that they commit. Pure; see machine.py."""
