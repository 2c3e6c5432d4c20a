"""Who may read and change configs: one rule for the three APIs, which differ only in the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.image import GROUP_CONFIG, TOPIC_CONFIG
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.dispatch import Context
    from millstream.protocol.errors import ErrorCode


def config_refusal(request: type, ctx: Context) -> Callable[[int, str], ErrorCode | None]:
    """Answers for a resource (type, name): the code of a refusal, or None where the principal may."""
    on_topics, on_cluster, on_groups = needs_of(request)
    needs = {TOPIC_CONFIG: on_topics, GROUP_CONFIG: on_groups}

    def refusal(resource_type: int, name: str) -> ErrorCode | None:
        need = needs.get(resource_type, on_cluster)
        return None if need.granted(ctx.allows, name) else need.refusal

    return refusal
