"""Every setting, declared once: Kafka's name, kind, default, bounds, scope, live or not, doc.

    from millstream.settings import RETENTION_MS, Settings

    settings = Settings({"log.retention.hours": "24"})
    settings[RETENTION_MS]  # 86_400_000

A constant has its setting's name in capitals. Six names are both a broker's and a topic's; there the plain constant
is the topic's and the broker-wide default has `BROKER_` before it (COMPRESSION_TYPE, BROKER_COMPRESSION_TYPE). Ask
for the topic's constant also on a broker's settings: it follows all synonyms and units.

kinds.py       kinds of value        declare.py    Setting             catalog.py  all of them, by name
effective.py   Settings, layers      loading.py    file, environment, command line -> Settings, with warnings
listeners.py   addresses and roles   dynamic.py    what may change live             properties.py  Java's file format
without_effect.py   what is set and does nothing
The other modules hold the declarations, by subject.
"""

# ruff: noqa: F403  this module is the package's front door

from __future__ import annotations

from millstream.settings.catalog import *
from millstream.settings.checks import *
from millstream.settings.cleaning import *
from millstream.settings.cluster import *
from millstream.settings.declare import *
from millstream.settings.dynamic import *
from millstream.settings.effective import *
from millstream.settings.groups import *
from millstream.settings.kinds import Password as Password
from millstream.settings.listeners import *
from millstream.settings.loading import *
from millstream.settings.metering import *
from millstream.settings.network import *
from millstream.settings.own import *
from millstream.settings.properties import *
from millstream.settings.remote import *
from millstream.settings.replication import *
from millstream.settings.resources import *
from millstream.settings.sasl import *
from millstream.settings.security import *
from millstream.settings.share import *
from millstream.settings.storage import *
from millstream.settings.tls import *
from millstream.settings.topics import *
from millstream.settings.transactions import *
from millstream.settings.without_effect import *
