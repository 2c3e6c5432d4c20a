"""The clients that ask most of a broker: Kafka Streams, Kafka Connect, Spark, transactional copiers; and killing.

Every claim holds for Apache Kafka too (`--against both`), or the claim is wrong.
"""
