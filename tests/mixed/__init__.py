"""Nodes of Millstream and of Apache Kafka in one cluster, and everything that they say to each other."""
