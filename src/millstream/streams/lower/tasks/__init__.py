"""The engine for Python functions: a sub-topology's records, partition by partition, through the driver's interpreter.

A task is one partition of a sub-topology, as in Kafka Streams. In each micro-batch it gets the partition's records as
Arrow batches, in one call, and gives back what goes to topics: results, changes of stores for their changelogs, and
what operators know besides. It means what the test driver means, record by record, since it is the same code.

State is rebuilt from changelogs, so a task may run in any worker on any machine. A worker keeps the tasks that it has
run; when it gets one again it goes on from there, after reading what others have changed since. What a task did in a
micro-batch that was not committed is thrown away: a token for each try tells (function.py).

stores.py stores that know what has changed; wires.py what goes through internal topics; partition.py one task;
restoring.py reading changelogs; function.py what Spark calls; engine.py the driver's side.
"""
