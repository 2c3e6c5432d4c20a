"""A small Kafka client for what no library has: every admin call, whole record batches, one object for all of it.

`Client` is asynchronous and takes its network, clock and randomness from ports, so it runs in the simulator.
`SyncClient` offers the same calls to code without an event loop. Ordinary producing and consuming in groups belongs to
confluent-kafka.
"""
