"""The encryption side of a connection, from librdkafka's option names to an SSLContext."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

from millstream.client.errors import BadOption, TlsFailed

if TYPE_CHECKING:
    from millstream.client.options import TlsOptions


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Trust `ssl.ca.location` (a file or a directory of certificates), or the system's authorities without it."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.verify_host and options.verify_certificate
    if not options.verify_certificate:
        context.verify_mode = ssl.CERT_NONE
    try:
        if options.ca_location is not None:
            _trust(context, options.ca_location)
        if options.certificate_location is not None:
            context.load_cert_chain(options.certificate_location, options.key_location, options.key_password)
    except (OSError, ssl.SSLError) as error:
        raise TlsFailed(f"a certificate or key could not be read: {error}") from error
    return context


def _trust(context: ssl.SSLContext, location: str) -> None:
    if location.endswith((".jks", ".p12", ".pfx")):
        raise BadOption(f"{location} is a Java keystore: this client reads PEM files (ssl.ca.location)")
    if os.path.isdir(location):
        context.load_verify_locations(capath=location)
    else:
        context.load_verify_locations(cafile=location)
