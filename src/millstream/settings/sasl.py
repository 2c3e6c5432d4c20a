"""SASL of listeners. A listener that needs it stops the start until SASL is served; without one these do nothing."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, CLASS, DOUBLE, HOUR_MS, INT, KIB, LIST, LONG, PASSWORD, SHORT, STRING

SASL_ENABLED_MECHANISMS = Setting(
    "sasl.enabled.mechanisms",
    LIST,
    default=("GSSAPI",),
    live=Live.PER_BROKER,
    implemented=False,
    doc="The mechanisms on offer.",
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = Setting(
    "sasl.mechanism.inter.broker.protocol",
    STRING,
    default="GSSAPI",
    live=Live.PER_BROKER,
    implemented=False,
    doc="The mechanism between brokers.",
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = Setting(
    "sasl.mechanism.controller.protocol",
    STRING,
    default="GSSAPI",
    importance=Importance.HIGH,
    implemented=False,
    doc="The mechanism between brokers and controllers.",
)
SASL_JAAS_CONFIG = Setting(
    "sasl.jaas.config",
    PASSWORD.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The login module and its options, in JAAS's own syntax.",
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = Setting(
    "sasl.server.callback.handler.class",
    CLASS.optional,
    default=None,
    implemented=False,
    doc="The class that checks logins.",
)
SASL_SERVER_MAX_RECEIVE_SIZE = Setting(
    "sasl.server.max.receive.size", INT, default=512 * KIB, implemented=False, doc="The largest message of a login."
)
SASL_CLIENT_CALLBACK_HANDLER_CLASS = Setting(
    "sasl.client.callback.handler.class",
    CLASS.optional,
    default=None,
    implemented=False,
    doc="The class that supplies credentials where the broker is the client.",
)
SASL_LOGIN_CALLBACK_HANDLER_CLASS = Setting(
    "sasl.login.callback.handler.class",
    CLASS.optional,
    default=None,
    implemented=False,
    doc="The class that supplies credentials to a login module.",
)
SASL_LOGIN_CLASS = Setting(
    "sasl.login.class", CLASS.optional, default=None, implemented=False, doc="The class that logs in."
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = Setting(
    "sasl.login.connect.timeout.ms",
    INT.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    doc="How long connecting to a login service may take.",
)
SASL_LOGIN_READ_TIMEOUT_MS = Setting(
    "sasl.login.read.timeout.ms",
    INT.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    doc="How long a login service's answer may take.",
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = Setting(
    "sasl.login.refresh.buffer.seconds",
    SHORT,
    default=300,
    live=Live.PER_BROKER,
    implemented=False,
    doc="How long before its end a credential is renewed at the latest.",
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = Setting(
    "sasl.login.refresh.min.period.seconds",
    SHORT,
    default=60,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The least time between two renewals of a credential.",
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = Setting(
    "sasl.login.refresh.window.factor",
    DOUBLE,
    default=0.8,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The part of a credential's life after which it is renewed.",
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = Setting(
    "sasl.login.refresh.window.jitter",
    DOUBLE,
    default=0.05,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The random part of the time of renewal.",
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = Setting(
    "sasl.login.retry.backoff.max.ms",
    LONG,
    default=10_000,
    importance=Importance.LOW,
    implemented=False,
    doc="The longest pause between attempts to log in.",
)
SASL_LOGIN_RETRY_BACKOFF_MS = Setting(
    "sasl.login.retry.backoff.ms",
    LONG,
    default=100,
    importance=Importance.LOW,
    implemented=False,
    doc="The first pause between attempts to log in.",
)
SASL_KERBEROS_KINIT_CMD = Setting(
    "sasl.kerberos.kinit.cmd",
    STRING,
    default="/usr/bin/kinit",
    live=Live.PER_BROKER,
    implemented=False,
    doc="Where Kerberos's kinit is.",
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = Setting(
    "sasl.kerberos.min.time.before.relogin",
    LONG,
    default=60_000,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The least time between two Kerberos logins.",
)
SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES = Setting(
    "sasl.kerberos.principal.to.local.rules",
    LIST,
    default=("DEFAULT",),
    live=Live.PER_BROKER,
    implemented=False,
    doc="How a Kerberos principal becomes a user name.",
)
SASL_KERBEROS_SERVICE_NAME = Setting(
    "sasl.kerberos.service.name",
    STRING.optional,
    default=None,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The broker's Kerberos service.",
)
SASL_KERBEROS_TICKET_RENEW_JITTER = Setting(
    "sasl.kerberos.ticket.renew.jitter",
    DOUBLE,
    default=0.05,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The random part of a ticket's time of renewal.",
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = Setting(
    "sasl.kerberos.ticket.renew.window.factor",
    DOUBLE,
    default=0.8,
    live=Live.PER_BROKER,
    implemented=False,
    doc="The part of a ticket's life after which it is renewed.",
)
SASL_OAUTHBEARER_ASSERTION_ALGORITHM = Setting(
    "sasl.oauthbearer.assertion.algorithm",
    STRING,
    default="RS256",
    one_of=("ES256", "RS256"),
    any_case=True,
    implemented=False,
    doc="How a JWT assertion is signed.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_AUD = Setting(
    "sasl.oauthbearer.assertion.claim.aud",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The audience that a JWT assertion names.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_EXP_SECONDS = Setting(
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    INT,
    default=300,
    at_least=0,
    at_most=86_400,
    importance=Importance.LOW,
    implemented=False,
    doc="How long a JWT assertion is good for.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_ISS = Setting(
    "sasl.oauthbearer.assertion.claim.iss",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The issuer that a JWT assertion names.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_JTI_INCLUDE = Setting(
    "sasl.oauthbearer.assertion.claim.jti.include",
    BOOLEAN,
    default=False,
    implemented=False,
    doc="Whether a JWT assertion has an id of its own.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_NBF_SECONDS = Setting(
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    INT,
    default=60,
    at_least=0,
    at_most=3_600,
    importance=Importance.LOW,
    implemented=False,
    doc="How far back a JWT assertion starts to be good.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_SUB = Setting(
    "sasl.oauthbearer.assertion.claim.sub",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The subject that a JWT assertion names.",
)
SASL_OAUTHBEARER_ASSERTION_FILE = Setting(
    "sasl.oauthbearer.assertion.file",
    STRING.optional,
    default=None,
    implemented=False,
    doc="A file with a ready JWT assertion.",
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_FILE = Setting(
    "sasl.oauthbearer.assertion.private.key.file",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The file with the key that signs a JWT assertion.",
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE = Setting(
    "sasl.oauthbearer.assertion.private.key.passphrase",
    PASSWORD.optional,
    default=None,
    implemented=False,
    doc="The password of the key that signs a JWT assertion.",
)
SASL_OAUTHBEARER_ASSERTION_TEMPLATE_FILE = Setting(
    "sasl.oauthbearer.assertion.template.file",
    STRING.optional,
    default=None,
    implemented=False,
    doc="A file with fixed parts of a JWT assertion.",
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID = Setting(
    "sasl.oauthbearer.client.credentials.client.id",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The client id for the OAuth client-credentials grant.",
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET = Setting(
    "sasl.oauthbearer.client.credentials.client.secret",
    PASSWORD.optional,
    default=None,
    implemented=False,
    doc="The secret for the OAuth client-credentials grant.",
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = Setting(
    "sasl.oauthbearer.clock.skew.seconds",
    INT,
    default=30,
    importance=Importance.LOW,
    implemented=False,
    doc="The difference of clocks that is forgiven when a token is checked.",
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = Setting(
    "sasl.oauthbearer.expected.audience",
    LIST,
    default=(),
    importance=Importance.HIGH,
    implemented=False,
    doc="The audiences that a token may name.",
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = Setting(
    "sasl.oauthbearer.expected.issuer",
    STRING.optional,
    default=None,
    importance=Importance.HIGH,
    implemented=False,
    doc="The issuer that a token must name.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = Setting(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    LONG,
    default=HOUR_MS,
    importance=Importance.LOW,
    implemented=False,
    doc="How often the keys of the token issuer are read again.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = Setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    LONG,
    default=10_000,
    importance=Importance.LOW,
    implemented=False,
    doc="The longest pause between attempts to read the issuer's keys.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = Setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    LONG,
    default=100,
    importance=Importance.LOW,
    implemented=False,
    doc="The first pause between attempts to read the issuer's keys.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = Setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    STRING.optional,
    default=None,
    implemented=False,
    doc="Where the issuer's keys are.",
)
SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS = Setting(
    "sasl.oauthbearer.jwt.retriever.class",
    CLASS,
    default="org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    implemented=False,
    doc="The class that gets tokens.",
)
SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS = Setting(
    "sasl.oauthbearer.jwt.validator.class",
    CLASS,
    default="org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    implemented=False,
    doc="The class that checks tokens.",
)
SASL_OAUTHBEARER_SCOPE = Setting(
    "sasl.oauthbearer.scope",
    STRING.optional,
    default=None,
    implemented=False,
    doc="The scope that is asked for with a token.",
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = Setting(
    "sasl.oauthbearer.scope.claim.name",
    STRING,
    default="scope",
    importance=Importance.LOW,
    implemented=False,
    doc="The claim of a token that holds its scope.",
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = Setting(
    "sasl.oauthbearer.sub.claim.name",
    STRING,
    default="sub",
    importance=Importance.LOW,
    implemented=False,
    doc="The claim of a token that holds its subject.",
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = Setting(
    "sasl.oauthbearer.token.endpoint.url",
    STRING.optional,
    default=None,
    implemented=False,
    doc="Where tokens come from.",
)
