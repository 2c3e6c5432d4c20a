"""Topics that an application of Kafka Streams, or of `millstream.streams`, made for itself, known by their names."""

from __future__ import annotations

import re

# What Kafka Streams puts behind `<application id>-<name>`; generated names of foreign-key joins have a number behind.
_SUFFIXES = ("-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic")
_NUMBERED = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic")


def is_internal(application_id: str, topic: str) -> bool:
    """Whether a topic looks like one that the application made for itself."""
    if not topic.startswith(f"{application_id}-"):
        return False
    return topic.endswith(_SUFFIXES) or _NUMBERED.fullmatch(topic) is not None
