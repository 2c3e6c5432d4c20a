"""The test driver: a plan interpreted in this process, record by record, as Kafka Streams does with its cache off.

driver.py what a test uses, wiring.py nodes to functions, stores.py what they keep; the other modules hold the rules of
the operators, by kind. A stream step is a function of (key, value, timestamp, headers), a table step one of (key, new
value, old value, timestamp, headers): plain calls, no object per record and step.
"""

from __future__ import annotations
