"""Changes of the metadata that a client asked for, answered also where the metadata log takes nothing.

A decision comes with its answer, which is true once its records are committed. If they cannot be (the disk is full),
the same answer with the error in every entry tells the client so. Without it the connection would have to be closed,
and an administrator would see a disconnect where the broker knows the reason.

A request that has a timeout is answered with REQUEST_TIMED_OUT when that has passed (request_timeouts.py).

A node that is not the active controller answers in the same way, with NOT_CONTROLLER; except that a request from an
Envelope goes back to the broker that sent it, which looks for the active controller again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.broker.dispatch import ForwardedContext
from millstream.broker.request_timeouts import within_timeout
from millstream.protocol.errors import NotController, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.dispatch import Context
    from millstream.metadata.decision import Decision
    from millstream.metadata.image import MetadataImage

Response = TypeVar("Response")


async def change_metadata(
    ctx: Context,
    request: Any,
    decide: Callable[[MetadataImage, int], Decision[Response]],
    *,
    may_change: Callable[[str], bool] = lambda _: True,
) -> Response:
    """Decide, commit, answer within the request's timeout; KAFKA_STORAGE_ERROR where nothing could be written."""
    return await within_timeout(request, partial(_change, ctx, decide), may_change=may_change)


async def _change(ctx: Context, decide: Callable[[MetadataImage, int], Decision[Response]]) -> Response:
    decided: list[Response] = []

    def remember(image: MetadataImage, now_ms: int) -> Decision[Response]:
        decision = decide(image, now_ms)
        decided.append(decision.response)
        return decision

    try:
        return await ctx.broker.controller.submit(remember)
    except StorageError as error:
        if not decided:
            raise
        return _refused(decided[0], error)
    except NotController as error:
        if isinstance(ctx, ForwardedContext):
            raise
        # Decided once more, for the form of the answer only.
        return _refused(decide(ctx.broker.image, ctx.broker.ports.clock.wall_ms()).response, error)


def _refused(response: Response, error: StorageError | NotController) -> Response:
    """The response with the error at its top, or in those of its entries that had none."""
    entries: list[Any] = [response]
    if not hasattr(response, "error_code"):
        fields: tuple[str, ...] = response.__struct_fields__  # type: ignore[attr-defined]  # messages are structs
        lists = [value for value in (getattr(response, name) for name in fields) if isinstance(value, list)]
        entries = [entry for entries in lists for entry in entries]
    for entry in entries:
        if entry.error_code == 0:
            entry.error_code = error.code
            if hasattr(entry, "error_message"):
                entry.error_message = error.message
    return response
