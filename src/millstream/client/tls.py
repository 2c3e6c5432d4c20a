"""The encryption side of a connection, from librdkafka's option names to an SSLContext.

Certificates and keys are PEM, in files or as texts in the options themselves. A text may have lost its line ends on the
way through a file of properties, so they are made anew.
"""

from __future__ import annotations

import os
import re
import ssl
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from millstream.client.errors import BadOption, TlsFailed
from millstream.client.options import KEYSTORES

if TYPE_CHECKING:
    from millstream.client.options import TlsOptions

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_LENGTH: Final = 64


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Trust `ssl.ca.location` (a file or a directory of certificates) and `ssl.ca.pem`; the system's authorities
    without them."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.verify_host and options.verify_certificate
    if not options.verify_certificate:
        context.verify_mode = ssl.CERT_NONE
    if options.ca_location is not None:
        _trust(context, options.ca_location)
    if options.ca_pem is not None:
        _trust_text(context, options.ca_pem)
    if options.certificate_location is not None or options.certificate_pem is not None:
        _show(context, options)
    return context


def _trust(context: ssl.SSLContext, location: str) -> None:
    if location.endswith(KEYSTORES):
        raise BadOption(f"{location} is a Java keystore: this client reads PEM files (ssl.ca.location)")
    try:
        if os.path.isdir(location):
            context.load_verify_locations(capath=location)
        else:
            context.load_verify_locations(cafile=location)
    except (OSError, ssl.SSLError) as error:
        raise TlsFailed(f"the certificates in {location} could not be read: {error}") from error


def _trust_text(context: ssl.SSLContext, text: str) -> None:
    try:
        context.load_verify_locations(cadata=_lines_made_anew(text, "ssl.ca.pem"))
    except (ValueError, ssl.SSLError) as error:
        raise TlsFailed(f"the certificates in ssl.ca.pem could not be read: {error}") from error


def _show(context: ssl.SSLContext, options: TlsOptions) -> None:
    """Our own certificate. Python reads it from files only, so texts are put into some that are gone at once."""
    with TemporaryDirectory(prefix="millstream-") as folder:
        certificate = _file(folder, "ssl.certificate.pem", options.certificate_pem) or options.certificate_location
        key = _file(folder, "ssl.key.pem", options.key_pem) or options.key_location
        assert certificate is not None
        try:
            # With None for a password OpenSSL would ask for one in the terminal.
            context.load_cert_chain(certificate, key, options.key_password or "")
        except (OSError, ssl.SSLError) as error:
            given = [os.path.basename(path) if path.startswith(folder) else path for path in (certificate, key) if path]
            raise TlsFailed(f"the certificate or key in {' and '.join(given)} could not be read: {error}") from error


def _file(folder: str, option: str, text: str | None) -> str | None:
    if text is None:
        return None
    path = os.path.join(folder, option)
    with open(path, "w") as file:
        file.write(_lines_made_anew(text, option))
    return path


def _lines_made_anew(text: str, option: str) -> str:
    blocks = []
    for kind, body in _BLOCK.findall(text.replace("\\n", "\n")):
        if ":" in body:
            # An old form of encrypted keys has headers, whose lines count.
            lines = [body.strip("\n")]
        else:
            packed = "".join(body.split())
            lines = [packed[at : at + _LINE_LENGTH] for at in range(0, len(packed), _LINE_LENGTH)]
        blocks.append("\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]))
    if not blocks:
        raise BadOption(f"{option} is no PEM: it has no line -----BEGIN ...-----")
    return "".join(blocks)
