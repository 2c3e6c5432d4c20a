"""A cluster of real processes that is broken on purpose while clients work, and what the clients saw.

python -m tests.cluster_chaos                                every fault once, seed 1
python -m tests.cluster_chaos --seed 7 --minutes 30          faults by the dice of a seed, for half an hour
python -m tests.cluster_chaos --faults kill,one-way          these, in this order
python -m tests.cluster_chaos --load heavy --nodes 3         more clients, checked to the last record
python -m tests.cluster_chaos --against apache-kafka         the same done to brokers of Apache Kafka
python -m tests.cluster_chaos.fresh_groups                   new groups under load, and when each reads its first record

links           what nodes can hear of each other: network namespaces, or relays where those are not allowed
processes       `millstream broker` five times, and what each node of them says of the cluster
faults          one class per kind: break, prove that it bites, mend, prove that all is well again
load            eighteen producers and four copiers, and the proof that no record is missing, doubled or out of order
scenario        a cluster, clients at work, faults, the final read, and the history checker's verdict
"""
