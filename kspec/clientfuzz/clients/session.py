"""One client process, given case after case; a new one only where it ended or hung.

Each case has a mock cluster of its own, whose rule of faults alters the answer. After the call the
rule is taken away: the same client, and where that fails a new one of the same process, has to give
the right answer to a healthy cluster. What that is was learned first, without any fault.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kproto.journal import Entry
from kproto.messages import GetTelemetrySubscriptionsResponse, PushTelemetryResponse
from kproto.schema.versions import Versions
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
from kspec.kinds import Answer
from kspec.results import Greeting
from kspec.runner.adapters import ProcessAdapter
from kspec.runner.install import Launch
from mockbroker import MockCluster
from mockbroker.faults import faults_of

__all__ = ["ClientProfile", "Session"]

_LINGER_SECONDS: Final = 0.4
"""How long an answer that the call did not wait for may take to be asked for."""
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
    """Of a client, on a healthy cluster: its answers by call, and what it was answered."""

    greeting: Greeting
    answers: dict[str, Answer] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Calls that do not succeed even there, and why: they are not asked."""
    probe: str = ""
    probed: Answer = field(default_factory=Answer)
    """The call that shows a healthy client, and what it says to it."""


class Session:
    """``memory`` is the most that the process may allocate, in bytes."""

    def __init__(
        self,
        launch: Launch,
        *,
        timeout_ms: int = 1000,
        answer_seconds: float = 12.0,
        limits: Limits | None = None,
        memory: int | None = 4 << 30,
    ) -> None:
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

    # ---- healthy -----------------------------------------------------------------------------

    async def learn(self) -> ClientProfile:
        """Ask every call once on a healthy cluster. Raises KspecError where the client has none of
        them, AdapterError where it does not come up."""
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
            raise KspecError(f"the client succeeds in no call that looks: {why or 'it has none'}")
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
        """Again where it fails: the first calls of a process may be slow on a busy machine."""
        for _ in range(_TRIES):
            mock = await _cluster(api_key)
            try:
                answer = await self._call(adapter, mock, op, arguments)
                await asyncio.sleep(_lingers(api_key))  # what it asks of its own accord
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
        """Of a new client. Where that cannot be made, what was said to that."""
        how = {
            "bootstrap": mock.bootstrap,
            "timeout_ms": self._timeout_ms,
            "client_id": CLIENT_ID,
        }
        made = await adapter.call("connect", how)
        if made.failure is not None or made.unsupported is not None:
            return made
        return await adapter.call(op, ARGUMENTS[op] if arguments is None else arguments)

    # ---- a case ------------------------------------------------------------------------------

    async def play(self, case: Case, learned: ClientProfile, *, idle: bool = False) -> Outcome:
        """Raises AdapterFault where the process cannot be started, or the adapter fails. With
        ``idle`` it is also watched for a moment in which nothing is asked of it."""
        adapter = await self._ready()
        watch = self._watch
        assert watch is not None
        mock = await _cluster(case.api_key)
        (rule,) = mock.load_faults(faults_of([case.rule()]))
        seen = Observation(healthy=learned.answers[case.op], probe=learned.probed)
        started = time.monotonic()
        watch.reset_peak()
        seen.before = watch.usage()
        try:
            seen.asked = case.op
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
        said = adapter.stderr_from(self._stderr_at)
        self._stderr_at += len(said)
        seen.stderr = said.decode(errors="replace")
        if seen.broken:
            await self.stop()
        return judge(case, seen, self._limits)

    async def _probe(
        self, adapter: ProcessAdapter, mock: MockCluster, learned: ClientProfile, seen: Observation
    ) -> None:
        op = seen.asked = learned.probe
        for _ in range(2):  # a client may notice only by its next call that a connection broke
            seen.same_client = await adapter.call(op, PROBES[op])
            if is_healthy(seen.same_client, seen.probe):
                break
        else:
            for _ in range(2):
                seen.asked = "close"
                await adapter.call("close", {})
                seen.asked = op
                seen.new_client = await self._call(adapter, mock, op, PROBES[op])
                if is_healthy(seen.new_client, seen.probe):
                    break
        seen.asked = "close"
        await adapter.call("close", {})

    async def busy(self) -> float:
        """The share of a processor that it would take while nothing is asked of it; 0.0 where that
        is little. Looked at twice, where it is much at first: what was left to do is done."""
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


async def _cluster(api_key: int | None = None) -> MockCluster:
    """Where ``api_key`` is one of telemetry, as a cluster that collects metrics of its clients
    (KIP-714); others do not, as brokers do not unless told to."""
    telemetry = api_key in TELEMETRY
    mock = MockCluster(
        brokers=BROKERS,
        topics=TOPICS,
        apis=dict.fromkeys(TELEMETRY, Versions(0, 0)) if telemetry else None,
    )
    if telemetry:
        mock.script(71, _SUBSCRIPTIONS)
        mock.script(72, PushTelemetryResponse())
    await mock.start()
    topic, partition, replicas = REASSIGNED
    mock.cluster.alter_partition_reassignments([(topic, [(partition, list(replicas))])])
    return mock


def _targets(op: str, entries: list[Entry]) -> list[Target]:
    """Each answer there was, by its number among those of its api and version."""
    asked: dict[tuple[int, int, int, int], int] = {}
    counts: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int, int, bytes], Target] = {}
    for entry in entries:
        key, version = entry.api_key, entry.api_version
        if key is None or version is None or entry.correlation_id is None:
            continue
        about = (key, version, entry.connection_id, entry.correlation_id)
        if entry.direction == "request":
            counts[key, version] = counts.get((key, version), 0) + 1
            asked[about] = counts[key, version]
        elif entry.direction == "response" and about in asked:
            target = Target(op, key, version, asked[about], entry.raw)
            found.setdefault((key, version, len(entry.raw), b""), target)
    return list(found.values())


def _sent(case: Case, entries: list[Entry]) -> tuple[list[bytes], int]:
    """The answers that the rule altered, and how many of that api there were from the first of
    them on."""
    answers = [e for e in entries if e.direction == "response" and e.api_key == case.api_key]
    altered = [number for number, e in enumerate(answers) if e.event == "fault: fuzz"]
    later = len(answers) - altered[0] if altered else 0
    return [answers[number].raw for number in altered], later
