"""A client's options under the names that librdkafka gave them (and Java's where they differ).

People already have these in files and in their fingers, so the client takes a plain mapping of strings. An option
that this client does not know is ignored with a warning in librdkafka's tools; here it is refused where it looks like
security (ignoring `ssl.*` or `sasl.*` would connect less safely than asked) and listed in `unknown` otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millstream.client.errors import BadOption

# How callers say which cluster they mean: its servers, in one text or several, or all options in a mapping.
Bootstrap = str | Iterable[str] | Mapping[str, object]

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_PORT = 9092
DELIVERY_TIMEOUT_MS = 120_000
# About as long as for ever, which is what librdkafka means by a message.timeout.ms of 0.
NO_END_MS = 1 << 40

# Java's spelling -> librdkafka's.
SYNONYMS = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanism": "sasl.mechanisms",
    "request.timeout.ms": "socket.timeout.ms",
    "default.api.timeout.ms": "api.timeout.ms",
    "delivery.timeout.ms": "message.timeout.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.location": "ssl.certificate.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
# Understood by producers and consumers that stand on the client, or without meaning here.
HARMLESS_PREFIXES = ("ssl.truststore.type", "ssl.keystore.type", "ssl.protocol", "ssl.enabled.protocols")
KEYSTORES = (".jks", ".p12", ".pfx")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """How a connection is encrypted and whom it trusts."""

    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = None
    ca_pem: str | None = None
    certificate_pem: str | None = None
    key_pem: str | None = None
    verify_certificate: bool = True
    verify_host: bool = True


@dataclass(frozen=True, slots=True)
class SaslOptions:
    """Who the client says it is."""

    mechanism: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a client, parsed."""

    bootstrap: tuple[Address, ...]
    client_id: str = "millstream"
    tls: TlsOptions | None = None
    sasl: SaslOptions | None = None
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS
    transaction_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_ms_max: int = 1_000
    metadata_age_ms_max: int = 300_000
    response_bytes_max: int = 100_000_000
    unknown: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Options:
        """Read options from strings, or from what people write for them; BadOption says which one makes no sense."""
        left = {SYNONYMS.get(name, name): text_of(value) for name, value in given.items() if value is not None}

        def integer(name: str, default: int) -> int:
            text = left.pop(name, str(default))
            try:
                value = int(text)
            except ValueError:
                raise BadOption(f"{name} must be a whole number, not {text!r}") from None
            if value < 0:
                raise BadOption(f"{name} must not be negative, but is {value}")
            return value

        protocol = left.pop("security.protocol", "plaintext").lower()
        if protocol not in PROTOCOLS:
            raise BadOption(f"security.protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
        # Who says how long any call may take means writes too, unless more is said.
        said = "api.timeout.ms" in left
        api_timeout_ms = integer("api.timeout.ms", 60_000)
        delivery_timeout_ms = integer("message.timeout.ms", api_timeout_ms if said else DELIVERY_TIMEOUT_MS)
        options = cls(
            bootstrap=parse_addresses(left.pop("bootstrap.servers", "")),
            client_id=left.pop("client.id", "millstream"),
            tls=_parse_tls(left) if protocol.endswith("ssl") else None,
            sasl=_parse_sasl(left) if protocol.startswith("sasl") else None,
            connect_timeout_ms=integer("socket.connection.setup.timeout.ms", 10_000),
            request_timeout_ms=integer("socket.timeout.ms", 30_000),
            api_timeout_ms=api_timeout_ms,
            delivery_timeout_ms=delivery_timeout_ms or NO_END_MS,
            transaction_timeout_ms=integer("transaction.timeout.ms", 60_000),
            retry_backoff_ms=integer("retry.backoff.ms", 100),
            retry_backoff_ms_max=integer("retry.backoff.max.ms", 1_000),
            metadata_age_ms_max=integer("metadata.max.age.ms", 300_000),
            response_bytes_max=integer("receive.message.max.bytes", 100_000_000),
            unknown=tuple(sorted(left)),
        )
        for name in options.unknown:
            if name.startswith(("ssl.", "sasl.")) and not name.startswith(HARMLESS_PREFIXES):
                hint = "" if protocol != "plaintext" else ", or security.protocol is missing"
                raise BadOption(f"{name} is not understood by this client{hint}")
        return options


def options_from(bootstrap: Bootstrap) -> dict[str, str]:
    """The options as texts, from whatever names the cluster."""
    if isinstance(bootstrap, str):
        return {"bootstrap.servers": bootstrap}
    if isinstance(bootstrap, Mapping):
        return {name: text_of(value) for name, value in bootstrap.items() if value is not None}
    return {"bootstrap.servers": ",".join(bootstrap)}


def text_of(value: object) -> str:
    """An option as it would stand in a file: true for True, and commas between several."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(text_of, value)) if isinstance(value, list | tuple) else str(value)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """`host:port,host:port`; the port is 9092 where it is left out, `[::1]:9092` is IPv6."""
    addresses = tuple(parse_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise BadOption("bootstrap.servers is empty: name at least one broker, such as localhost:9092")
    return addresses


def parse_address(text: str) -> Address:
    # librdkafka and old tools allow a scheme in front: PLAINTEXT://host:port.
    bare = text.rpartition("//")[2]
    host, colon, port = bare.rpartition(":")
    if not colon or bare.endswith("]") or (bare.count(":") > 1 and not bare.startswith("[")):
        host, port = bare, str(DEFAULT_PORT)
    host = host.strip("[]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadOption(f"{text!r} is not a broker's address: write host:port")
    return Address(host, int(port))


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BadOption(f"{name} must be true or false, not {text!r}")
    return text.lower() == "true"


def _parse_tls(left: dict[str, str]) -> TlsOptions:
    identification = left.pop("ssl.endpoint.identification.algorithm", "https").lower()
    if identification not in ("https", "none", ""):
        raise BadOption(f"ssl.endpoint.identification.algorithm must be https or none, not {identification!r}")
    _refuse_keystores(left)
    return TlsOptions(
        ca_location=left.pop("ssl.ca.location", None),
        certificate_location=left.pop("ssl.certificate.location", None),
        key_location=left.pop("ssl.key.location", None),
        key_password=left.pop("ssl.key.password", None),
        ca_pem=left.pop("ssl.ca.pem", None),
        certificate_pem=left.pop("ssl.certificate.pem", None),
        key_pem=left.pop("ssl.key.pem", None),
        verify_certificate=_boolean(
            "enable.ssl.certificate.verification", left.pop("enable.ssl.certificate.verification", "true")
        ),
        verify_host=identification == "https",
    )


def _refuse_keystores(left: dict[str, str]) -> None:
    """Java's own files, which only Java reads: by their names, by the type that is said, or by having a password."""
    for store, location in (("truststore", "ssl.ca.location"), ("keystore", "ssl.certificate.location")):
        where = left.get(location, "")
        kind = left.pop(f"ssl.{store}.type", "").upper()
        password = left.pop(f"ssl.{store}.password", None)
        if where.endswith(KEYSTORES) or kind not in ("", "PEM") or (password is not None and kind != "PEM"):
            what = where or f"the {store}"
            raise BadOption(f"{what} is a Java keystore: this client reads PEM ({location}, or ssl.{store}.type=PEM)")


def _parse_sasl(left: dict[str, str]) -> SaslOptions:
    mechanism = left.pop("sasl.mechanisms", "PLAIN").upper()
    if mechanism not in MECHANISMS:
        raise BadOption(f"sasl.mechanisms must be one of {', '.join(MECHANISMS)}, not {mechanism!r}")
    username, password = left.pop("sasl.username", None), left.pop("sasl.password", None)
    jaas = left.pop("sasl.jaas.config", None)
    if jaas is not None and username is None:
        username, password = _parse_jaas(jaas)
    if username is None or password is None:
        raise BadOption(f"sasl.username and sasl.password are needed for {mechanism}")
    return SaslOptions(mechanism, username, password)


def _parse_jaas(text: str) -> tuple[str | None, str | None]:
    """Java's `org…PlainLoginModule required username="u" password="p";`, in quotes of either kind."""
    import re

    quoted = re.findall(r"""(\w+)\s*=\s*(["'])((?:\\.|(?!\2).)*)\2""", text)
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, _, value in quoted}
    return found.get("username"), found.get("password")
