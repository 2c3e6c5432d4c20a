"""From a plan to Spark: one query for each sub-topology, cut at internal topics.

subtopologies.py and topics.py what there is to run and which topics it needs, without Spark; deciding.py which of the
two engines runs a sub-topology; running.py the queries. native/ compiles columns to Spark's own operators; tasks/ runs
Python functions over the records of each partition, with the driver's interpreter, its state restored from changelogs;
direct/ does the same without Spark for micro-batches of few records.
"""
