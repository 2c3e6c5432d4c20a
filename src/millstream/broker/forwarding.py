"""Requests that only the active controller can answer, sent on to it in an Envelope (KIP-590).

A client need not know who the active controller is: whatever broker it asks puts the request, as it came, into an
Envelope together with the client's principal and address, and the answer inside goes back to the client unchanged.
While no controller is active the request waits. When its own timeout has passed (request_timeouts.py) the client gets
REQUEST_TIMED_OUT; if it has more time than a client waits for a response, its own handler answers here before that,
with NOT_CONTROLLER: the client asks again.

What a broker changes on a client's behalf (a topic that Metadata makes) takes the same way: `create_topics`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import answer_of
from millstream.broker.metadata_changes import change_metadata
from millstream.broker.request_timeouts import timeout_of, within_timeout
from millstream.metadata.decide_create_topics import decide_create_topics
from millstream.protocol.codec import decode, encode
from millstream.protocol.declare import declaration
from millstream.protocol.errors import BrokerError, ErrorCode, NotController
from millstream.protocol.frames import decode_response, encode_request
from millstream.protocol.messages.create_topics import CreateTopicsRequest
from millstream.protocol.messages.data.default_principal_data import DefaultPrincipalData
from millstream.protocol.messages.envelope import EnvelopeRequest
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.dispatch import Context
    from millstream.broker.node import Node
    from millstream.broker.requests import Call
    from millstream.protocol.messages.create_topics import CreateTopicsResponse

# Shorter than the 30 s after which clients hang up, so that they hear why.
FORWARD_TIMEOUT_MS = 20_000
# How long an answer waits for this broker to hear of what the controller has done.
SEE_S = 5.0
CREATE_TOPICS_VERSION = 7
_PRINCIPAL_VERSION = 0
OWN_PRINCIPAL = "User:ANONYMOUS"
_CREATE, _ = needs_of(CreateTopicsRequest)
_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class Passed:
    """An answer that goes out as it came: the frame without its length."""

    __slots__ = ("frame",)

    def __init__(self, frame: bytes) -> None:
        self.frame = frame


async def forward(frame: bytes, call: Call, body: int, ctx: Context) -> Any:
    """The active controller's answer; or the own handler's, where this node is it by now or there is none."""
    request, _ = call.decode(memoryview(frame), body)
    timeout_ms = timeout_of(request)
    if timeout_ms is not None and timeout_ms <= 0:
        return await answer_of(call.handling.call(request, ctx))  # its time is over, or it needs no controller
    return await within_timeout(request, partial(_forward, frame, request, call, ctx))


async def _forward(frame: bytes, request: Any, call: Call, ctx: Context) -> Any:
    # A timeout cancels this, which leaves the connection to the controller to the other requests on it.
    try:
        return Passed(await _pass_on(ctx.broker, frame, ctx.principal, ctx.connection.peer_host))
    except BrokerError:
        return await answer_of(call.handling.call(request, ctx))


async def change_elsewhere(node: Node, request: Any, version: int, *, principal: str, client_host: str) -> Any:
    """The answer to a request that this broker makes for a client; raises as `ask` does where there is none."""
    api_key = declaration(type(request)).api_key
    assert api_key is not None
    frame = encode_request(request, version, 0, node.peers.client_id)[4:]
    return decode_response(api_key, version, await _pass_on(node, frame, principal, client_host))[1]


async def create_topics(node: Node, creation: CreateTopicsRequest, ctx: Context | None = None) -> CreateTopicsResponse:
    """Make topics for a client, or where `ctx` is None for this broker itself; those made are in the image after it."""
    allows: Callable[[str], bool] = (lambda _: True) if ctx is None else partial(_CREATE.granted, ctx.allows)
    if node.controller.is_active:
        submit = node.controller.submit if ctx is None else partial(change_metadata, ctx, creation)
        return await submit(
            lambda image, _: decide_create_topics(
                image, creation, settings=node.settings, random=node.ports.random, may_create=allows
            )
        )
    principal = OWN_PRINCIPAL if ctx is None else ctx.principal
    client_host = "" if ctx is None else ctx.connection.peer_host
    created: CreateTopicsResponse = await change_elsewhere(
        node, creation, CREATE_TOPICS_VERSION, principal=principal, client_host=client_host
    )
    await _see(node, [topic.name for topic in created.topics if topic.error_code in _THERE])
    return created


async def _see(node: Node, names: list[str]) -> None:
    """The controller has committed the topics; this broker's image follows in a moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SEE_S):
            await node.wait_for_image(lambda image: all(name in image.topics.by_name for name in names))


async def _pass_on(node: Node, frame: bytes, principal: str, client_host: str) -> bytes:
    envelope = EnvelopeRequest(
        request_data=frame,
        request_principal=encode_principal(principal),
        client_host_address=_address_bytes(client_host),
    )
    if node.controller.is_active:
        raise NotController("this node is the active controller itself")
    answer = await node.ask_controller(envelope, version=0, timeout_ms=FORWARD_TIMEOUT_MS, purpose="forward")
    if answer.error_code != ErrorCode.NONE or answer.response_data is None:
        raise NotController(f"the controller refused the envelope: {ErrorCode(answer.error_code).name}")
    return bytes(answer.response_data)


# --- who the client is


def encode_principal(principal: str) -> bytes:
    """Kafka's default form: the version, then the message."""
    kind, _, name = principal.partition(":")
    data = DefaultPrincipalData(type=kind, name=name, token_authenticated=False)
    return _PRINCIPAL_VERSION.to_bytes(2, "big") + encode(data, _PRINCIPAL_VERSION)


def decode_principal(data: bytes) -> str:
    """MalformedMessage where it cannot be read."""
    found = decode(DefaultPrincipalData, int.from_bytes(data[:2], "big"), data, 2)
    return f"{found.type}:{found.name}"


def _address_bytes(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)


def decode_address(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed)) if len(packed) in (4, 16) else ""
