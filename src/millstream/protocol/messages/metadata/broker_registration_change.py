from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, Int64, UuidField, message, wire


@message(record_type=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """Changes a broker's registration: fencing, controlled shutdown, directories.

    v1: KIP-841, controlled shutdown. v2: KIP-858, log directories. v3: KIP-1066, cordoned ones.
    """

    broker_id: Int32
    broker_epoch: Int64
    # -1 unfences, 0 is unchanged, 1 fences.
    fenced: Int8 = wire(default=0, tag=0)
    # 0 is unchanged, 1 is shutting down; -1 does not occur.
    in_controlled_shutdown: Int8 = wire("1+", default=0, tag=1)
    log_dirs: list[UuidField] = wire("2+", default=[], tag=2)
    cordoned_log_dirs: list[UuidField] | None = wire("3+", default=None, tag=3)
