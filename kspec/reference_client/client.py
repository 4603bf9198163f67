"""The reference client: its rules, driven by the adapter protocol.

Every error is reported as what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kproto.client.errors import SaslExchangeError
from kproto.errors import DecodeError, EncodeError, RemoteProtocolError, UnsupportedVersionError
from kspec.reference_client import calls
from kspec.reference_client.admin_calls import ADMIN_CALLS
from kspec.reference_client.admin_rules import AdminRules
from kspec.reference_client.cluster_calls import CLUSTER_CALLS
from kspec.reference_client.consumer import Consumer, Interrupted
from kspec.reference_client.consumer_group_member import ConsumerGroupMember
from kspec.reference_client.data_calls import DATA_CALLS, DataClients
from kspec.reference_client.link import BrokerError
from kspec.reference_client.membership import Membership
from kspec.reference_client.processor import Processor
from kspec.reference_client.producer import Producer
from kspec.reference_client.rules import outcome
from kspec.reference_client.share_consumer import ShareConsumer
from kspec.reference_client.share_group_member import ShareGroupMember
from kspec.reference_client.streams_group_member import StreamsGroupMember
from kspec.reference_client.telemetry import Telemetry
from kspec.reference_client.transactional_producer import TransactionalProducer

__all__ = ["Client"]

_CALLS: Final = {**calls.CALLS, **ADMIN_CALLS, **CLUSTER_CALLS}
_DATA_SECONDS: Final = 9.0
"""Longer than a producer may try, and than a case polls."""


class Client(AdminRules):
    """``call`` takes and returns the content of a line of the adapter protocol."""

    name: ClassVar[str] = "reference"
    producer: ClassVar[type[Producer]] = Producer
    transactional: ClassVar[type[TransactionalProducer]] = TransactionalProducer
    consumer: ClassVar[type[Consumer]] = Consumer
    membership: ClassVar[type[Membership]] = Membership
    consumer_group_member: ClassVar[type[ConsumerGroupMember]] = ConsumerGroupMember
    streams_group_member: ClassVar[type[StreamsGroupMember]] = StreamsGroupMember
    share_group_member: ClassVar[type[ShareGroupMember]] = ShareGroupMember
    share_consumer: ClassVar[type[ShareConsumer]] = ShareConsumer
    telemetry: ClassVar[type[Telemetry]] = Telemetry
    processor: ClassVar[type[Processor]] = Processor
    data: DataClients | None = None

    def greeting(self) -> dict[str, Any]:
        return {
            "client": self.name,
            "version": "1",
            "language": "python",
            "connect": ["tls", "oauthbearer"],
            "records": ["headers"],
            "capabilities": sorted({*calls.CALLS, *ADMIN_CALLS, *CLUSTER_CALLS, *DATA_CALLS}),
        }

    def new_producer(self, options: Mapping[str, Any]) -> Producer:
        made = self.transactional if options.get("transactional_id") else self.producer
        return made(self, options)

    def new_consumer(self, options: Mapping[str, Any]) -> Consumer:
        if options.get("protocol") == "share":
            return self.share_consumer(self, options, self.share_group_member(self, options))
        kinds: dict[str, type[Membership]] = {
            "classic": self.membership,
            "consumer": self.consumer_group_member,
            "streams": self.streams_group_member,
        }
        made = kinds[options.get("protocol", "classic")]
        member = made(self, options) if options.get("group") else None
        return self.consumer(self, options, member)

    async def close(self) -> None:
        if self.data is not None:
            data, self.data = self.data, None
            await data.abandon()
        await super().close()

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call. Never raises for the behaviour of a broker or the network."""
        try:
            if op == "connect":
                self.connect(arguments)
                producer, consumer = arguments.get("producer", {}), arguments.get("consumer", {})
                self.data = DataClients(
                    lambda more: self.new_producer({**producer, **more}),
                    lambda more: self.new_consumer({**consumer, **more}),
                    lambda role: self.telemetry(self, role),
                    self.processor,
                )
                return self.success(None)
            if op == "close":
                await self.close()
                return self.success(None)
            if op == "together":
                several = [dict(each) for each in arguments["calls"]]
                wanted = [self.call(each.pop("op"), each) for each in several]
                return self.success(list(await asyncio.gather(*wanted)))
            if op in DATA_CALLS and self.data is not None:
                async with asyncio.timeout(_DATA_SECONDS):
                    return self.success(await DATA_CALLS[op](self.data, arguments))
            perform: Any = _CALLS.get(op)
            if perform is None:
                return {"unsupported": f"no call for {op!r}"}
            async with asyncio.timeout((8 if self.least_attempts else 2) * self.timeout):
                return self.success(await perform(self, arguments))
        except Exception as error:
            return self.failure(error)

    def success(self, result: Any) -> dict[str, Any]:
        return {"ok": True, "result": result}

    def described_errors(self, errors: Sequence[Exception]) -> list[dict[str, Any]]:
        described = [self.failure(each) for each in errors]
        return [{key: each[key] for key in each if key != "ok"} for each in described]

    def failure(self, error: Exception) -> dict[str, Any]:
        """Report an error with its kind."""
        if isinstance(error, Interrupted):
            return {**self.failure(error.error), "records": error.records}
        if isinstance(error, BrokerError):
            return {"ok": False, **outcome(error.code, error.message)}
        kinds: tuple[tuple[type[Exception], str], ...] = (
            (UnsupportedVersionError, "unsupported-version"),
            (TimeoutError, "timeout"),
            (RemoteProtocolError, "decode-error"),
            (DecodeError, "decode-error"),
            (SaslExchangeError, "authentication"),
            (EncodeError, "other"),
            (ConnectionError, "disconnected"),
        )
        kind = next((kind for each, kind in kinds if isinstance(error, each)), None)
        reply = {"ok": False, "error": type(error).__name__, "code": None, "message": str(error)}
        return reply if kind is None else {**reply, "kind": kind}
