"""Micro-batches of few records: the driver works them off itself, without a job of Spark's.

A job of Spark's costs tens of milliseconds for each of its stages, and what has to be planned for it as much again,
whether there is one record or a million. So where a record comes alone, most of the time until its result is out was
Spark's own. The driver of the query reads such a micro-batch itself, gives it to the interpreter that the Python engine
runs in workers (tasks/), and writes into the same transaction. What is committed, and when, does not change.

Only sub-topologies of columns are run in this way: functions of the user's stay in Spark's workers. Their state is
either with Spark or here, whole, and goes from one to the other when micro-batches become small or large; a state that
is large stays with Spark. So do records that are large: a small micro-batch has few of them, and few bytes.

eligible.py which sub-topologies; records.py what is read and written; partitions.py the tasks and their state;
engine.py who works a micro-batch off.
"""
