"""Kafka's own command line tools, by their names and with their options: what is in people's fingers and scripts.

They print what Kafka's tools print, on the same stream where scripts look for it, and stand on the same functions as
the commands of our own. What Kafka has dropped is answered with how it is said today.
"""
