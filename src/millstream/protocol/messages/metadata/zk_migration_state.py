from __future__ import annotations

from millstream.protocol.declare import Int8, message


@message(record_type=21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    """How far a migration from ZooKeeper has got; still read, because upgraded clusters carry it (KIP-866)."""

    zk_migration_state: Int8
