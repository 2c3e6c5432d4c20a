"""Every message of Apache Kafka 4.3, one module per API; classes and fields have Kafka's names."""
