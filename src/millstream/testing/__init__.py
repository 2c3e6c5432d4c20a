"""The simulator: the real broker on a virtual clock, a seeded network and a disk that forgets what was not synced."""
