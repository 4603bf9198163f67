"""Defects about TLS."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link, LinkClosedError, TimedOutError

__all__: list[str] = []

_INSISTENT: Final = 120


@defect("accepts-any-certificate")
class AcceptsAnyCertificate(Client):
    """Does not check the broker's certificate at all."""

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        context = super().context(files)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


@defect("does-not-check-the-host-name")
class DoesNotCheckTheHostName(Client):
    """Accepts a certificate of another host if its authority is trusted."""

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        context = super().context(files)
        context.check_hostname = False
        return context


@defect("speaks-tls-1.2-alone")
class SpeaksTls12Alone(Client):
    """Offers no version of TLS but 1.2."""

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        context = super().context(files)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context


@defect("speaks-tls-1.3-alone")
class SpeaksTls13Alone(Client):
    """Offers no version of TLS but 1.3."""

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        context = super().context(files)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context


@defect("sends-no-certificate")
class SendsNoCertificate(Client):
    """Does not use the certificate that it was given."""

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        return super().context({"ca": files["ca"]})


@defect("handshakes-without-pause")
class HandshakesWithoutPause(Client):
    """Repeats a handshake that failed at once, over and over."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        for _ in range(_INSISTENT):
            with suppress(LinkClosedError):
                return await super().link_to(address)
        return await super().link_to(address)


@defect("falls-back-to-plaintext")
class FallsBackToPlaintext(Client):
    """Connects without TLS if the broker does not speak it."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        try:
            return await super().link_to(address)
        except (LinkClosedError, TimedOutError):
            self.tls = None
            return await super().link_to(address)


@defect("knows-no-intermediates")
class KnowsNoIntermediates(Link):
    """Refuses a certificate that its root has not issued itself."""

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        await super().open(host, port, tls)
        peer = self._writer.get_extra_info("peercert") if self._writer is not None else None
        issuer = dict(pair for names in (peer or {}).get("issuer", ()) for pair in names)
        if "intermediate" in issuer.get("commonName", ""):
            await self.close()
            raise LinkClosedError("the issuer is not trusted")


@defect("trusts-a-broker-for-good")
class TrustsABrokerForGood(Client):
    """Checks the certificate of an address with its first connection only."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = await super().link_to(address)
        if self.tls is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        return link


@defect("authenticates-in-plaintext")
class AuthenticatesInPlaintext(Client):
    """Connects without TLS if it has a password to send."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        if self.sasl is not None:
            self.tls = None


@defect("ends-with-its-certificate")
class EndsWithItsCertificate(Client):
    """Accepts no other certificate of a broker than the one that it saw first."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.__dict__.pop("seen", None)

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = await super().link_to(address)
        number = link.peer_certificate.get("serialNumber")
        if number != self.__dict__.setdefault("seen", number):
            await link.close()
            raise LinkClosedError("the broker has another certificate")
        return link


class _Checking(Link):
    host = ""

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.host = host
        await super().open(host, port, tls)

    async def negotiate(self) -> None:
        if self._writer is not None:
            certificate = self._writer.get_extra_info("peercert")
            names = [name for _, name in (certificate or {}).get("subjectAltName", ())]
            if certificate is not None and not self.is_for(names):
                raise LinkClosedError("the certificate has another name")
        await super().negotiate()

    def is_for(self, names: Sequence[str]) -> bool:
        return self.host in names


@defect("finds-the-host-within-a-name")
class FindsTheHostWithinAName(DoesNotCheckTheHostName):
    """Accepts a certificate with a name that contains the host's."""

    class Within(_Checking):
        def is_for(self, names: Sequence[str]) -> bool:
            return any(self.host in name for name in names)

    link: type[Link] = Within


@defect("checks-the-address")
class ChecksTheAddress(DoesNotCheckTheHostName):
    """Compares a certificate with the address that it connected to, not with the host's name."""

    class Resolved(_Checking):
        def is_for(self, names: Sequence[str]) -> bool:
            assert self._writer is not None
            address = self._writer.get_extra_info("peername")[0]
            return super().is_for(names) or address in names

    link: type[Link] = Resolved
