"""Real clients as decoders: each receives every frame as the answer to one call.

A client runs behind its adapter (docs/reference/adapters.md), connected to a mock cluster with one
broker that serves one version of the API, through an ``AnswerProxy``. A new client is made for each
frame, so that frames do not affect each other. A process that hangs or dies is restarted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

import kproto
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.schema.versions import Versions
from kspec.answers import Answer
from kspec.clientfuzz.decoders.calls import CALLS
from kspec.clientfuzz.decoders.memory import Memory, is_out_of_memory
from kspec.clientfuzz.decoders.proxy import AnswerProxy
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample
from kspec.error_kinds import Failure
from kspec.errors import AdapterError, AdapterFault
from kspec.runner.adapters import ANSWER_SECONDS, ProcessAdapter
from kspec.runner.install import Launch
from kspec.vectors.frames import CORRELATION_ID
from mockbroker import MockCluster

__all__ = ["ClientDecoder"]

TIMEOUT_MS: Final = 500
_OF_THE_CLIENT: Final = frozenset({"decode-error", "disconnected"})
_TOPICS: Final = ("foo:2:1",)
_HIDDEN: Final = {75: None}
"""DescribeTopicPartitions is not served, as some clients would use it instead of Metadata."""


class ClientDecoder:
    """``label`` names the client in verdicts, such as ``client:kafkajs``. ``seconds`` is the time
    for a frame after which it counts as hung."""

    def __init__(
        self,
        label: str,
        launch: Launch,
        api_key: int,
        version: int,
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.name = f"client:{label}"
        self._launch = launch
        self._seconds = seconds
        self._sample = CALLS[api_key]
        self._api = api_key, version
        self._dialect = kproto.dialect("kafka")
        self._runner = asyncio.Runner()
        self._between = AnswerProxy(api_key, version)
        self._mock: MockCluster | None = None
        self._adapter: ProcessAdapter | None = None
        self._memory: Memory | None = None
        self._bootstrap = ""
        self._runner.run(self._start())

    async def _start(self) -> None:
        port = await self._between.start()
        api_key, version = self._api
        self._mock = MockCluster(
            brokers=1,
            topics=_TOPICS,
            advertise=("127.0.0.1", port),
            apis={**_HIDDEN, api_key: Versions(version, version)},
        )
        await self._mock.start()
        host, _, its_port = self._mock.addresses[1].rpartition(":")
        self._between.to(host, int(its_port))
        self._bootstrap = f"127.0.0.1:{port}"

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        return [self._runner.run(self._judge(sample)) for sample in samples]

    def close(self) -> None:
        try:
            self._runner.run(self._stop())
        finally:
            self._runner.close()

    async def _stop(self) -> None:
        await self._end()
        await self._between.stop()
        if self._mock is not None:
            await self._mock.stop()

    async def _judge(self, sample: Sample) -> Verdict:
        if (sample.api_key, sample.version) != self._api or sample.direction != "response":
            return Verdict("not asked", text=f"only {self._api} is played")
        self._between.frame = sample.frame
        before = self._between.given
        try:
            if self._adapter is None:
                launch = self._launch
                self._adapter = await ProcessAdapter.start(
                    launch.command, launch.cwd, launch.environment
                )
                self._memory = Memory(self._adapter.pid)
            async with asyncio.timeout(self._seconds):
                answer = await self._call(self._adapter)
        except TimeoutError:
            await self._end()
            return Verdict("hung", text=f"no answer in {self._seconds:g} s")
        except AdapterFault:
            await self._end()
            raise
        except AdapterError as error:
            await self._end()
            return Verdict("hung" if error.hung else "died", text=str(error)[:300])
        verdict = _verdict(answer, refusal=self._says_no(sample))
        if self._memory is not None and self._memory.has_grown():
            await self._end()
            return Verdict("swelled", text="its memory grows frame by frame")
        if self._between.given == before and verdict.outcome != "not asked":
            return Verdict("not asked", text=f"never sent the request: {verdict.text}"[:200])
        return verdict

    async def _end(self) -> None:
        if self._adapter is not None:
            await self._adapter.stop()
        self._adapter = None

    async def _call(self, adapter: ProcessAdapter) -> Answer:
        connect = {"bootstrap": self._bootstrap, "timeout_ms": TIMEOUT_MS, "client_id": "diff"}
        answer = await adapter.call("connect", connect)
        if answer.failure is None:
            answer = await adapter.call(self._sample.call, self._sample.arguments)
        await adapter.call("close", {})
        return answer

    def _says_no(self, sample: Sample) -> bool:
        """Return whether the answer as a whole is an error for anyone who can read it."""
        if sample.frame[4:8] != CORRELATION_ID.to_bytes(4, "big"):
            return False
        try:
            _, body = self._dialect.decode_response(
                sample.frame, api_key=sample.api_key, api_version=sample.version
            )
        except KprotoError:
            return False
        return bool(getattr(body, "error_code", 0))


def _verdict(answer: Answer, *, refusal: bool) -> Verdict:
    """Classify an error. For a frame that is a ``refusal``, an error is the right result; some
    clients retry until they time out."""
    if answer.unsupported is not None:
        return Verdict("not asked", text=answer.unsupported)
    failure = answer.failure or _of_all(answer)
    if failure is None:
        return Verdict("accepted", json.dumps(_plain(answer.result), sort_keys=True))
    if is_out_of_memory(str(failure)):
        return Verdict("died", text=str(failure)[:200])
    if refusal:
        return Verdict("accepted", "an error", str(failure)[:200])
    kinds = failure.kinds
    if "timeout" in kinds:
        return Verdict("gave up", text=str(failure)[:200])
    code = _kafka_code(failure)
    if code is not None and not kinds & _OF_THE_CLIENT:
        return Verdict("accepted", f"error {code}", str(failure)[:200])
    return Verdict("rejected", text=str(failure)[:200])


def _of_all(answer: Answer) -> Failure | None:
    """Return the failure that every partition has, for clients that report the call's failure that
    way."""
    found = list(answer.partitions.values())
    errors = {(each.error, each.code) for each in found if each is not None}
    return found[0] if found and None not in found and len(errors) == 1 else None


def _kafka_code(failure: Failure) -> int | None:
    """Return the first of Kafka's codes in the error or those it wraps."""
    found = (each.code for each in failure.chain())
    known = set(ErrorCode)
    return next((code for code in found if code is not None and code != -1 and code in known), None)


def _plain(value: Any) -> Any:
    """Return results without messages, since clients name the same error differently."""
    if isinstance(value, dict):
        if value.keys() >= {"error", "message"}:
            return f"error {value.get('code')}"
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
