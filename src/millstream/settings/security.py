"""Who may do what: authorizers, principals, tokens. None is enforced yet, so those that protect stop the start."""

from __future__ import annotations

from millstream.settings.declare import IfIgnored, Importance, Live, Setting
from millstream.settings.kinds import CLASS, DAY_MS, HOUR_MS, LIST, LONG, PASSWORD, STRING

AUTHORIZER_CLASS_NAME = Setting(
    "authorizer.class.name",
    STRING,
    default="",
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="The class that decides who may do what.",
)
PRINCIPAL_BUILDER_CLASS = Setting(
    "principal.builder.class",
    CLASS,
    default="org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    live=Live.PER_BROKER,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="The class that says who a connection is.",
)
DELEGATION_TOKEN_SECRET_KEY = Setting(
    "delegation.token.secret.key",
    PASSWORD.optional,
    default=None,
    implemented=False,
    doc="The secret that signs delegation tokens.",
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = Setting(
    "delegation.token.max.lifetime.ms",
    LONG,
    default=7 * DAY_MS,
    at_least=1,
    implemented=False,
    doc="How long a delegation token can live at most.",
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = Setting(
    "delegation.token.expiry.time.ms",
    LONG,
    default=DAY_MS,
    at_least=1,
    implemented=False,
    doc="How long a delegation token lives unless it is renewed.",
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = Setting(
    "delegation.token.expiry.check.interval.ms",
    LONG,
    default=HOUR_MS,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="How often expired delegation tokens are removed.",
)
CONNECTIONS_MAX_REAUTH_MS = Setting(
    "connections.max.reauth.ms", LONG, default=0, implemented=False, doc="How long a login is good for; 0 for ever."
)
SECURITY_PROVIDERS = Setting(
    "security.providers",
    STRING.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="Java security providers.",
)
CONFIG_PROVIDERS = Setting(
    "config.providers",
    LIST,
    default=(),
    live=Live.CLUSTER_WIDE,
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="Where values such as ${file:path:key} are looked up.",
)
