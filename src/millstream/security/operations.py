"""What each API needs: one table of operations and resources, read by handlers and by the generated reference.

A row of `API_NEEDS` lists what an API checks, in the order in which its handler checks it. A `Need` is met by any one
of its alternatives, as CreateTopics is by CREATE on the cluster or CREATE on the topic. Handlers take their needs from
the table instead of naming operations themselves, so table, code and documentation cannot part:

    create_topic, see_configs = needs_of(CreateTopicsRequest)
    if not create_topic.granted(ctx.allows, topic.name): ...

What Apache Kafka 4.3 asks for was read from its broker and controller, API by API. Whoever is refused hears the error
of the resource (`Need.refusal`), and a topic that may not be described is never confirmed to exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from millstream.protocol.declare import declaration
from millstream.protocol.errors import ErrorCode


class Operation(IntEnum):
    """Kafka's AclOperation codes, the ones a request can need."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Kafka's ResourceType codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
# Asks whether the operation is allowed on at least one resource of the type, whatever its name.
ANY_NAME = None

Allows = Callable[[Operation, ResourceType, str | None], bool]


class Authorizer(Protocol):
    """Decides; `name` is None where any resource of the type would do."""

    def allows(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str | None
    ) -> bool: ...


class AllowAll:
    """No authorizer is configured: everybody may do everything, as in Kafka."""

    def allows(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str | None,
    ) -> bool:
        return True


_REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Need:
    """An operation on a resource, or one of several that do instead; `when` says on which part of a request."""

    alternatives: tuple[tuple[Operation, ResourceType], ...]
    when: str = ""

    def granted(self, allows: Allows, name: str | None = CLUSTER_NAME) -> bool:
        """Ask for each alternative in turn; `name` is that of the resource, unless the cluster is it."""
        return any(
            allows(operation, resource, CLUSTER_NAME if resource is ResourceType.CLUSTER else name)
            for operation, resource in self.alternatives
        )

    @property
    def refusal(self) -> ErrorCode:
        """The last alternative is the most specific one, and names what is missing."""
        return _REFUSALS[self.alternatives[-1][1]]


# What a resource's authorized_operations bit field is made of.
SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
# The field's value where the request did not ask for it.
OPERATIONS_NOT_ASKED_FOR = -(2**31)


def authorized_operations(allows: Allows, resource: ResourceType, name: str) -> int:
    """The bit field of what the principal may do with the resource: bit n for the operation with code n."""
    return sum(1 << operation for operation in SUPPORTED_OPERATIONS[resource] if allows(operation, resource, name))


def needs_of(request: type) -> tuple[Need, ...]:
    """The table's row for a request class."""
    key = declaration(request).api_key
    assert key is not None, f"{request.__name__} is no request"
    return API_NEEDS[key]


def _on(operation: Operation, resource: ResourceType, when: str = "") -> Need:
    return Need(((operation, resource),), when)


_READ_TOPIC = _on(Operation.READ, ResourceType.TOPIC)
_WRITE_TOPIC = _on(Operation.WRITE, ResourceType.TOPIC)
_DESCRIBE_TOPIC = _on(Operation.DESCRIBE, ResourceType.TOPIC)
_READ_GROUP = _on(Operation.READ, ResourceType.GROUP)
_DELETE_GROUP = _on(Operation.DELETE, ResourceType.GROUP)
_DESCRIBE_GROUP = _on(Operation.DESCRIBE, ResourceType.GROUP)
_WRITE_TRANSACTION = _on(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
_DESCRIBE_TRANSACTION = _on(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
_ALTER_CLUSTER = _on(Operation.ALTER, ResourceType.CLUSTER)
_DESCRIBE_CLUSTER = _on(Operation.DESCRIBE, ResourceType.CLUSTER)
_CLUSTER_ACTION = _on(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
_CREATE_TOPIC = ((Operation.CREATE, ResourceType.CLUSTER), (Operation.CREATE, ResourceType.TOPIC))
_SHOWN_TOPIC = _on(Operation.DESCRIBE, ResourceType.TOPIC, "for topics that the answer names")


def _configs(operation: Operation) -> tuple[Need, ...]:
    return (
        _on(operation, ResourceType.TOPIC, "for topics"),
        _on(operation, ResourceType.CLUSTER, "for brokers, their loggers and client metrics"),
        _on(operation, ResourceType.GROUP, "for groups"),
    )


API_NEEDS: dict[int, tuple[Need, ...]] = {
    0: (_on(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "for transactional batches"), _WRITE_TOPIC),
    1: (
        _on(Operation.READ, ResourceType.TOPIC, "for consumers"),
        _on(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "for followers"),
    ),
    2: (_DESCRIBE_TOPIC,),
    3: (
        _DESCRIBE_TOPIC,
        Need(_CREATE_TOPIC, "for topics that the request creates"),
        _on(Operation.DESCRIBE, ResourceType.CLUSTER, "for the cluster's authorized operations"),
    ),
    8: (_READ_GROUP, _READ_TOPIC),
    9: (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    10: (
        _on(Operation.DESCRIBE, ResourceType.GROUP, "for groups"),
        _on(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "for transactional ids"),
        _on(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "for share-partition keys"),
    ),
    11: (_READ_GROUP,),
    12: (_READ_GROUP,),
    13: (_READ_GROUP,),
    14: (_READ_GROUP,),
    15: (_DESCRIBE_GROUP,),
    16: (
        Need(
            ((Operation.DESCRIBE, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.GROUP)),
            "for each group listed",
        ),
    ),
    17: (),
    18: (),
    19: (Need(_CREATE_TOPIC), _on(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "for the configs in the answer")),
    20: (
        Need(((Operation.DELETE, ResourceType.CLUSTER), (Operation.DELETE, ResourceType.TOPIC))),
        _on(Operation.DESCRIBE, ResourceType.TOPIC, "for the name of a topic given by its id"),
    ),
    21: (_on(Operation.DELETE, ResourceType.TOPIC),),
    22: (
        _on(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "with a transactional id"),
        _on(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, "with two-phase commit"),
        Need(
            ((Operation.WRITE, ResourceType.TOPIC), (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)),
            "without a transactional id; any topic will do",
        ),
    ),
    23: (Need(((Operation.CLUSTER_ACTION, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.TOPIC))),),
    24: (
        _on(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "from clients (up to version 3)"),
        _on(Operation.WRITE, ResourceType.TOPIC, "from clients (up to version 3)"),
        _on(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "from brokers (version 4 and later)"),
    ),
    25: (_WRITE_TRANSACTION, _READ_GROUP),
    26: (_WRITE_TRANSACTION,),
    27: (Need(((Operation.ALTER, ResourceType.CLUSTER), (Operation.CLUSTER_ACTION, ResourceType.CLUSTER))),),
    28: (_WRITE_TRANSACTION, _READ_GROUP, _READ_TOPIC),
    29: (_DESCRIBE_CLUSTER,),
    30: (_ALTER_CLUSTER,),
    31: (_ALTER_CLUSTER,),
    32: _configs(Operation.DESCRIBE_CONFIGS),
    33: _configs(Operation.ALTER_CONFIGS),
    34: (_ALTER_CLUSTER,),
    35: (_DESCRIBE_CLUSTER,),
    36: (),
    37: (_on(Operation.ALTER, ResourceType.TOPIC),),
    38: (_on(Operation.CREATE_TOKENS, ResourceType.USER, "for a token that somebody else will own"),),
    39: (),
    40: (),
    41: (
        _on(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "for tokens of others"),
        _on(Operation.DESCRIBE_TOKENS, ResourceType.USER, "for all tokens of an owner"),
    ),
    42: (_DELETE_GROUP,),
    43: (_ALTER_CLUSTER,),
    44: _configs(Operation.ALTER_CONFIGS),
    45: (_ALTER_CLUSTER,),
    46: (_DESCRIBE_CLUSTER,),
    47: (_DELETE_GROUP, _READ_TOPIC),
    48: (_on(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),),
    49: (_on(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),),
    50: (_DESCRIBE_CLUSTER,),
    51: (_ALTER_CLUSTER,),
    52: (_CLUSTER_ACTION,),
    53: (_CLUSTER_ACTION,),
    54: (_CLUSTER_ACTION,),
    55: (_DESCRIBE_CLUSTER,),
    56: (_CLUSTER_ACTION,),
    57: (_ALTER_CLUSTER,),
    58: (_CLUSTER_ACTION,),
    59: (_CLUSTER_ACTION,),
    60: (
        _on(Operation.DESCRIBE, ResourceType.CLUSTER, "for the cluster's authorized operations"),
        _on(Operation.ALTER, ResourceType.CLUSTER, "on a controller's listener"),
    ),
    61: (_READ_TOPIC,),
    62: (_CLUSTER_ACTION,),
    63: (_CLUSTER_ACTION,),
    64: (_ALTER_CLUSTER,),
    65: (_DESCRIBE_TRANSACTION, _SHOWN_TOPIC),
    66: (_DESCRIBE_TRANSACTION,),
    67: (_CLUSTER_ACTION,),
    68: (_READ_GROUP, _on(Operation.DESCRIBE, ResourceType.TOPIC, "for subscribed topics")),
    69: (_DESCRIBE_GROUP, _SHOWN_TOPIC),
    70: (_CLUSTER_ACTION,),
    71: (),
    72: (),
    73: (_CLUSTER_ACTION,),
    74: (_on(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),),
    75: (_DESCRIBE_TOPIC,),
    76: (_READ_GROUP, _on(Operation.DESCRIBE, ResourceType.TOPIC, "for subscribed topics")),
    77: (_DESCRIBE_GROUP, _SHOWN_TOPIC),
    78: (_READ_GROUP, _READ_TOPIC),
    79: (_READ_GROUP, _READ_TOPIC),
    80: (_ALTER_CLUSTER,),
    81: (_ALTER_CLUSTER,),
    82: (_CLUSTER_ACTION,),
    83: (_CLUSTER_ACTION,),
    84: (_CLUSTER_ACTION,),
    85: (_CLUSTER_ACTION,),
    86: (_CLUSTER_ACTION,),
    87: (_CLUSTER_ACTION,),
    88: (
        _READ_GROUP,
        _on(Operation.DESCRIBE, ResourceType.TOPIC, "for the topology's topics"),
        Need(_CREATE_TOPIC, "for internal topics that the topology is missing"),
    ),
    89: (_DESCRIBE_GROUP, _SHOWN_TOPIC),
    90: (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    91: (_READ_GROUP, _READ_TOPIC),
    92: (_DELETE_GROUP, _READ_TOPIC),
}
