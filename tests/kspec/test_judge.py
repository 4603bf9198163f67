"""Verdicts out of evidence: each way of being broken is seen, and a clean play passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kproto import encode_request, encode_response
from kproto.journal import Entry
from kproto.messages import ApiVersionsRequest, ApiVersionsResponse
from kspec.answers import Answer
from kspec.error_kinds import Failure
from kspec.judge import (
    MOST_CONNECTIONS,
    MOST_MEMORY_MIB,
    Finding,
    Judgement,
    judge,
    longest_call_ms,
    severity_of,
    worst,
)
from kspec.model import Case, Expectation, Selector
from kspec.traffic import CallRecord, Evidence

MS = 1_000_000


def case(**members: Any) -> Case:
    base = {"title": "t", "source": "KIP-1", "about": "a", "wrong": {"by": "w"}}
    return msgspec.convert(base | members, Case)


def entry(number: int, **members: Any) -> Entry:
    """By default a request for ApiVersions v3 on connection 1, a hundred milliseconds apart."""
    said: dict[str, Any] = {
        "sequence": number,
        "timestamp_ns": number * 100 * MS,
        "broker_id": 1,
        "connection_id": 11,
        "direction": "request",
        "api_key": 18,
        "api_version": 3,
    }
    return Entry(**(said | members))


def played(*entries: Entry, result: Any = None, **members: Any) -> Evidence:
    answer = result if isinstance(result, Answer) else Answer(result=result)
    last = len(entries)
    call = CallRecord("call", "describe_cluster", 0, last, 40.0, answer)
    connected = entry(1, direction="event", api_key=None, event="connected")
    return Evidence(entries=list(entries) or [connected], calls={"call": call}, **members)


def verdict(expectation: dict[str, Any], evidence: Evidence, level: str = "must") -> Judgement:
    return judge(case(**{level: [{"says": "it does", **expectation}]}), evidence)


THREE = [entry(1), entry(2, connection_id=12), entry(3, connection_id=12, api_version=0)]


@pytest.mark.parametrize(
    ("expectation", "holds"),
    [
        ({"requests": {"api": "ApiVersions"}}, True),
        ({"requests": {"api": 18}, "count": 3}, True),
        ({"requests": {"api": "API_VERSIONS"}, "count": "0-2"}, False),
        ({"requests": {"api": "Metadata"}}, False),
        ({"requests": {"api": "Metadata"}, "count": 0}, True),
        ({"requests": {"other_than": "Metadata"}, "count": 3}, True),
        ({"requests": {"api": ["Metadata", 18], "version": "1+"}, "count": 2}, True),
        ({"requests": {"connection": 2}, "count": 2}, True),
        ({"requests": {"broker": [2, 3]}}, False),
        ({"requests": {}, "count": "1-2", "per": "connection"}, True),
        ({"requests": {}, "count": 1, "per": "connection"}, False),
        ({"requests": {}, "count": "1-2", "per": "broker"}, False),
        ({"requests": {}, "count": 2, "distinct": "connection"}, True),
        ({"requests": {}, "count": 1, "distinct": "version"}, False),
        ({"requests": {}, "each": {"api": 18}}, True),
        ({"requests": {}, "each": {"version": 3}}, False),
        ({"requests": {}, "gaps_ms": "90-110"}, True),
        ({"requests": {}, "gaps_ms": "150+"}, False),
        ({"requests": {}, "within_ms": "0-200"}, True),
        ({"requests": {}, "within_ms": "0-199"}, False),
        ({"requests": {"nth": 3}, "each": {"version": 0}}, True),
        ({"requests": {"nth": 4}}, False),
        ({"requests": {"after_first": {"api": 18, "nth": 2}}, "count": 1}, True),
        ({"requests": {"before_first": {"version": 0}}, "count": 2}, True),
        ({"requests": {"during": "call"}, "count": 3}, True),
        ({"requests": {"since": "call", "until": "call"}, "count": 3}, True),
        ({"responses": {}}, False),
        ({"order": [{"says": "a", "requests": {"version": 3}},
                    {"says": "b", "requests": {"version": 0}}]}, True),
        ({"order": [{"says": "a", "requests": {"version": 0}},
                    {"says": "b", "requests": {"version": 3}}]}, False),
        ({"any_of": [{"says": "a", "requests": {"version": 7}},
                     {"says": "b", "requests": {"version": 0}}]}, True),
        ({"any_of": [{"says": "a", "requests": {"version": 7}},
                     {"says": "b", "requests": {"version": 8}}]}, False),
        ({"state": {"topics": {"foo": {"0": {"leader": 1}}}}}, True),
        ({"state": {"topics": {"foo": {"0": {"leader": 2}}}}}, False),
    ],
)  # fmt: skip
def test_what_is_said_of_the_wire_holds_or_not(expectation, holds):
    evidence = played(*THREE, state={"topics": {"foo": {0: {"leader": 1}}}})
    assert verdict(expectation, evidence).verdict == ("pass" if holds else "fail")
    assert verdict(expectation, evidence, "must_not").verdict == ("fail" if holds else "pass")
    assert verdict(expectation, evidence, "should").verdict == ("pass" if holds else "non-strict")
    judged = verdict(expectation, evidence, "should_not").verdict
    assert judged == ("non-strict" if holds else "pass")
    assert verdict(expectation, evidence, "may").verdict == "informational"


def test_pauses_have_to_grow():
    def at(*milliseconds: int) -> Evidence:
        return played(*(entry(n, timestamp_ns=ms * MS) for n, ms in enumerate(milliseconds, 1)))

    growing = {"requests": {}, "growing": True}
    assert verdict(growing, at(0, 100, 300, 700)).verdict == "pass"
    assert verdict(growing, at(0, 100, 180, 340)).verdict == "pass", "shaken by a fifth"
    assert verdict(growing, at(0, 250, 450, 850, 1650)).verdict == "pass", "the first is late"
    late_last = at(0, 100, 200, 300, 400, 800)
    for even in (at(0, 100, 200, 300), at(0, 100, 210, 330), late_last, at(0, 100), at(0)):
        assert verdict(growing, even).verdict == "fail"


def test_bodies_are_read():
    request = ApiVersionsRequest(client_software_name="me", client_software_version="1")
    response = ApiVersionsResponse(error_code=35)
    talk = played(
        entry(1, raw=encode_request(request, api_version=3, correlation_id=1)),
        entry(
            2, direction="response", raw=encode_response(response, api_version=3, correlation_id=1)
        ),
    )
    named = {"requests": {"body": {"clientSoftwareName": "me"}}}
    assert verdict(named, talk).verdict == "pass"
    assert verdict({"responses": {"body": {"errorCode": 35}}}, talk).verdict == "pass"
    assert verdict({"responses": {"body": {"errorCode": 0}}}, talk).verdict == "fail"


FAILED = Answer(failure=Failure("E", 41, "not me"))
MIXED = Answer({"a": 1}, partitions={"foo-0": None, "foo-1": Failure("E", 85, "none")})


@pytest.mark.parametrize(
    ("answer", "expectation", "holds"),
    [
        (Answer({"a": [1, 2]}), {"success": True, "value": {"a": [1, "2+"]}}, True),
        (Answer({"a": [1, 2]}), {"value": {"a": [2, 1]}}, False),
        (FAILED, {"success": True}, False),
        (FAILED, {"value": "*"}, False),
        (FAILED, {"error": "NOT_CONTROLLER", "message": "/me/"}, True),
        (FAILED, {"error": ["timeout", "no-controller"]}, True),
        (FAILED, {"error": "timeout"}, False),
        (FAILED, {"message": "/you/"}, False),
        (FAILED, {"outcomes": {"foo-0": "NOT_CONTROLLER"}}, True),
        (MIXED, {"success": False}, True),
        (MIXED, {"outcomes": {"foo-0": "ok", "foo-1": "NO_REASSIGNMENT_IN_PROGRESS"}}, True),
        (MIXED, {"outcomes": {"foo-1": "ok"}}, False),
        (MIXED, {"outcomes": {"foo-0": "any"}}, False),
        (MIXED, {"outcomes": {"foo-2": "ok"}}, False),
        (MIXED, {"outcomes": {"foo-0": ["ok", "timeout"]}}, True),
        (MIXED, {"error": "NO_REASSIGNMENT_IN_PROGRESS"}, True),
        (Answer(None), {"error": "any"}, False),
        (Answer(None), {"within_ms": "0-50"}, True),
        (Answer(None), {"within_ms": "50+"}, False),
    ],
)
def test_what_is_said_of_a_result_holds_or_not(answer, expectation, holds):
    judged = verdict({"result": "call", **expectation}, played(result=answer))
    assert judged.verdict == ("pass" if holds else "fail"), judged.why


def test_unsupported_is_neither_pass_nor_fail():
    expectation = {"result": "call", "success": True}
    lacks = played(result=Answer(unsupported="no such call"))
    judged = verdict(expectation, lacks)
    assert (judged.verdict, judged.why) == ("unsupported", "describe_cluster: no such call")
    applies = [{"says": "it begins", "requests": {"api": 3}}]
    judged = judge(case(applies=applies, must=[{"says": "x", **expectation}]), played(*THREE))
    assert (judged.verdict, judged.why.split(":")[0]) == ("unsupported", "it begins")
    blocked = played(*THREE, blocked="failover 9: no broker")
    judged = judge(case(applies=applies, must=[{"says": "x", **expectation}]), blocked)
    assert judged.verdict == "unsupported"
    assert judged.why.endswith("; the case ended at failover 9: no broker")


def test_a_process_that_died_fails_whatever_else_holds():
    judged = verdict({"requests": {}}, played(*THREE, broken="it died"))
    assert (judged.verdict, judged.why) == ("fail", "it died")


BLOCKED = {"blocked": "join-isr foo-0 4: no replica"}
NO_FAULT = {"failed_faults": ["the fault api=22 failed: fence-producer t: no id"]}
UNHIT = {"unhit": ["api=3 error=5"]}
UNMET = {"unmet": ["2 of requests {'api': 'JoinGroup'} in 300 ms"]}


@pytest.mark.parametrize(
    "undone", [BLOCKED, NO_FAULT, UNHIT, UNMET], ids=["step", "fault", "unhit", "wait"]
)
def test_a_case_that_did_not_happen_is_an_error_with_its_reason(undone):
    ((text,),) = ([each] if isinstance(each, str) else each for each in undone.values())
    judged = verdict({"requests": {}}, played(*THREE, **undone))
    assert judged.verdict == "error"
    assert text in judged.why


def test_what_of_a_case_that_did_not_happen_comes_first():
    """A missing call, then a fault that no request triggered, then a broken must, then the rest."""
    lacks = Answer(unsupported="no such call")
    broken = {"result": "call", "success": False}
    for undone in (BLOCKED, NO_FAULT, UNHIT):
        assert verdict(broken, played(*THREE, result=lacks, **undone)).verdict == "unsupported"
    assert verdict(broken, played(*THREE, **BLOCKED)).verdict == "fail"
    assert verdict(broken, played(*THREE, **NO_FAULT)).verdict == "fail"
    assert verdict(broken, played(*THREE, **UNHIT)).verdict == "error"
    assert verdict(broken, played(*THREE, **BLOCKED), "should").verdict == "error"
    assert verdict(broken, played(*THREE, **UNMET), "should").verdict == "non-strict"
    assert verdict(broken, played(*THREE, broken="it died", **BLOCKED)).verdict == "fail"
    assert verdict(broken, played(*THREE, fault="no line", **BLOCKED)).why == "no line"


ANCHOR = {"direction": "response", "api": "Metadata"}


@pytest.mark.parametrize("level", ["must", "must_not", "should", "should_not"])
@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"after_first": ANCHOR}, "there is no response from which it counts"),
        ({"before_first": ANCHOR}, "there is no response from which it counts"),
        ({"after_first": {"api": 18, "nth": 4}}, "there is no request from which it counts"),
        ({"since": "later"}, "the call later was never made"),
        ({"until": "later", "api": 3}, "the call later was never made"),
        ({"during": "later"}, "the call later was never made"),
    ],
)
def test_a_check_of_a_part_of_the_play_that_never_came_is_an_error(level, selector, why):
    count = {"count": 0} if level in ("must", "should") else {}
    judged = verdict({"requests": selector, **count}, played(*THREE), level)
    assert (judged.verdict, judged.findings[0].holds) == ("error", None)
    assert judged.why == f"the case never came to “it does”: {why}"


@pytest.mark.parametrize(
    "expectation",
    [
        {"requests": {"api": 3}, "count": "0+", "each": {"version": 3}},
        {"requests": {"api": 3, "partition": "foo-0"}, "count": "0-9", "same": ["producerId"]},
        {"requests": {"api": 3}, "count": "0+", "distinct": "broker"},
        {"result": "call", "placed": True},
        {"result": "later", "success": True},
        {"any_of": [{"says": "x", "result": "call", "placed": True},
                    {"says": "y", "result": "later", "success": True}]},
    ],
)  # fmt: skip
def test_a_check_of_nothing_is_an_error(expectation):
    judged = verdict(expectation, played(*THREE, result=[]))
    assert judged.verdict == "error", judged
    assert judged.why.startswith("the case never came to “it does”: ")


def test_a_check_of_something_is_none():
    for expectation in (
        {"requests": {"api": 18}, "count": "0+", "each": {"api": 18}},
        {"requests": {"api": 3}, "count": 0},
        {"requests": {"api": 3, "after_first": {"api": 18}}, "count": 0},
        {"any_of": [{"says": "x", "result": "call", "placed": True},
                    {"says": "y", "requests": {"api": 18}}]},
    ):  # fmt: skip
        assert verdict(expectation, played(*THREE, result=[])).verdict == "pass"
    may = played(*THREE)
    judged = judge(case(may=[{"says": "x", "requests": {"after_first": ANCHOR}}]), may)
    assert judged.verdict == "informational"


@pytest.mark.parametrize(("timeout_ms", "longest"), [(2000, 10_000), (500, 7_000)])
def test_a_call_has_to_end_in_a_time_that_follows_from_the_time_out(timeout_ms, longest):
    """Whatever the case asks for, and whatever the call came to."""
    asked = case(client={"timeout_ms": timeout_ms}, must=[{"says": "x", "requests": {}}])

    def lasting(milliseconds: float, **members: Any) -> Judgement:
        call = CallRecord("call", "list_topics", 0, 3, milliseconds, Answer([]))
        return judge(asked, Evidence(entries=list(THREE), calls={"call": call}, **members))

    assert longest_call_ms(timeout_ms) == longest
    assert lasting(longest).verdict == "pass"
    judged = lasting(longest + 1)
    assert judged.verdict == "fail"
    assert judged.why == (
        f"not met: every call ends in time: call took {longest + 1} ms, more than {longest}, "
        f"with a timeout of {timeout_ms}"
    )
    assert lasting(longest + 1, wire_only=True).verdict == "pass", "nobody passed the time-out on"


def test_no_call_may_open_connections_without_end():
    def opened(count: int) -> Judgement:
        events = [
            entry(number, direction="event", event="connected", connection_id=number)
            for number in range(1, count + 1)
        ]
        return verdict({"events": {}, "count": "1+"}, played(*events))

    assert opened(MOST_CONNECTIONS).verdict == "pass"
    judged = opened(MOST_CONNECTIONS + 1)
    assert judged.verdict == "fail"
    assert judged.why == "opens connections without end: 51 during call, more than 50"


def test_no_case_may_make_a_process_grow_without_end():
    def grown(mebibytes: int) -> Judgement:
        return verdict({"events": {}, "count": "0+"}, Evidence(memory_growth=mebibytes * 2**20))

    assert grown(MOST_MEMORY_MIB).verdict == "pass"
    judged = grown(MOST_MEMORY_MIB + 1)
    assert judged.why == (
        "allocates far more than it receives: its process grew by 257 MiB, more than 256"
    )
    assert (judged.verdict, judged.severity) == ("fail", "resources")


def test_the_wire_alone_passes_nobody_for_results():
    result = {"result": "call", "success": True}
    alone = played(*THREE, wire_only=True)
    assert verdict(result, alone).verdict == "unsupported"
    both = judge(case(must=[{"says": "x", **result}, {"says": "y", "requests": {}}]), alone)
    assert (both.verdict, both.why) == ("pass", "judged by its traffic alone")
    assert [each.holds for each in both.findings] == [None, True]


def test_of_alternatives_one_that_holds_is_enough_and_one_unjudged_leaves_it_open():
    result = {"says": "it succeeds", "result": "call", "success": True}
    lacking = {"says": "it asks", "requests": {"api": 3}}
    either = {"any_of": [lacking, result]}
    assert verdict(either, played(*THREE)).verdict == "pass"
    judged = verdict(either, played(*THREE, result=FAILED))
    assert judged.verdict == "fail"
    assert "not “it asks”: 0 requests" in judged.why
    assert "not “it succeeds”: it failed" in judged.why
    assert verdict(either, played(*THREE, wire_only=True)).verdict == "unsupported"
    assert verdict({"any_of": [result, {"says": "it asks", "requests": {"api": 18}}]},
                   played(*THREE, wire_only=True)).verdict == "pass"  # fmt: skip


def test_the_worst_variant_counts_and_one_without_a_part_in_it_last():
    judged = {name: Judgement(name) for name in ("fail", "non-strict", "pass", "unsupported")}
    assert worst([judged["pass"], judged["fail"], judged["unsupported"]]).verdict == "fail"
    assert worst([judged["pass"], judged["non-strict"]]).verdict == "non-strict"
    assert worst([judged["unsupported"], judged["pass"]]).verdict == "pass"
    assert worst([judged["unsupported"]]).verdict == "unsupported"


@pytest.mark.parametrize(
    ("level", "members", "severity"),
    [
        ("must", {"result": "list", "success": True}, "wrong result"),
        ("must", {"state": {}}, "wrong result"),
        ("must_not", {"requests": Selector(api="Metadata")}, "wrong result"),
        ("must", {"requests": Selector(api="Metadata"), "count": 1}, "wrong result"),
        ("must", {"requests": Selector(api="Metadata"), "count": "2+"}, "wrong result"),
        ("must", {"requests": Selector(api="Metadata"), "count": "1-50"}, "resources"),
        ("must", {"requests": Selector(api="Metadata"), "gaps_ms": "20+"}, "resources"),
        ("must", {"events": Selector(event="connected"), "growing": True}, "resources"),
        ("should", {"result": "list", "success": True}, "cosmetic"),
        ("should_not", {"requests": Selector(api="Metadata"), "count": "1-50"}, "cosmetic"),
        ("must_not", {"requests": Selector(), "severity": "security"}, "security"),
        ("should", {"result": "list", "severity": "data loss"}, "data loss"),
    ],
)
def test_a_severity_is_derived_unless_it_is_given(level, members, severity):
    assert severity_of(level, Expectation(says="it", **members)) == severity


def test_a_judgement_has_the_worst_severity_of_what_is_broken():
    findings = [
        Finding("should", "a", False, "", severity="cosmetic"),
        Finding("must", "b", False, "", severity="resources"),
        Finding("must", "c", True, "", severity="data loss"),
        Finding("may", "d", False, "", severity="data loss"),
    ]
    assert Judgement("fail", "", tuple(findings)).severity == "resources"
    assert Judgement("pass", "", tuple(findings[2:])).severity is None


def test_a_client_that_fails_without_a_connection_fails_the_case():
    failed = Answer(failure=Failure("E", None, "no"))
    call = CallRecord("call", "describe_cluster", 0, 0, 4.0, failed)
    evidence = Evidence(calls={"call": call})
    found = verdict({"result": "call", "success": False}, evidence)
    assert found.verdict == "fail"
    assert found.why.endswith("connects to a broker: every call failed without that: error E: no")
    wire = Evidence(calls={"call": call}, wire_only=True)
    assert verdict({"result": "call", "success": False}, wire).verdict == "unsupported"
    evidence.calls["other"] = CallRecord("other", "list_topics", 0, 0, 4.0, Answer(result=[]))
    assert verdict({"result": "call", "success": False}, evidence).verdict == "pass"
    unseen = Evidence(calls={"call": call}, shows_attempts=False)
    assert verdict({"result": "call", "success": False}, unseen).verdict == "pass"


@pytest.mark.parametrize("event", ["connected", "client-hello"])
def test_a_connection_without_a_request_is_an_attempt(event):
    failed = Answer(failure=Failure("E", None, "no"))
    call = CallRecord("call", "describe_cluster", 0, 0, 4.0, failed)
    evidence = Evidence(calls={"call": call}, entries=[entry(1, direction="event", event=event)])
    assert verdict({"result": "call", "success": False}, evidence).verdict == "pass"
