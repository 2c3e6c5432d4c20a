"""Envelope (KIP-590): any broker sends on what only the active controller decides, with the rights of its client."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.broker.replica_scene import Scene, play

from millstream.broker.dispatch import HANDLERS
from millstream.broker.handlers.envelope import envelope
from millstream.protocol.codec import encode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.frames import decode_response, encode_request
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.data.default_principal_data import DefaultPrincipalData
from millstream.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.security.operations import Operation, ResourceType
from millstream.testing.cluster import CONTROLLER_PORT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

ENVELOPE, CREATE_TOPICS = 58, 19


def making(topic: str) -> CreateTopicsRequest:
    made = CreatableTopic(name=topic, num_partitions=1, replication_factor=3, assignments=[], configs=[])
    return CreateTopicsRequest(topics=[made], timeout_ms=30_000)


def enclosed(message: object, version: int, principal: str | None = "ada") -> EnvelopeRequest:
    says = DefaultPrincipalData(type="User", name=principal or "", token_authenticated=False)
    return EnvelopeRequest(
        request_data=encode_request(message, version, 7, "somebody")[4:],
        # Its version comes first, in two bytes.
        request_principal=None if principal is None else b"\0\0" + encode(says, 0),
        client_host_address=bytes((10, 1, 2, 3)),
    )


def controllers(scene: Scene) -> tuple[int, list[int]]:
    """The active one, and the others."""
    (active,) = [each for each in scene.cluster.nodes if scene.node(each).controller.is_active]
    return active, [each for each in scene.cluster.nodes if each != active]


def asking(scene: Scene, node_id: int) -> Callable[[EnvelopeRequest], Awaitable[EnvelopeResponse]]:
    peer = scene.peers.at(f"node-{node_id}", CONTROLLER_PORT, "envelopes")

    async def ask(request: EnvelopeRequest) -> EnvelopeResponse:
        answer: EnvelopeResponse = await peer.ask(request, version=0, timeout_ms=30_000)
        return answer

    return ask


def test_whatever_broker_is_asked_the_active_controller_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_on: list[EnvelopeRequest] = []

    def note(request: EnvelopeRequest, ctx: Any) -> Any:
        sent_on.append(request)
        return envelope(request, ctx)

    monkeypatch.setitem(HANDLERS, ENVELOPE, replace(HANDLERS[ENVELOPE], call=note))

    async def scenario(scene: Scene) -> None:
        active, others = controllers(scene)
        assert (await scene.ask(active, making("directly"), 7)).topics[0].error_code == ErrorCode.NONE
        assert sent_on == []
        for number in others:
            answer = await scene.ask(number, making(f"by-{number}"), 7)
            assert answer.topics[0].error_code == ErrorCode.NONE
            await scene.until(lambda: f"by-{number}" in scene.node(number).image.topics.by_name, "it is known there")  # noqa: B023
        assert len(sent_on) == len(others)

    play(scenario)


def test_what_is_inside_is_done_with_the_rights_of_the_client() -> None:
    asked: list[tuple[str, str]] = []

    class OnlyAda:
        def allows(self, principal: str, host: str, operation: Operation, *resource: object) -> bool:
            if operation is Operation.CREATE:
                asked.append((principal, host))
            return operation is not Operation.CREATE or principal == "User:ada"

    async def scenario(scene: Scene) -> None:
        active, _ = controllers(scene)
        scene.node(active).authorizer = OnlyAda()
        ask = asking(scene, active)
        for principal, code in (("ada", ErrorCode.NONE), ("eve", ErrorCode.TOPIC_AUTHORIZATION_FAILED)):
            answer = await ask(enclosed(making(f"of-{principal}"), 7, principal))
            assert answer.error_code == ErrorCode.NONE
            assert answer.response_data is not None
            correlation_id, inside = decode_response(CREATE_TOPICS, 7, bytes(answer.response_data))
            assert (correlation_id, inside.topics[0].error_code) == (7, code)
        assert set(asked) == {("User:ada", "10.1.2.3"), ("User:eve", "10.1.2.3")}

    play(scenario)


def test_an_envelope_is_refused() -> None:
    class NoBroker:
        def allows(self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str) -> bool:
            return operation is not Operation.CLUSTER_ACTION

    async def scenario(scene: Scene) -> None:
        active, others = controllers(scene)
        ask = asking(scene, active)

        async def refusal(request: EnvelopeRequest) -> ErrorCode:
            return ErrorCode((await ask(request)).error_code)

        wrong_version = enclosed(making("x"), 7)
        wrong_version.request_data = wrong_version.request_data[:2] + b"\0\x63" + wrong_version.request_data[4:]
        garbage = enclosed(making("x"), 7)
        garbage.request_data = b"\0"
        assert await refusal(enclosed(FindCoordinatorRequest(coordinator_keys=["x"]), 4)) is ErrorCode.INVALID_REQUEST
        assert await refusal(garbage) is ErrorCode.INVALID_REQUEST
        assert await refusal(wrong_version) is ErrorCode.UNSUPPORTED_VERSION
        nobody = await refusal(enclosed(making("x"), 7, None))
        assert nobody is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
        elsewhere = await asking(scene, others[0])(enclosed(making("x"), 7))
        assert elsewhere.error_code == ErrorCode.NOT_CONTROLLER
        scene.node(active).authorizer = NoBroker()
        assert await refusal(enclosed(making("x"), 7)) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert "x" not in scene.node(active).image.topics.by_name

    play(scenario)
