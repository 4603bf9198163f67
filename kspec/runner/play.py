"""Play one variant of a case: start a cluster, take the client through its steps, collect evidence.

``kspec.judge`` judges the ``Evidence`` that this returns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kproto.errors import AbsentError, KprotoError
from kproto.journal import Entry
from kspec.adapter_protocol import read_answer, shown
from kspec.answers import Answer
from kspec.case_parser import step_name
from kspec.errors import AdapterError, AdapterFault, KspecError
from kspec.model import STAGE_STEPS, Case, ClientCall, ConsumerSpec, ProducerSpec, Step, Wait
from kspec.produced_records import produced_records
from kspec.runner.adapters import Adapter
from kspec.runner.bearer_tokens import OAUTHBEARER, sasl_arguments
from kspec.runner.memory import MemoryGauge
from kspec.runner.rounds import poll_in_rounds, waits_for_partitions
from kspec.runner.stage import Stage
from kspec.runner.stand_ins import needs_some_request, stand_in
from kspec.traffic import CallRecord, Direction, Evidence, select

__all__ = ["CHOICES_OF_THE_CALLER", "Adapters", "play"]

CHOICES_OF_THE_CALLER: Final = frozenset({"negotiation", "routing"})
"""Groups of cases about which version and which broker a client chooses. A raw call leaves both to
its caller, so these cases would judge the adapter."""

_POLL_SECONDS: Final = 0.005
_ACKNOWLEDGE: Final = "acknowledge"
"""The call that only consumers of share groups have."""


Adapters: TypeAlias = Mapping[str | None, Adapter]
"""The clients of a case: the case's own under None, the others by their names."""


async def play(case: Case, adapters: Adapters) -> Evidence:
    """Play a case and return the evidence.

    Raises KprotoError if the case cannot be staged. The client's behaviour is evidence, and so is a
    step that it makes impossible for the cluster.
    """
    played = Evidence(wire_only=any(each.wire_only for each in adapters.values()))
    try:
        stage = Stage(case)
    except AbsentError as error:
        _leave_out(case, Answer(unsupported=str(error)), played)
        return played
    except KprotoError as error:
        raise KspecError(f"{case.id}: {error}") from error
    await stage.start()
    gauges = [MemoryGauge(each.pid) for each in adapters.values() if each.pid is not None]
    try:
        await _act(case, stage, adapters, played)
    except AdapterFault as error:
        played.fault = str(error)
    except AdapterError as error:
        played.broken = str(error)
    finally:
        played.entries = list(stage.mock.journal)
        if case.reads_state:  # every config of every broker takes as long as all the rest
            played.state = stage.state()
        played.logs = stage.logs()
        played.groups = stage.groups()
        played.unhit = stage.unhit()
        played.inapplicable = stage.inapplicable()
        played.failed_faults = stage.failed_faults()
        played.shows_attempts = stage.shows_attempts
        played.memory_growth = max((each.growth() or 0 for each in gauges), default=0)
        # A client that is still connected may reconnect to the ports of a stopped broker, where the
        # next play's brokers may listen. It is therefore closed first.
        if played.broken is None and played.fault is None:
            try:
                await asyncio.gather(*(each.call("close", {}) for each in adapters.values()))
            except AdapterFault as error:
                played.fault = str(error)
            except AdapterError as error:
                played.broken = f"when closing: {error}"
        await stage.stop()
    return played


async def _act(case: Case, stage: Stage, adapters: Adapters, played: Evidence) -> None:
    for name in adapters:
        await _connect(name, case, stage, adapters, played)
    for step in case.steps:
        if played.calls.get("connect") is not None and step.calls:
            continue  # the client could not be made, so it cannot make calls
        try:
            await _take(step, case, stage, adapters, played)
        except AdapterError:
            raise
        except (KprotoError, OSError) as error:
            played.blocked = f"{_text(step)}: {error}"
            return
        if any(each.lacking for each in played.calls.values()):
            return  # later calls build on this one, and nothing they do would be judged


def _text(step: Step) -> str:
    """Return the command of a step on the cluster, or the step's member with its value."""
    if step.cluster is not None:
        return step.cluster
    given = msgspec.to_builtins(step)
    name = next(name for name in STAGE_STEPS if given[name] not in (None, False))
    return f"{name} {given[name]}" if isinstance(given[name], int | str) else name


async def _connect(
    by: str | None, case: Case, stage: Stage, adapters: Adapters, played: Evidence
) -> None:
    """Make a new client. If that fails, every later call counts as failed in the same way."""
    spec = case.client_of(by)
    arguments: dict[str, Any] = {
        "bootstrap": stage.bootstrap,
        "timeout_ms": spec.timeout_ms,
        "client_id": spec.client_id,
        "producer": _given(spec.producer),
        "consumer": _given(spec.consumer),
        **spec.options,
    }
    if spec.sasl is not None:
        arguments["sasl"] = sasl_arguments(spec.sasl, time.time())
    if spec.tls is not None:
        arguments["tls"] = stage.client_files(spec.tls)
    before, started = stage.mock.journal.last_sequence, time.monotonic()
    greeting = adapters[by].greeting
    if spec.tls is not None and "tls" not in greeting.connect:
        answer = Answer(unsupported="the adapter does not connect by TLS")
    elif (
        spec.sasl is not None
        and spec.sasl["mechanism"] == OAUTHBEARER
        and "oauthbearer" not in greeting.connect
    ):
        answer = Answer(unsupported="the adapter does not authenticate with tokens")
    elif spec.consumer.protocol == "share" and _ACKNOWLEDGE not in greeting.capabilities:
        answer = Answer(unsupported="the client has no consumer of share groups")
    else:
        answer = await adapters[by].call("connect", arguments)
    if answer.failure is None and answer.unsupported is None:
        return
    spent = (time.monotonic() - started) * 1000
    _leave_out(case, answer, played, (before, stage.mock.journal.last_sequence, spent))


def _leave_out(
    case: Case, answer: Answer, played: Evidence, place: tuple[int, int, float] = (0, 0, 0.0)
) -> None:
    """Give each call that was not made the answer of ``connect``."""
    for call in (each for step in case.steps for each in step.calls):
        name = step_name(call)
        if name not in played.calls:
            played.calls[name] = CallRecord(name, "connect", *place, answer)
    played.calls["connect"] = CallRecord("connect", "connect", *place, answer)


def _given(spec: ProducerSpec | ConsumerSpec) -> dict[str, Any]:
    """Return the options that the case sets. The others keep the client's defaults."""
    options: dict[str, Any] = msgspec.to_builtins(spec)
    return {name: value for name, value in options.items() if value is not None}


async def _take(step: Step, case: Case, stage: Stage, adapters: Adapters, played: Evidence) -> None:
    if step.call is not None:
        await _call(step, case, stage, adapters[step.by], played)
    elif step.together is not None:
        await _call_together(step.together, stage, adapters, played)
    elif step.reconnect:
        await adapters[step.by].call("close", {})
        await _connect(step.by, case, stage, adapters, played)
    elif step.cluster is not None:
        await stage.step(step.cluster)
    elif step.unreachable is not None:
        await stage.make_unreachable(step.unreachable)
    elif step.silent is not None:
        await stage.make_silent(step.silent)
    elif step.certificate is not None:
        stage.use_certificate(step.certificate)
    elif step.acls is not None:
        stage.set_acls(step.acls)
    elif step.telemetry is not None:
        stage.set_telemetry(step.telemetry)
    elif step.faults is not None:
        stage.add_faults(step.faults)
    elif step.clear_faults:
        stage.clear_faults()
    elif step.wait is not None:
        await _wait(step.wait, stage, played)
    elif step.pause_ms is not None:
        await asyncio.sleep(step.pause_ms / 1000)


async def _call(step: Step, case: Case, stage: Stage, adapter: Adapter, played: Evidence) -> None:
    (call,) = step.calls
    before, started = stage.mock.journal.last_sequence, time.monotonic()
    function = adapter.greeting.raw_calls.get(call.call)
    if function is not None and case.group in CHOICES_OF_THE_CALLER:
        answer = Answer(unsupported=f"the client has no call for it other than {function}")
    else:
        answer = await _answer(call, adapter)
    name, made = step_name(call), call.call
    other = None
    if answer.unsupported is not None and needs_some_request(case):
        other = await stand_in(name, case, stage, adapter)
        made, answer = other or (made, answer)
    spent = (time.monotonic() - started) * 1000
    played.calls[name] = CallRecord(
        name, made, before, stage.mock.journal.last_sequence, spent, answer,
        call.arguments, step.optional, stands_in=other is not None,
    )  # fmt: skip


async def _produced(call: ClientCall, adapter: Adapter) -> Answer:
    """Produce records, and name their outcomes by the records' values."""
    records = produced_records(call.arguments)
    answer = await adapter.call("produce", {"records": records})
    try:
        return answer.keyed([str(each["value"]).rstrip(" ") for each in records])
    except ValueError as error:
        raise AdapterFault(shown(str(error))) from None


async def _call_together(
    several: Sequence[ClientCall], stage: Stage, adapters: Adapters, played: Evidence
) -> None:
    """All calls last as long as the longest. Those of one client are one call of its adapter."""
    before, started = stage.mock.journal.last_sequence, time.monotonic()
    made: list[tuple[list[ClientCall], Coroutine[Any, Any, list[Answer]]]] = []
    rounds = [each for each in several if waits_for_partitions(each)]
    if rounds:
        made.append((rounds, poll_in_rounds([(each, adapters[each.by]) for each in rounds])))
    for name in dict.fromkeys(each.by for each in several):
        share = [each for each in several if each.by == name and each not in rounds]
        if share:
            made.append((share, _share(share, adapters[name])))
    answers = await asyncio.gather(*(each for _, each in made), return_exceptions=True)
    spent = (time.monotonic() - started) * 1000
    until = stage.mock.journal.last_sequence
    for (share, _), found in zip(made, answers, strict=True):
        if isinstance(found, BaseException):
            raise found
        for each, answer in zip(share, found, strict=True):
            name = step_name(each)
            played.calls[name] = CallRecord(
                name, each.call, before, until, spent, answer, each.arguments
            )


async def _share(several: Sequence[ClientCall], adapter: Adapter) -> list[Answer]:
    """Make the calls of one client at once."""
    if len(several) == 1:
        (call,) = several
        return [await _answer(call, adapter)]
    calls = [{"op": each.call, **each.arguments} for each in several]
    return _parts(await adapter.call("together", {"calls": calls}), [op.call for op in several])


def _has_headers(call: ClientCall) -> bool:
    """Whether a call writes headers of records, or is to return them."""
    records = call.arguments.get("records")
    given = records if isinstance(records, list) else ()
    return "headers" in call.arguments or any("headers" in each for each in given)


async def _answer(call: ClientCall, adapter: Adapter) -> Answer:
    if _has_headers(call) and "headers" not in adapter.greeting.records:
        return Answer(unsupported="the adapter's records have no headers")
    if call.call == "produce":
        return await _produced(call, adapter)
    if call.call == "send":
        return await adapter.call("send", {"records": produced_records(call.arguments)})
    if waits_for_partitions(call):
        (answer,) = await poll_in_rounds([(call, adapter)])
        return answer
    return await adapter.call(call.call, call.arguments)


def _parts(whole: Answer, calls: Sequence[str]) -> list[Answer]:
    """Return an answer for each call. If there is only one for the whole, each call gets that."""
    if not whole.ok:
        return [whole] * len(calls)
    parts = whole.result or []
    if len(parts) != len(calls):
        text = shown(str(parts))
        raise AdapterFault(
            f"not a line of the protocol: expected {len(calls)} answers, one per call: {text}"
        )
    return [read_answer(call, part) for call, part in zip(calls, parts, strict=True)]


async def _wait(wait: Wait, stage: Stage, played: Evidence) -> None:
    ends = time.monotonic() + wait.ms / 1000
    while time.monotonic() < ends:
        now = Evidence(entries=list(stage.mock.journal), calls=played.calls)
        if all(len(found) >= wait.count for found in _found(wait, now)):
            return
        await asyncio.sleep(_POLL_SECONDS)
    if not wait.optional:
        played.unmet.append(f"{wait.count} of {_described(wait)} in {wait.ms} ms")


def _described(wait: Wait) -> str:
    given = msgspec.to_builtins(wait)
    parts = {kind: given[kind] for kind in ("requests", "responses", "events") if given[kind]}
    return ", ".join(
        f"{kind} { ({name: value for name, value in part.items() if value is not None}) }"
        for kind, part in parts.items()
    )


def _found(wait: Wait, now: Evidence) -> list[list[Entry]]:
    pairs: tuple[tuple[Any, Direction], ...] = (
        (wait.requests, "request"),
        (wait.responses, "response"),
        (wait.events, "event"),
    )
    return [select(selector, way, now) for selector, way in pairs if selector is not None]
