"""The plan of a topology: frozen nodes (nodes.py), what they keep (stores.py) and fold (aggregations.py), all together
(plan.py), how it is written (drafting.py, names.py), and how Kafka Streams would see it (physical.py, describing.py).
"""

from __future__ import annotations
