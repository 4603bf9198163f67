"""Judge one client in one case from its traffic and its answers.

The verdicts are those of Autobahn's test suite: ``pass``; ``non-strict`` if only a ``should`` is
broken; ``informational`` if the case requires nothing and records what the client does; ``fail``;
and ``unsupported`` if the client lacks the call or never reaches the behaviour under test.
``error`` is not a verdict on the client: its adapter failed, or the case did not happen. A step or
a fault failed, no request triggered a fault, or the case never reached the subject of an
expectation.

Judging is pure: the same evidence always gives the same verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from kproto.journal import Entry
from kspec.answers import Answer
from kspec.error_kinds import Failure
from kspec.model import SEVERITIES, Case, Expectation, Level, Selector, Severity
from kspec.patterns import mismatch, parse_range
from kspec.traffic import (
    CallRecord,
    Direction,
    Evidence,
    fits,
    gaps_ms,
    grouped,
    partition_rows,
    select,
    unreached,
)

__all__ = [
    "MOST_CONNECTIONS",
    "MOST_MEMORY_MIB",
    "VERDICTS",
    "Finding",
    "Judgement",
    "Verdict",
    "judge",
    "longest_call_ms",
    "severity_of",
    "worst",
]

Verdict: TypeAlias = Literal["error", "fail", "unsupported", "non-strict", "informational", "pass"]
VERDICTS: tuple[Verdict, ...] = (
    "error", "fail", "unsupported", "non-strict", "informational", "pass",
)  # fmt: skip
"""Verdicts, worst first."""

_STRICT = ("must", "must_not")

_FEW: Final = 2
"""A rule that allows more than so many requests bounds their number."""

MOST_CONNECTIONS: Final = 50
"""Limit for one call. Released clients open at most 18 when every connection fails."""

MOST_MEMORY_MIB: Final = 256
"""Limit for what one case makes a client's process grow by. Clients that believe a false size
allocate 512 MiB and more; no other case made one of four grow by more than 84."""

GROWTH: Final = 1.3
"""KIP-580 doubles each pause with a jitter of 20 %, so each is at least a third longer than the one
before it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation and its outcome.

    ``holds`` is None if it could not be judged, and ``unreached`` True if that is because the case
    never came to it. ``evidence`` is a sentence, and ``sequences`` lists
    the journal entries it is about. ``severity`` is that of breaking it.
    """

    level: Level | Literal["process"]
    says: str
    holds: bool | None
    evidence: str
    sequences: tuple[int, ...] = ()
    severity: Severity = "wrong result"
    unreached: bool = False

    @property
    def broken(self) -> bool:
        """Whether a requirement does not hold, or a prohibited behaviour occurred."""
        if self.holds is None or self.level == "may":
            return False
        return self.holds if self.level in ("must_not", "should_not") else not self.holds


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason. ``why`` is one sentence, empty for a plain pass."""

    verdict: Verdict
    why: str = ""
    findings: tuple[Finding, ...] = field(default=())

    @property
    def severity(self) -> Severity | None:
        """The worst severity of what is broken; None if nothing is."""
        broken = [each.severity for each in self.findings if each.broken]
        return min(broken, key=SEVERITIES.index, default=None)


def judge(case: Case, played: Evidence) -> Judgement:
    """Return the verdict on one play of one variant."""
    if played.fault is not None:
        return Judgement("error", played.fault)
    findings = tuple(_examine(case, played))
    strict = [each for each in findings if each.broken and each.level in _STRICT]
    lax = [each for each in findings if each.broken and each.level in ("should", "should_not")]
    if played.broken is not None:
        return Judgement("fail", played.broken, findings)
    error = _local_failure(played)
    if error is not None:
        says = "the client connects to a broker"
        silent = Finding("must", says, False, f"every call failed without that: {_short(error)}")
        return Judgement("fail", _sentence([silent]), (silent, *findings))
    reason = _unsupported(case, played)
    if reason is not None:
        return Judgement("unsupported", reason, findings)
    if played.unhit and played.blocked is None:  # else later faults had no chance
        why = f"no request triggered a fault of the case: {played.unhit[0]}"
        return Judgement("error", why, findings)
    if strict:
        return Judgement("fail", _sentence(strict), findings)
    reason = _undone(played)
    if reason is not None:
        return Judgement("error", reason, findings)
    if lax:
        return Judgement("non-strict", _sentence(lax), findings)
    for each in findings:
        if each.unreached:
            why = f"the case never came to “{each.says}”: {each.evidence}"
            return Judgement("error", why, findings)
    if played.unmet:
        return Judgement(
            "error", f"what the case waits for did not come: {played.unmet[0]}", findings
        )
    if findings and all(each.holds is None for each in findings):
        return Judgement("unsupported", f"nothing to judge by: {findings[0].evidence}", findings)
    if case.informational:
        seen = [each.says for each in findings if each.holds]
        return Judgement("informational", "; ".join(seen), findings)
    note = "judged by its traffic alone" if played.wire_only else ""
    return Judgement("pass", note, findings)


def worst(judgements: Sequence[Judgement]) -> Judgement:
    """Return the worst verdict of a case's variants; ``unsupported`` counts only if all have it."""
    apt = [each for each in judgements if each.verdict != "unsupported"]
    return min(apt or judgements, key=lambda each: VERDICTS.index(each.verdict))


def _sentence(broken: Sequence[Finding]) -> str:
    first = broken[0]
    not_ = "" if first.level.startswith(("must_not", "should_not")) else "not met: "
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"{not_}{first.says}: {first.evidence}{more}"


def _local_failure(played: Evidence) -> str | None:
    """Return the first error of a client whose calls failed although it never tried a broker.

    Of a connection whose TLS handshake fails, the journal has the ClientHello alone.
    """
    if not played.shows_attempts:
        return None
    answers = [each.answer for each in played.calls.values()]
    failed = [each for each in answers if each.unsupported is None and not each.ok]
    if played.wire_only or not failed or len(failed) < len(answers):
        return None
    tried = any(
        each.event in ("connected", "client-hello") or each.direction == "request"
        for each in played.entries
    )
    return None if tried else str(failed[0])


def _unsupported(case: Case, played: Evidence) -> str | None:
    if played.wire_only and not any(entry.direction == "request" for entry in played.entries):
        return "the client sent no request, and its results are unknown"
    for record in played.calls.values():
        if record.lacking:
            return f"{record.call}: {record.answer.unsupported}"
    for each in case.applies:
        holds, evidence, _ = _evaluate(each, played)
        if holds is False:
            cause = "" if played.blocked is None else f"; the case ended at {played.blocked}"
            return f"{each.says}: {evidence}{cause}"
    if played.inapplicable and played.blocked is None:
        return f"the client sends nothing that this case is about: {played.inapplicable[0]}"
    return None


def _undone(played: Evidence) -> str | None:
    """Return what of the case did not happen, so that nothing is known about the client."""
    if played.blocked is not None:
        return f"a step failed: {played.blocked}"
    if played.failed_faults:
        return played.failed_faults[0]
    return None


def _examine(case: Case, played: Evidence) -> Iterable[Finding]:
    if played.broken is not None:
        says = "the client stays usable"
        yield Finding("process", says, False, played.broken, severity="crash or hang")
    for level, each in case.expectations():
        severity = severity_of(level, each)
        record = played.calls.get(each.result or "")
        if record is not None and record.answer.pending and severity == "wrong result":
            severity = "crash or hang"
        found = Finding(level, each.says, *_evaluate(each, played), severity)
        missing = None if found.broken or level == "may" else _unreached(each, played)
        if missing is not None:
            found = replace(found, holds=None, evidence=missing, unreached=True)
        yield found
    yield from _of_every_case(case, played)


def _unreached(each: Expectation, played: Evidence) -> str | None:
    """Return why an expectation that is not broken says nothing: the play never came to the part
    that it is about, or there was nothing to check."""
    if each.any_of is not None:
        reasons = [_unreached(part, played) for part in each.any_of]
        return next(iter(reasons)) if all(reasons) else None
    if each.result is not None:
        if played.wire_only:
            return None
        record = played.calls.get(each.result)
        if record is None:
            return f"the call {each.result} was never made"
        is_empty = each.placed is not None and record.answer.ok and not record.answer.partitions
        return "no record was reported as written" if is_empty else None
    if each.requests is None and each.responses is None and each.events is None:
        return None
    selector, direction = _subject(each)
    missing = unreached(selector, played)
    if missing is not None:
        return missing
    checks_items = each.each is not None or each.same is not None or each.distinct is not None
    if checks_items and not select(selector, direction, played):
        return f"there is no {direction} to check"
    return None


def severity_of(level: Level, each: Expectation) -> Severity:
    """Return what it means that the expectation is broken: as it says, or else by its subject.

    Records that are lost, repeated or in another order are a loss of data. Too many requests or too
    short pauses cost resources. Advice is cosmetic.
    """
    if each.severity is not None:
        return each.severity
    if level in ("should", "should_not"):
        return "cosmetic"
    if each.requests is None and each.responses is None and each.events is None:
        return "wrong result"
    limit = 0 if each.count is None else parse_range(each.count).highest or 0
    is_pace = limit > _FEW or each.growing or each.gaps_ms is not None
    return "resources" if level == "must" and is_pace else "wrong result"


# ---- rules that hold in every case ---------------------------------------------------------------


def longest_call_ms(timeout_ms: int) -> int:
    """Return the longest time a call may take with that timeout.

    Clients apply the timeout to connecting and to the request separately, so it counts twice. Six
    seconds are added for a busy machine.
    """
    return 2 * timeout_ms + 6_000


def _of_every_case(case: Case, played: Evidence) -> Iterable[Finding]:
    """Yield a finding for each general rule that is broken."""
    bound = longest_call_ms(case.client.timeout_ms)
    grown = played.memory_growth // 2**20
    if grown > MOST_MEMORY_MIB:
        evidence = f"its process grew by {grown} MiB, more than {MOST_MEMORY_MIB}"
        yield Finding(
            "must_not", "allocates far more than it receives", True, evidence, severity="resources"
        )
    calls = [each for each in played.calls.values() if each.answer.unsupported is None]
    slow = [each for each in calls if each.milliseconds > bound and not each.answer.pending]
    if slow and not played.wire_only:
        evidence = (
            f"{slow[0].name} took {slow[0].milliseconds:.0f} ms, more than {bound}, with a "
            f"timeout of {case.client.timeout_ms}"
        )
        says = "every call ends in time"
        yield Finding("must", says, False, evidence, severity="crash or hang")
    for record in calls:
        opened = select(Selector(event="connected", during=record.name), "event", played)
        if len(opened) > MOST_CONNECTIONS:
            evidence = f"{len(opened)} during {record.name}, more than {MOST_CONNECTIONS}"
            says = "opens connections without end"
            yield Finding("must_not", says, True, evidence, severity="resources")
            return


Evaluation: TypeAlias = tuple[bool | None, str, tuple[int, ...]]


def _evaluate(each: Expectation, played: Evidence) -> Evaluation:
    if each.result is not None:
        return _of_result(each, played)
    if each.state is not None:
        problem = mismatch(each.state, json.loads(json.dumps(played.state)))
        return problem is None, problem or "the cluster is in this state", ()
    if each.logs is not None:
        problem = mismatch(each.logs, json.loads(json.dumps(played.logs)))
        return problem is None, problem or "the logs are like this", ()
    if each.groups is not None:
        problem = mismatch(each.groups, json.loads(json.dumps(played.groups)))
        return problem is None, problem or "the groups are like this", ()
    if each.order is not None:
        return _of_order(each.order, played)
    if each.any_of is not None:
        return _of_any(each.any_of, played)
    selector, direction = _subject(each)
    return _of_entries(each, selector, direction, played)


def _subject(each: Expectation) -> tuple[Selector, Direction]:
    pairs: tuple[tuple[Selector | None, Direction], ...] = (
        (each.requests, "request"),
        (each.responses, "response"),
        (each.events, "event"),
    )
    return next((selector, direction) for selector, direction in pairs if selector is not None)


# ---- the wire ------------------------------------------------------------------------------------


def _of_entries(
    each: Expectation, selector: Selector, direction: Direction, played: Evidence
) -> Evaluation:
    entries = select(selector, direction, played)
    count = parse_range("1+" if each.count is None else each.count)
    for name, group in (grouped(entries, each.per) or {"": []}).items():
        number = _count(each, group)
        if number not in count:
            what = f"{direction}s" if each.distinct is None else f"{each.distinct}s"
            evidence = f"{number} {what}{name and ' on ' + name}, expected {count}"
            return False, evidence, _numbers(group)
        problem = _pace(each, group)
        if problem is not None:
            return False, problem, _numbers(group)
        problem = _difference(each, selector, group, played)
        if problem is not None:
            return False, problem, _numbers(group)
    if each.each is not None:
        odd = [entry for entry in entries if not fits(each.each, entry, played)]
        if odd:
            return False, f"{len(odd)} of {len(entries)} {direction}s do not match", _numbers(odd)
    return True, f"{len(entries)} {direction}s", _numbers(entries)


def _count(each: Expectation, group: Sequence[Entry]) -> int:
    if each.distinct is None:
        return len(group)
    values: set[Any] = set()
    for entry in group:
        values.add(
            {
                "connection": entry.connection_id,
                "broker": entry.broker_id,
                "version": entry.api_version,
            }[each.distinct]
        )
    return len(values)


def _pace(each: Expectation, group: Sequence[Entry]) -> str | None:
    gaps = gaps_ms(group)
    if each.gaps_ms is not None:
        wanted = parse_range(each.gaps_ms)
        odd = [gap for gap in gaps if gap not in wanted]
        if odd:
            return f"{odd[0]:.0f} ms between two, expected {wanted}"
    if each.growing and not _grow(gaps):
        shown = ", ".join(f"{gap:.0f}" for gap in gaps) or "none"
        return f"the pauses do not grow: {shown} ms"
    if each.within_ms is not None and group:
        spent = (group[-1].timestamp_ns - group[0].timestamp_ns) / 1e6
        if spent not in parse_range(each.within_ms):
            return f"{spent:.0f} ms from first to last"
    return None


def _difference(
    each: Expectation, selector: Selector, group: Sequence[Entry], played: Evidence
) -> str | None:
    """Return the first member of ``same`` in which batches of the partition differ."""
    batches = [
        batch
        for entry in group
        for row in partition_rows(entry, selector.partition or "", played)
        for batch in row.get("records") or ()
    ]
    for name in each.same or ():
        first, *others = [batch.get(name) for batch in batches] or [None]
        odd = next((value for value in others if value != first), first)
        if odd != first:
            return f"{name} is {first} in one batch and {odd} in another"
    return None


def _grow(gaps: Sequence[float]) -> bool:
    """Whether the shortest of the later gaps exceeds the shortest of the earlier ones.

    A busy machine lengthens single gaps and shortens none, so a minimum shows the client's pause.
    """
    half = len(gaps) // 2
    return half > 0 and min(gaps[-half:]) >= GROWTH * min(gaps[:-half])


def _of_order(parts: Sequence[Expectation], played: Evidence) -> Evaluation:
    """Check that each part has an entry after the entry of the previous part."""
    reached = 0
    chosen: list[int] = []
    for part in parts:
        selector, direction = _subject(part)
        later = [each for each in select(selector, direction, played) if each.sequence > reached]
        if not later:
            behind = f" after #{reached}" if reached else ""
            return False, f"no {direction}{behind} that is “{part.says}”", tuple(chosen)
        reached = later[0].sequence
        chosen.append(reached)
    return True, "in this order", tuple(chosen)


def _of_any(parts: Sequence[Expectation], played: Evidence) -> Evaluation:
    """Check that one part holds. If none does and one cannot be judged, the whole cannot be
    judged."""
    found = [_evaluate(part, played) for part in parts]
    for wanted in (True, None):
        for each in found:
            if each[0] is wanted:
                return each
    evidence = "; ".join(
        f"not “{part.says}”: {each[1]}" for part, each in zip(parts, found, strict=True)
    )
    return False, evidence, tuple(number for each in found for number in each[2])


def _numbers(entries: Sequence[Entry]) -> tuple[int, ...]:
    return tuple(entry.sequence for entry in entries)


# ---- the client's answers ------------------------------------------------------------------------


def _of_result(each: Expectation, played: Evidence) -> Evaluation:
    if played.wire_only:
        return None, "judged by its traffic alone", ()
    record = played.calls.get(each.result or "")
    if record is None:
        return None, "the call was never made", ()
    if record.answer.unsupported is not None:
        return None, f"unsupported: {record.answer.unsupported}", ()
    problem = _problem(each, record, played)
    given = f"{record.call} gave {_short(str(record.answer))}"
    return problem is None, given if problem is None else f"{problem} ({given})", ()


def _problem(each: Expectation, record: CallRecord, played: Evidence) -> str | None:
    answer = record.answer
    late = [key for key in answer.pending if each.outcomes is None or key in each.outcomes]
    if late and each.delivered is None and each.value is None:
        return f"no outcome within the call's limit: {', '.join(late)}"
    if each.success is not None and answer.ok != each.success:
        return "it failed" if each.success else "it reports success"
    if each.within_ms is not None and record.milliseconds not in parse_range(each.within_ms):
        return f"it took {record.milliseconds:.0f} ms"
    if each.error is not None:
        problem = _failure_problem(_only_failure(record), each.error)
        if problem is not None:
            return problem
    if each.message is not None:
        failure = _only_failure(record)
        texts = [] if failure is None else [one.message for one in failure.chain()]
        if all(mismatch(each.message, text) is not None for text in texts):
            return f"its message is not {each.message}"
    for key, wanted in (each.outcomes or {}).items():
        problem = _outcome_problem(record, key, wanted)
        if problem is not None:
            return f"{key}: {problem}"
    if each.delivered is not None:
        problem = mismatch(each.delivered, _delivered(record))
        if problem is not None:
            return problem
    if each.placed is not None:
        problem = _misplaced(record, played)
        if problem is not None:
            return problem
    if each.value is not None:
        if answer.failure is not None:
            return "it failed"
        if record.stands_in:
            return _problem_of_stand_in(each.value, answer)
        return mismatch(each.value, answer.result)
    return None


def _problem_of_stand_in(value: Any, answer: Answer) -> str | None:
    """Another call has no such value: success stands for the value, and nothing for one that is
    excluded."""
    if not answer.ok:
        return "it failed"
    excluded = isinstance(value, Mapping) and set(value) == {"not"}
    return "the call that was made in its place has no such value" if excluded else None


def _only_failure(record: CallRecord) -> Failure | None:
    """Return the call's own failure, or else that of the first failed partition."""
    if record.answer.failure is not None:
        return record.answer.failure
    return next((each for each in record.answer.partitions.values() if each is not None), None)


def _delivered(record: CallRecord) -> dict[str, list[Any]]:
    """Return the values of the records that the consumer returned, by partition, in their order."""
    found: dict[str, list[Any]] = {}
    for each in record.answer.records:
        value = each.get("value")
        shown = value.rstrip(" ") if isinstance(value, str) else value
        found.setdefault(f"{each.get('topic')}-{each.get('partition')}", []).append(shown)
    return found


def _misplaced(record: CallRecord, played: Evidence) -> str | None:
    """Return the first record that is not where the client reports that it was written.

    A client that names the offset of the batch alone has ``base_offset`` in place of ``offset``.
    """
    items = record.answer.result if isinstance(record.answer.result, list) else []
    for name, item in zip(record.answer.partitions, items, strict=False):
        if not isinstance(item, dict) or "error" in item:
            continue
        place = f"{item.get('topic')}-{item.get('partition')}"
        batches = played.logs.get(place, {}).get("batches", ())
        offsets = [
            offset
            for batch in batches
            for offset, value in zip(batch["offsets"], batch["values"], strict=True)
            if value == name
        ]
        if "offset" in item and item["offset"] not in offsets:
            return f"{name} is not at offset {item['offset']} of {place}, but at {offsets}"
        if not any(offset >= item.get("base_offset", 0) for offset in offsets):
            return f"{name} is not in {place}: {item}"
    return None


def _outcome_problem(record: CallRecord, key: str, wanted: str | list[str]) -> str | None:
    try:
        failure = record.answer.outcome(key)
    except KeyError:
        return "the client gave no outcome"
    if wanted == "ok" or (isinstance(wanted, list) and "ok" in wanted and failure is None):
        return None if failure is None else f"error {failure}"
    return _failure_problem(failure, wanted)


def _failure_problem(failure: Failure | None, wanted: str | list[str]) -> str | None:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if failure is None:
        return "it reports success"
    if not failure.kinds & set(kinds):
        seen = ", ".join(sorted(failure.kinds - {"any"})) or "any"
        return f"the error is of kind {seen}, not {' or '.join(kinds)}"
    return None


def _short(text: str) -> str:
    return text if len(text) <= 240 else text[:239] + "…"
