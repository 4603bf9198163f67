"""Brokers and clients with the certificates of ``kspec.runner.certificates``."""

from __future__ import annotations

import asyncio
import ssl
from typing import get_args

import pytest

from kspec.model import ClientTlsSpec, ServerCertificate, TlsSpec
from kspec.runner.certificates import client_files, server_context, use_certificate

REFUSED = {
    "expired": "expired",
    "not-yet-valid": "not yet valid",
    "other-host": "IP address mismatch|Hostname mismatch",
    "similar-host": "IP address mismatch|Hostname mismatch",
    "other-ca": "unable to get local issuer|self.signed",
    "client-only": "purpose",
}


async def handshake(server: ssl.SSLContext, spec: ClientTlsSpec) -> None:
    files = client_files(spec)
    client = ssl.create_default_context(cafile=files["ca"])
    if "certificate" in files:
        client.load_cert_chain(files["certificate"], files["key"])

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        try:
            assert await reader.read() == b"hello"
        finally:
            writer.close()


@pytest.mark.parametrize("kind", get_args(ServerCertificate))
async def test_a_client_accepts_the_good_certificates_alone(kind: ServerCertificate) -> None:
    server = server_context(TlsSpec(certificate=kind))
    if kind not in REFUSED:
        await handshake(server, ClientTlsSpec())
    else:
        with pytest.raises(ssl.SSLCertVerificationError, match=REFUSED[kind]):
            await handshake(server, ClientTlsSpec())


async def test_a_required_certificate_has_to_be_trusted() -> None:
    server = server_context(TlsSpec(client_certificate="required", version="1.2"))
    await handshake(server, ClientTlsSpec(certificate="valid"))
    for spec in (ClientTlsSpec(), ClientTlsSpec(certificate="other-ca")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await handshake(server, spec)
    asked = server_context(TlsSpec(client_certificate="asked"))
    await handshake(asked, ClientTlsSpec())


async def test_another_certificate_from_the_next_handshake_on() -> None:
    server = server_context(TlsSpec())
    await handshake(server, ClientTlsSpec())
    use_certificate(server, "other-ca")
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(server, ClientTlsSpec())
