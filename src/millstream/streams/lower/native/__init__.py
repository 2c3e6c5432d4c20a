"""The engine of Spark's own operators: a sub-topology of columns as DataFrames, its state as cached snapshots.

A micro-batch is a function of the records read and of the snapshots: DataFrames in, DataFrames out, so that it can be
tested without topics. Nothing of a record goes through Python between the source and the sink.

supported.py what it can run; serdes.py bytes to columns and back; flows.py what goes from node to node; stateless.py,
windows.py, aggregates.py and joins.py the operators; snapshots.py the state; engine.py puts a sub-topology together.
"""
