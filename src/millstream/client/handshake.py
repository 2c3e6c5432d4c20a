"""What happens on a new connection before the first request: TLS, the broker's API versions, the login.

ApiVersions comes first, as KIP-511 has it. A broker that does not know our version of it answers with
UNSUPPORTED_VERSION in the format of version 0 and lists what it does know; we ask again with that.
"""

from __future__ import annotations

import asyncio
import os
import ssl as tls
from typing import TYPE_CHECKING

from millstream.client.connection import Connection
from millstream.client.errors import (
    AuthenticationFailed,
    ConnectionLost,
    NotSupported,
    TlsFailed,
    Unreachable,
    error_code,
)
from millstream.client.sasl import Scram, mechanism
from millstream.protocol.declare import declaration
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from millstream.protocol.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from ssl import SSLContext

    from millstream.client.options import Address, Options, SaslOptions
    from millstream.client.ports import ClientPorts
    from millstream.protocol.messages.api_versions import ApiVersionsResponse

SOFTWARE_NAME = "millstream"
SOFTWARE_VERSION = "0.1.0"
# A login is renewed by a new connection when this much of its lifetime has passed.
LOGIN_LIFETIME_USED = 0.85
SASL_ROUNDS_MAX = 8
NO_TLS_HINT = ", is it a port for TLS?"


async def open_connection(
    address: Address, options: Options, context: SSLContext | None, ports: ClientPorts
) -> Connection:
    """Connect, negotiate and log in, all within `connect_timeout_ms`."""
    connection: Connection | None = None

    def factory() -> Connection:
        nonlocal connection
        connection = Connection(address, options.client_id, options.response_bytes_max)
        return connection

    opened = False
    try:
        async with asyncio.timeout(options.connect_timeout_ms / 1000):
            await ports.network.connect(factory, address.host, address.port, ssl=context)
            assert connection is not None
            await negotiate_versions(connection, options.connect_timeout_ms)
            if options.sasl is not None:
                await log_in(connection, options.sasl, ports, options.connect_timeout_ms)
            opened = True
            return connection
    except TimeoutError:
        raise Unreachable(f"no answer from {address} within {options.connect_timeout_ms} ms") from None
    except tls.SSLError as error:
        speaks_otherwise = isinstance(error, tls.SSLEOFError) or error.reason == "WRONG_VERSION_NUMBER"
        hint = NO_TLS_HINT if speaks_otherwise else ""
        raise TlsFailed(f"no encrypted connection to {address}: {_reason(error)}{hint}") from error
    except OSError as error:
        # Who does not speak TLS hangs up on it; who refuses has not heard what we speak.
        hung_up = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
        hint = NO_TLS_HINT if context is not None and hung_up else ""
        said = _reason(error) or "the connection was closed"
        raise Unreachable(f"cannot connect to {address}: {said}{hint}") from error
    except ConnectionLost as error:
        hint = "" if context is not None else ", perhaps because it expects TLS"
        raise Unreachable(f"{address} closed the connection before it was set up{hint}") from error
    finally:
        if connection is not None and not opened:
            connection.abort()


def _reason(error: OSError) -> str:
    if isinstance(error, tls.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    # asyncio wraps the system's reason in words and addresses of its own; where there is a number, it says it plainly.
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error)).lower()


async def negotiate_versions(connection: Connection, timeout_ms: int) -> None:
    newest = declaration(ApiVersionsRequest).versions.last
    response = await _ask_versions(connection, newest, timeout_ms)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        known = {key.api_key: key for key in response.api_keys}.get(18)
        older = min(newest - 1, known.max_version) if known is not None else 0
        response = await _ask_versions(connection, older, timeout_ms)
    if response.error_code:
        code = error_code(response.error_code).name
        raise NotSupported(f"the broker at {connection.address} refused to list its API versions ({code})")
    connection.versions = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    connection.features = {feature.name: feature.max_version_level for feature in response.finalized_features}


async def _ask_versions(connection: Connection, version: int, timeout_ms: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    frame = await connection.exchange(request, version, timeout_ms)
    # The header of this response is always the correlation id alone, so the error code is at byte 4.
    if int.from_bytes(frame[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION:
        version = 0
    response: ApiVersionsResponse = connection.decode_response(ApiVersionsRequest, version, frame)
    return response


async def log_in(connection: Connection, options: SaslOptions, ports: ClientPorts, timeout_ms: int) -> None:
    if 17 not in connection.versions or 36 not in connection.versions:
        raise AuthenticationFailed(f"the broker at {connection.address} has no SASL login on this port")
    shaken = await connection.call(
        SaslHandshakeRequest(mechanism=options.mechanism),
        connection.pick_version(SaslHandshakeRequest, at_least=1),
        timeout_ms=timeout_ms,
    )
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms) or "none"
        raise AuthenticationFailed(
            f"the broker at {connection.address} does not take {options.mechanism}; it offers {offered}"
        )
    login = mechanism(options, str(ports.random.uuid()))
    message: bytes | None = login.first()
    version = connection.pick_version(SaslAuthenticateRequest)
    for _ in range(SASL_ROUNDS_MAX):
        if message is None:
            break
        try:
            answer = await connection.call(
                SaslAuthenticateRequest(auth_bytes=message),
                version,
                timeout_ms=timeout_ms,
            )
        except ConnectionLost as error:
            raise AuthenticationFailed(f"{connection.address} closed the connection during the login") from error
        if answer.error_code:
            said = (answer.error_message or error_code(answer.error_code).name).rstrip(".")
            raise AuthenticationFailed(f"the broker at {connection.address} refused user {options.username!r}: {said}")
        message = login.next(bytes(answer.auth_bytes))
        if answer.session_lifetime_ms > 0:
            lifetime_s = answer.session_lifetime_ms / 1000
            connection.expires_at_s = asyncio.get_running_loop().time() + lifetime_s * LOGIN_LIFETIME_USED
    if isinstance(login, Scram) and not login.finished:
        raise AuthenticationFailed(f"the broker at {connection.address} ended the login without its own proof")
