"""`make soak`: runs that are too long for `make test`, each for as long as it is told.

python -m tests.soak                                everything, a few hours
python -m tests.soak --only fuzz --minutes 60       one part of it
python -m tests.soak --only crashes --seeds 500

properties      every property of the suite with 5,000 examples (hypothesis's profile `soak`)
fuzz            mangled bytes at the frame reader, the decoders and the record walker, for minutes
kills           tests/chaos with a hundred kills -9, and ten of Apache Kafka: no alarm there
cluster         tests/cluster_chaos: five processes, every kind of fault by the dice, for minutes
load            tests/cluster_chaos --load heavy: eighteen producers, four copiers, kills and restarts
groups          tests/cluster_chaos/fresh_groups.py: a hundred new groups under that load
large           tests/sim/large_cluster.py: 300 brokers, 10,000 partitions, a rack and a controller lost
crashes         tests/sim: power failures at every step of the disk, with many seeds
spark           tests/spark: exactly once, with driver, Python workers and broker killed at each step
guarantees      measures the table of docs/guarantees.md
"""
