"""Certificates of TLS brokers and clients, good ones and bad ones, made once per process.

They need the package ``cryptography``. The files are PEM, in a folder that the process removes when
it ends.
"""

from __future__ import annotations

import atexit
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kproto.errors import AbsentError
from kspec.model import ClientTlsSpec, ServerCertificate, TlsSpec

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as missing:
    raise AbsentError("cases of TLS need the package cryptography") from missing

__all__ = ["client_files", "server_context", "use_certificate"]

_DAY: Final = timedelta(days=1)
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True)
class _Pair:
    """A certificate with its key, and those that lead from it to its root, which is left out."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: Sequence[x509.Certificate] = ()

    @property
    def certificates(self) -> bytes:
        held = (self.certificate, *self.chain)
        return b"".join(each.public_bytes(Encoding.PEM) for each in held)

    @property
    def private_key(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _issued(
    name: str,
    issuer: _Pair | None,
    *,
    is_ca: bool = False,
    days: tuple[int, int] = (-2, 30),
    names: Sequence[x509.GeneralName] = (),
    purpose: x509.ObjectIdentifier | None = None,
    chain: Sequence[x509.Certificate] = (),
) -> _Pair:
    """Issue a certificate that is valid between two days from now; without an issuer, by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = key if issuer is None else issuer.key
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
        .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        .add_extension(_usage(is_ca), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return _Pair(builder.sign(signer, SHA256()), key, chain)


def _usage(is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


@cache
def _folder() -> Path:
    folder = TemporaryDirectory(prefix="kspec-tls-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def _root(name: str) -> _Pair:
    return _issued(f"kspec {name} root", None, is_ca=True)


@cache
def _server(kind: ServerCertificate) -> _Pair:
    here: tuple[x509.GeneralName, ...] = (
        x509.DNSName("localhost"),
        x509.IPAddress(IPv4Address("127.0.0.1")),
    )
    purpose = ExtendedKeyUsageOID.SERVER_AUTH
    if kind == "intermediate":
        middle = _issued("kspec intermediate", _root("first"), is_ca=True)
        return _issued("broker", middle, names=here, purpose=purpose, chain=[middle.certificate])
    if kind == "other-ca":
        return _issued("broker", _root("second"), names=here, purpose=purpose)
    if kind == "other-host":
        elsewhere = (x509.DNSName("broker.elsewhere.example"),)
        return _issued("broker", _root("first"), names=elsewhere, purpose=purpose)
    if kind == "similar-host":
        similar = (x509.DNSName("127.0.0.1.example"), x509.DNSName("localhost.example"))
        return _issued("broker", _root("first"), names=similar, purpose=purpose)
    if kind == "address-only":
        here = here[1:]
    if kind == "client-only":
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH
    days = {"expired": (-20, -10), "not-yet-valid": (10, 20)}.get(kind, (-2, 30))
    return _issued("broker", _root("first"), names=here, purpose=purpose, days=days)


def _written(name: str, pair: _Pair) -> tuple[Path, Path]:
    certificate, key = _folder() / f"{name}.pem", _folder() / f"{name}.key"
    if not certificate.exists():
        certificate.write_bytes(pair.certificates)
        key.write_bytes(pair.private_key)
    return certificate, key


def server_context(spec: TlsSpec) -> ssl.SSLContext:
    """Return the context of every listener of a cluster."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if spec.version is not None:
        context.minimum_version = context.maximum_version = _VERSIONS[spec.version]
    if spec.client_certificate == "required":
        context.verify_mode = ssl.CERT_REQUIRED
    elif spec.client_certificate == "asked":
        context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(_written("root", _root("first"))[0])
    context.load_cert_chain(*_written(f"server-{spec.certificate}", _server(spec.certificate)))
    return context


def use_certificate(context: ssl.SSLContext, kind: ServerCertificate) -> None:
    """Use another certificate for the handshakes to come.

    Sessions are not resumed: clients would not see the certificate, and a restarted broker could
    not do it.
    """
    context.options |= ssl.OP_NO_TICKET
    context.load_cert_chain(*_written(f"server-{kind}", _server(kind)))


def client_files(spec: ClientTlsSpec) -> dict[str, str]:
    """Return the members of ``tls`` in ``connect``: the paths of PEM files."""
    found = {"ca": str(_written("root", _root("first"))[0])}
    if spec.certificate is not None:
        certificate, key = _written(f"client-{spec.certificate}", _client(spec.certificate))
        found |= {"certificate": str(certificate), "key": str(key)}
    return found


@cache
def _client(kind: str) -> _Pair:
    root = _root("second" if kind == "other-ca" else "first")
    return _issued("kspec client", root, purpose=ExtendedKeyUsageOID.CLIENT_AUTH)
