"""TLS of listeners. A listener that needs it stops the start until TLS is served; without one these do nothing."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, CLASS, LIST, PASSWORD, STRING

SSL_ALLOW_DN_CHANGES = Setting(
    "ssl.allow.dn.changes",
    BOOLEAN,
    default=False,
    importance=Importance.LOW,
    implemented=False,
    doc="Whether a new certificate may have another name.",
)
SSL_ALLOW_SAN_CHANGES = Setting(
    "ssl.allow.san.changes",
    BOOLEAN,
    default=False,
    importance=Importance.LOW,
    implemented=False,
    doc="Whether a new certificate may lose alternative names.",
)
SSL_CIPHER_SUITES = Setting(
    "ssl.cipher.suites",
    LIST,
    default=(),
    live=Live.PER_BROKER,
    implemented=False,
    doc="The cipher suites on offer; empty for the library's own choice.",
)
SSL_CLIENT_AUTH = Setting(
    "ssl.client.auth",
    STRING,
    default="none",
    live=Live.PER_BROKER,
    one_of=("required", "requested", "none"),
    implemented=False,
    doc="Whether clients must show a certificate.",
)
SSL_ENABLED_PROTOCOLS = Setting(
    "ssl.enabled.protocols",
    LIST,
    default=("TLSv1.2", "TLSv1.3"),
    live=Live.PER_BROKER,
    implemented=False,
    doc="The versions of TLS on offer.",
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = Setting(
    "ssl.endpoint.identification.algorithm",
    STRING,
    default="https",
    live=Live.PER_BROKER,
    importance=Importance.LOW,
    implemented=False,
    doc="How a server's name is checked; empty for not at all.",
)
SSL_ENGINE_FACTORY_CLASS = Setting(
    "ssl.engine.factory.class",
    CLASS.optional,
    default=None,
    live=Live.PER_BROKER,
    importance=Importance.LOW,
    implemented=False,
    doc="A class that makes TLS engines.",
)
SSL_KEY_PASSWORD = Setting(
    "ssl.key.password",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The password of the private key.",
)
SSL_KEYMANAGER_ALGORITHM = Setting(
    "ssl.keymanager.algorithm",
    STRING,
    default="SunX509",
    live=Live.PER_BROKER,
    implemented=False,
    doc="Java's algorithm for key managers.",
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = Setting(
    "ssl.keystore.certificate.chain",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The certificate chain as PEM text.",
)
SSL_KEYSTORE_KEY = Setting(
    "ssl.keystore.key",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The private key as PEM text.",
)
SSL_KEYSTORE_LOCATION = Setting(
    "ssl.keystore.location",
    STRING.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The file with the certificate and private key.",
)
SSL_KEYSTORE_PASSWORD = Setting(
    "ssl.keystore.password",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The password of the key file.",
)
SSL_KEYSTORE_TYPE = Setting(
    "ssl.keystore.type",
    STRING,
    default="JKS",
    live=Live.PER_BROKER,
    implemented=False,
    doc="The format of the key file.",
)
SSL_PRINCIPAL_MAPPING_RULES = Setting(
    "ssl.principal.mapping.rules",
    STRING,
    default="DEFAULT",
    importance=Importance.LOW,
    implemented=False,
    doc="How a certificate's name becomes a principal.",
)
SSL_PROTOCOL = Setting(
    "ssl.protocol",
    STRING,
    default="TLSv1.3",
    live=Live.PER_BROKER,
    implemented=False,
    doc="The version of TLS to prefer.",
)
SSL_PROVIDER = Setting(
    "ssl.provider",
    STRING.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="Java's provider of TLS.",
)
SSL_SECURE_RANDOM_IMPLEMENTATION = Setting(
    "ssl.secure.random.implementation",
    STRING.optional,
    default=None,
    live=Live.PER_BROKER,
    importance=Importance.LOW,
    implemented=False,
    doc="Java's source of randomness.",
)
SSL_TRUSTMANAGER_ALGORITHM = Setting(
    "ssl.trustmanager.algorithm",
    STRING,
    default="PKIX",
    live=Live.PER_BROKER,
    implemented=False,
    doc="Java's algorithm for trust managers.",
)
SSL_TRUSTSTORE_CERTIFICATES = Setting(
    "ssl.truststore.certificates",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The trusted certificates as PEM text.",
)
SSL_TRUSTSTORE_LOCATION = Setting(
    "ssl.truststore.location",
    STRING.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The file with the trusted certificates.",
)
SSL_TRUSTSTORE_PASSWORD = Setting(
    "ssl.truststore.password",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The password of the file with trusted certificates.",
)
SSL_TRUSTSTORE_TYPE = Setting(
    "ssl.truststore.type",
    STRING,
    default="JKS",
    live=Live.PER_BROKER,
    implemented=False,
    doc="The format of the file with trusted certificates.",
)
