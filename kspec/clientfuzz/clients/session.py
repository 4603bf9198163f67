"""One client process, which plays case after case and is replaced only if it ends or hangs.

Each case has its own mock cluster, on which a fault rule alters the answer. After the call the rule
is removed, and the same client, or else a new one in the same process, must give the right answer
on the now healthy cluster. The right answers are recorded first, without any fault.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kproto import Dialect
from kproto.journal import Entry
from kproto.messages import GetTelemetrySubscriptionsResponse, PushTelemetryResponse
from kproto.schema.versions import Versions
from kspec.answers import Answer
from kspec.clientfuzz.clients.case import (
    ARGUMENTS,
    BROKERS,
    PROBES,
    REASSIGNED,
    TELEMETRY,
    TOPICS,
    Case,
)
from kspec.clientfuzz.clients.judge import (
    IDLE_SHARE,
    Limits,
    Observation,
    Outcome,
    is_healthy,
    judge,
)
from kspec.clientfuzz.clients.random_cases import Target
from kspec.clientfuzz.process_usage import Watch
from kspec.errors import AdapterError, AdapterFault, KspecError
from kspec.results import Greeting
from kspec.runner.adapters import ProcessAdapter
from kspec.runner.install import Launch
from mockbroker import MockCluster
from mockbroker.faults import faults_of

__all__ = ["ClientProfile", "Session"]

_LINGER_SECONDS: Final = 0.4
"""Time to wait for a request that the call itself did not wait for."""
_IDLE_SECONDS: Final = 0.3
_TRIES: Final = 3
CLIENT_ID: Final = "fuzz"
_SUBSCRIPTIONS: Final = GetTelemetrySubscriptionsResponse(
    client_instance_id=UUID(int=1),
    subscription_id=1,
    accepted_compression_types=[0],
    push_interval_ms=1000,
    telemetry_max_bytes=1 << 20,
    requested_metrics=["org.apache.kafka."],
)


@dataclass(slots=True)
class ClientProfile:
    """A client's behaviour on a healthy cluster: its answers by call, and the answers it
    received."""

    greeting: Greeting
    answers: dict[str, Answer] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Calls that fail even there, with the reason. They are not used."""
    probe: str = ""
    probed: Answer = field(default_factory=Answer)
    """The call that shows whether a client is healthy, and its right answer."""


class Session:
    """``memory`` is the limit of the process's allocations in bytes."""

    def __init__(
        self,
        launch: Launch,
        *,
        timeout_ms: int = 1000,
        answer_seconds: float = 12.0,
        limits: Limits | None = None,
        memory: int | None = 4 << 30,
        dialect: Dialect | str = "kafka",
    ) -> None:
        self.dialect = dialect
        self._launch = launch
        self._timeout_ms = timeout_ms
        self._answer_seconds = answer_seconds
        self._limits = limits if limits is not None else Limits()
        self._memory = memory
        self._adapter: ProcessAdapter | None = None
        self._watch: Watch | None = None
        self._stderr_at = 0
        self.starts = 0

    @property
    def watched(self) -> bool:
        """Whether memory and processor time are judged."""
        return self._watch is not None and self._watch.available

    async def stop(self) -> None:
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            await adapter.stop()

    async def _ready(self) -> ProcessAdapter:
        if self._adapter is None:
            self._adapter = await ProcessAdapter.start(
                self._launch.command,
                self._launch.cwd,
                {**self._launch.environment, "PYTHONFAULTHANDLER": "1", "GOTRACEBACK": "single"},
                answer_seconds=self._answer_seconds,
            )
            self.starts += 1
            self._stderr_at = 0
            self._watch = Watch(self._adapter.pid, most_memory=self._memory)
        return self._adapter

    # ---- healthy cluster -------------------------------------------------------------------------

    async def learn(self) -> ClientProfile:
        """Make every call once on a healthy cluster.

        Raises KspecError if the client has none of them, and AdapterError if it does not start.
        """
        adapter = await self._ready()
        learned = ClientProfile(adapter.greeting)
        capabilities = adapter.greeting.capabilities
        for op in ARGUMENTS:
            if op not in capabilities and capabilities:
                continue
            answer, targets = await self._healthy(adapter, op)
            if answer.unsupported is None and answer.failure is None:
                learned.answers[op] = answer
                learned.targets += targets
            elif answer.failure is not None:
                learned.failed[op] = str(answer.failure)
        for op in PROBES:
            if op in learned.answers:
                learned.probe = op
                learned.probed, _ = await self._healthy(adapter, op, arguments=PROBES[op])
                break
        if not learned.probe or learned.probed.failure is not None:
            why = "; ".join(f"{op}: {each}" for op, each in learned.failed.items())
            raise KspecError(f"the client succeeds in no read-only call: {why or 'it has none'}")
        _, targets = await self._healthy(adapter, learned.probe, TELEMETRY[0])
        learned.targets += [each for each in targets if each.api_key in TELEMETRY]
        return learned

    async def _healthy(
        self,
        adapter: ProcessAdapter,
        op: str,
        api_key: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> tuple[Answer, list[Target]]:
        """Make a call, and retry if it fails: the first calls of a process may be slow on a busy
        machine."""
        for _ in range(_TRIES):
            mock = await _cluster(api_key, self.dialect)
            try:
                answer = await self._call(adapter, mock, op, arguments)
                await asyncio.sleep(_lingers(api_key))  # requests that the client sends by itself
                await adapter.call("close", {})
            finally:
                entries = list(mock.journal)
                await mock.stop()
            if answer.failure is None:
                break
        return answer, _targets(op, entries)

    async def _call(
        self,
        adapter: ProcessAdapter,
        mock: MockCluster,
        op: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Make a call with a new client. If that cannot be made, return its answer to that."""
        how = {"bootstrap": mock.bootstrap, "timeout_ms": self._timeout_ms, "client_id": CLIENT_ID}
        made = await adapter.call("connect", how)
        if made.failure is not None or made.unsupported is not None:
            return made
        return await adapter.call(op, ARGUMENTS[op] if arguments is None else arguments)

    # ---- playing a case --------------------------------------------------------------------------

    async def play(self, case: Case, learned: ClientProfile, *, idle: bool = False) -> Outcome:
        """Play a case. With ``idle``, the process is also watched while it has nothing to do.

        Raises AdapterFault if the process cannot be started or the adapter fails.
        """
        adapter = await self._ready()
        watch = self._watch
        assert watch is not None
        mock = await _cluster(case.api_key, self.dialect)
        (rule,) = mock.load_faults(faults_of([case.rule()]))
        seen = Observation(healthy=learned.answers[case.op], probe=learned.probed)
        started = time.monotonic()
        watch.reset_peak()
        seen.before = watch.usage()
        try:
            seen.call = case.op
            seen.answer = await self._call(adapter, mock, case.op)
            if rule.hits == 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_lingers(case.api_key)):
                        await mock.wait_for_hit(rule)
            seen.sent, seen.answers = _sent(case, list(mock.journal))
            if rule.live:
                mock.remove_fault(rule)
            await self._probe(adapter, mock, learned, seen)
            if idle:
                seen.idle_cpu = await self.busy()
        except AdapterFault:
            raise
        except AdapterError as error:
            seen.broken, seen.hung = str(error), error.hung
            if not seen.sent:
                seen.sent, seen.answers = _sent(case, list(mock.journal))
        finally:
            await mock.stop()
        seen.milliseconds = (time.monotonic() - started) * 1000
        if not seen.broken:
            seen.after = watch.usage()
        output = adapter.stderr_from(self._stderr_at)
        self._stderr_at += len(output)
        seen.stderr = output.decode(errors="replace")
        if seen.broken:
            await self.stop()
        return judge(case, seen, self._limits)

    async def _probe(
        self, adapter: ProcessAdapter, mock: MockCluster, learned: ClientProfile, seen: Observation
    ) -> None:
        op = seen.call = learned.probe
        for _ in range(2):  # a client may notice a broken connection only at its next call
            seen.same_client = await adapter.call(op, PROBES[op])
            if is_healthy(seen.same_client, seen.probe):
                break
        else:
            for _ in range(2):
                seen.call = "close"
                await adapter.call("close", {})
                seen.call = op
                seen.new_client = await self._call(adapter, mock, op, PROBES[op])
                if is_healthy(seen.new_client, seen.probe):
                    break
        seen.call = "close"
        await adapter.call("close", {})

    async def busy(self) -> float:
        """Return the share of a processor that the idle process uses; 0.0 if it is small.

        A high share is measured twice, as the process may still be finishing work.
        """
        if self._watch is None or self._adapter is None:
            return 0.0
        share = 0.0
        for _ in range(2):
            before, started = self._watch.usage().wanted, time.monotonic()
            await asyncio.sleep(_IDLE_SECONDS)
            share = (self._watch.usage().wanted - before) / (time.monotonic() - started)
            if share < IDLE_SHARE:
                return 0.0
        return share


def _lingers(api_key: int | None) -> float:
    return 4 * _LINGER_SECONDS if api_key in TELEMETRY else _LINGER_SECONDS


async def _cluster(api_key: int | None, dialect: Dialect | str) -> MockCluster:
    """Start a cluster that serves a dialect. It collects client metrics (KIP-714), which brokers do
    not do by default, if ``api_key`` belongs to telemetry."""
    telemetry = api_key in TELEMETRY
    mock = MockCluster(
        brokers=BROKERS,
        topics=TOPICS,
        dialect=dialect,
        named_controller="leader",  # runs meet the same broker, and are compared
        apis=dict.fromkeys(TELEMETRY, Versions(0, 0)) if telemetry else None,
    )
    if telemetry:
        mock.script(71, _SUBSCRIPTIONS)
        mock.script(72, PushTelemetryResponse())
    await mock.start()
    topic, partition, replicas = REASSIGNED
    mock.cluster.reassignments.alter([(topic, [(partition, list(replicas))])])
    return mock


def _targets(op: str, entries: list[Entry]) -> list[Target]:
    """Return each answer, numbered among those of its API and version."""
    numbers: dict[tuple[int, int, int, int], int] = {}
    counts: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int, int, bytes], Target] = {}
    for entry in entries:
        key, version = entry.api_key, entry.api_version
        if key is None or version is None or entry.correlation_id is None:
            continue
        about = (key, version, entry.connection_id, entry.correlation_id)
        if entry.direction == "request":
            counts[key, version] = counts.get((key, version), 0) + 1
            numbers[about] = counts[key, version]
        elif entry.direction == "response" and about in numbers:
            target = Target(op, key, version, numbers[about], entry.raw)
            found.setdefault((key, version, len(entry.raw), b""), target)
    return list(found.values())


def _sent(case: Case, entries: list[Entry]) -> tuple[list[bytes], int]:
    """Return the answers that the rule altered, and the number of answers of that API from the
    first of them on."""
    answers = [e for e in entries if e.direction == "response" and e.api_key == case.api_key]
    altered = [number for number, e in enumerate(answers) if e.event == "fault: fuzz"]
    later = len(answers) - altered[0] if altered else 0
    return [answers[number].raw for number in altered], later
