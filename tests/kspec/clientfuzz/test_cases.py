"""A case says the same to a client however it is told: as a mutation's bytes, as a rule of faults,
and out of its file. And what is concluded from what a client did."""

from __future__ import annotations

import json
import random

import pytest

import kproto
from kspec.answers import Answer
from kspec.clientfuzz.clients.case import Case, CaseError
from kspec.clientfuzz.clients.causes import cause, normalised
from kspec.clientfuzz.clients.judge import (
    FINDINGS,
    OBSERVATIONS,
    Limits,
    Observation,
    Outcome,
    judge,
    top_frame,
)
from kspec.clientfuzz.clients.minimiser import minimised
from kspec.clientfuzz.clients.random_cases import Target, draw_case
from kspec.clientfuzz.mutate import MutationError, mutate, mutation_of
from kspec.clientfuzz.process_usage import Usage
from kspec.error_kinds import Failure
from mockbroker.faults import fault_of
from mockbroker.faults.frame_edits import edit_fields, edit_frame
from tests.kspec.clientfuzz.test_mutate import KAFKA, good_frame, some_frames

LISTED = good_frame(46, 0)


def case_of(mutation=None, **members) -> Case:
    members = {"op": "list_reassignments", "api_key": 46, "version": 0, "nth": 1, **members}
    return Case(mutation=mutation, **members)


def test_the_rule_gives_the_bytes_of_the_mutation(rng):
    for frame, api_key, version, direction in some_frames(rng, 120):
        if direction == "request":
            continue
        made = mutate(frame, api_key, version, rng, depth=rng.randint(1, 3))
        case = case_of(made, api_key=api_key, version=version)
        fault = fault_of(case.rule())
        assert fault.as_version == made.as_version
        at = version if made.as_version is None else made.as_version
        sent, problems = edit_fields(KAFKA, made.base, fault, api_key=api_key, version=at)
        assert problems == []
        assert edit_frame(sent, fault) + bytes.fromhex(fault.follow_with or "") == made.frame
        read = Case.from_json(json.dumps(case.to_dict()))
        assert read == case
        assert read.rule() == case.rule()


def test_a_file_that_holds_no_case_is_told():
    good = case_of(mutation_of(LISTED, 46, 0, 1)).to_dict()
    for broken in ({}, {**good, "op": "x"}, {**good, "mutation": {}}, {**good, "nth": "x"}):
        with pytest.raises(CaseError):
            Case.from_json(json.dumps(broken))
    with pytest.raises(CaseError, match="not JSON"):
        Case.from_json("{")


@pytest.mark.slow
def test_cases_are_the_same_by_seed_and_number():
    targets = [
        Target("list_reassignments", 46, 0, 1, LISTED),
        Target("list_topics", 3, 12, 1, good_frame(3, 12)),
        Target("list_topics", 3, 12, 2, good_frame(3, 12, pattern="null")),
    ]
    drawn = [draw_case(targets, 7, number) for number in range(120)]
    assert drawn == [draw_case(targets, 7, number) for number in range(120)]
    assert drawn != [draw_case(targets, 8, number) for number in range(120)]
    assert {case.api_key for case in drawn} == {46, 3}
    assert {case.persistent for case in drawn} == {True, False}
    assert any(case.delivery for case in drawn)
    for case in drawn:
        fault_of(case.rule())
    with pytest.raises(MutationError):
        draw_case(targets[:1], 7, 0, kinds={"real"})


async def test_minimising_keeps_what_matters():
    """Of three changes, sent oddly and each time, the one that a verdict hangs on is left."""
    for seed in range(400):
        made = mutation_of(LISTED, 46, 0, seed, depth=3)
        if "null-forbidden" in made.kind and len(made.changes) == 3:
            break
    else:
        raise AssertionError("no seed has a null among three changes")
    played = 0

    async def same(case: Case) -> bool:
        nonlocal played
        played += 1
        return "null-forbidden" in case.kinds

    small = await minimised(case_of(made, persistent=True, delivery={"split": 1}), same)
    assert small.kinds == ("null-forbidden",)
    assert (small.persistent, dict(small.delivery)) == (False, {})
    assert played <= 30

    async def nothing(_case: Case) -> bool:
        return False

    case = case_of(made)
    assert await minimised(case, nothing) == case


async def test_minimising_brings_bytes_nearer_to_what_they_were():
    for seed in range(200):
        made = mutation_of(LISTED, 46, 0, seed, kinds=["uuid", "number", "error-unknown"])
        (change,) = made.changes
        (edit,) = change.edits
        before = made.base[edit.offset : edit.offset + edit.length]
        if sum(a != b for a, b in zip(edit.data, before, strict=True)) > 1:
            break
    else:
        raise AssertionError("no seed changes two bytes")

    async def same(case: Case) -> bool:
        return case.mutation is not None and case.mutation.frame != LISTED

    small = await minimised(case_of(made), same)
    (edit,) = small.changes[0].edits
    assert sum(a != b for a, b in zip(edit.data, before, strict=True)) == 1


# ---- what is concluded ---------------------------------------------------------------------------

OK = Answer({"foo-1": {"replicas": [1], "adding": [], "removing": []}})
FAILED = Answer(failure=Failure("ConnectionError", None, "no"))
NOW = Usage(1.0, 1.0, 1 << 20, 1 << 20, 1 << 20)
LATER = NOW._replace(cpu=1.1, wanted=1.1)


def seen(**members) -> Observation:
    fine = {"healthy": OK, "probe": OK, "answer": OK, "same_client": OK, "before": NOW}
    return Observation(**{**fine, "after": LATER, "sent": [LISTED], "answers": 1, **members})


def nulled() -> Case:
    return case_of(mutation_of(LISTED, 46, 0, 2, kinds=["null-forbidden"]))


VERDICTS = [
    ("fine", seen(answer=FAILED)),
    ("void", seen(sent=[])),
    ("crash", seen(broken="the client's process ended by SIGSEGV: without a word")),
    ("crash", seen(answer=Answer(failure=Failure("died", None, "ended by signal 11")))),
    ("memory", seen(broken="the client's process ended", stderr="fatal error: out of memory")),
    ("hang", seen(broken="hung: no answer in 12 s", hung=True)),
    ("memory", seen(after=LATER._replace(peak=1 << 30))),
    ("memory", seen(after=LATER._replace(mapped=1 << 40))),
    ("memory", seen(answer=Answer(failure=Failure("MemoryError")))),
    ("cpu", seen(after=LATER._replace(cpu=9.0))),
    ("cpu", seen(idle_cpu=0.97)),
    ("stuck", seen(same_client=FAILED, new_client=FAILED)),
    ("wedged", seen(same_client=FAILED, new_client=OK, answer=FAILED)),
    ("internal-error", seen(answer=Answer(failure=Failure("TypeError", None, "x of null")))),
    ("background-error", seen(stderr="Exception in thread 7:\nTraceback (most recent call last):")),
]


@pytest.mark.parametrize(("verdict", "what"), VERDICTS)
def test_verdicts(verdict, what):
    outcome = judge(nulled(), what, Limits())
    assert outcome.verdict == verdict
    assert outcome.is_finding == (verdict in FINDINGS)
    assert outcome.is_observation == (verdict in OBSERVATIONS)


def meaning_case(kind: str, accept=lambda change: True) -> tuple[Case, bytes]:
    for seed in range(300):
        made = mutation_of(LISTED, 46, 0, seed, kinds=[kind])
        if accept(made.changes[0]):
            return case_of(made), made.frame
    raise AssertionError(f"no seed gives such a {kind}")


def result_of(frame: bytes) -> Answer:
    _, body = kproto.decode_response(frame, api_key=46, api_version=0)
    return Answer(
        {
            f"{topic.name}-{each.partition_index}": {
                "replicas": each.replicas,
                "adding": each.adding_replicas,
                "removing": each.removing_replicas,
            }
            for topic in body.topics
            for each in topic.partitions
        }
    )


def test_a_result_is_held_against_what_the_bytes_say():
    frame = LISTED[:13] + b"\x00\x00" + LISTED[15:]  # without the error of the filled pattern
    made = mutation_of(frame, 46, 0, 1, kinds=["element-gone"])
    case = case_of(made)
    right = result_of(made.frame)
    told = seen(answer=right, sent=[made.frame])
    assert judge(case, told, Limits()).verdict == "fine"
    assert judge(case, seen(answer=Answer({}), sent=[made.frame]), Limits()).verdict == "wrong"


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (None, "fine"),  # it does not say so, and that is what the bytes say
        ({"error": "Unknown", "code": -1}, "fine"),
        ({"error": "Timeout", "code": 7}, "fine"),
        ({"error": "NotController", "code": 41}, "wrong"),
    ],
)
def test_an_error_of_a_partition_is_wrong_only_where_no_broker_sent_it(error, verdict):
    schema_frame = good_frame(45, 0, pattern="default")
    asked = {"op": "alter_reassignments", "api_key": 45}
    made = mutation_of(schema_frame, 45, 0, 3, kinds=["number"])
    frame = KAFKA.encode_response(
        KAFKA.message("AlterPartitionReassignmentsResponse").from_json(
            {
                "throttleTimeMs": 5, "errorCode": 0, "errorMessage": None,
                "responses": [{"name": "bar", "partitions": [
                    {"partitionIndex": 0, "errorCode": 0, "errorMessage": None}]}],
            }, 0),
        api_version=0, correlation_id=3,
    )  # fmt: skip
    healthy = Answer.of({"ok": True, "result": {"bar-0": None, "other-0": None}})
    answer = Answer.of({"ok": True, "result": {"bar-0": error}})
    told = seen(healthy=healthy, answer=answer, sent=[frame])
    assert judge(case_of(made, **asked), told, Limits()).verdict == verdict


def test_a_broken_answer_taken_for_a_good_one():
    case, frame = meaning_case("length-below", lambda change: change.path == "topics")
    told = judge(case, seen(sent=[frame]), Limits())
    assert told.verdict == "lenient"
    assert judge(case, seen(sent=[frame], answer=Answer({})), Limits()).verdict == "wrong"
    assert judge(case, seen(sent=[frame], answer=FAILED), Limits()).verdict == "fine"
    # It asked again, and was told the truth: nobody knows that it took the broken one.
    assert judge(case, seen(sent=[frame], answers=2), Limits()).verdict == "fine"


def test_a_valid_answer_that_is_refused():
    case, frame = meaning_case("tag-unknown")
    assert judge(case, seen(sent=[frame], answer=FAILED), Limits()).verdict == "refuses"
    split = case_of(None, delivery={"split": 1})
    assert judge(split, seen(answer=FAILED), Limits()).verdict == "refuses"


TRACES = {
    "kafka/conn.py _recv": 'Traceback (most recent call last):\n  File "/x/main.py", line 3, in f\n'
    '    g()\n  File "/v/site-packages/kafka/conn.py", line 9, in _recv\n    x()\nKeyError: 3\n',
    "kafkajs/src/decoder.js Decoder.readInt32": "RangeError: no\n"
    "    at boundsError (node:internal/buffer:86:11)\n"
    "    at Decoder.readInt32 (/c/node_modules/kafkajs/src/decoder.js:62:31)\n",
    "org.apache.kafka.Foo.read": "java.lang.Error: no\n\tat org.apache.kafka.Foo.read(Foo.java:3)\n"
    "\tat org.apache.kafka.Bar.run(Bar.java:9)\n",
    "github.com/x/y.(*z).decode": "panic: runtime error: index\n\ngoroutine 1 [running]:\n"
    "panic(0x1, 0x2)\ngithub.com/x/y.(*z).decode(0xc0, 0x1)\n\t/x/y.go:1\nmain.main()\n",
    "a.c parse": "python: a.c:960: parse: Assertion `x' failed.\nFatal Python error: Aborted\n\n"
    'Thread 0x1 (most recent call first):\n  File "/usr/threading.py", line 3 in wait\n',
    "": "without a word",
}


@pytest.mark.parametrize(("frame", "text"), TRACES.items())
def test_the_innermost_function_of_a_stack(frame, text):
    assert top_frame(text) == frame


def test_causes_do_not_differ_by_chance():
    one = Outcome("crash", "connect: 127.0.0.1:40001 said 17 at 0xc000: 'foo'")
    other = Outcome("crash", "connect: 127.0.0.1:33391 said 3 at 0xffee: 'bar-9'")
    assert cause(nulled(), one) == cause(nulled(), other)
    assert cause(nulled(), one) != cause(nulled(), Outcome("crash", "connect: another thing"))
    assert "40001" not in normalised(one.message)
    at = Outcome("crash", "x ValueError y", "a.py f")
    assert cause(nulled(), at) == cause(case_of(delivery={"split": 1}), at)


def test_draws_do_not_depend_on_the_global_generator():
    random.seed(1)
    one = mutation_of(LISTED, 46, 0, 5)
    random.seed(2)
    assert mutation_of(LISTED, 46, 0, 5) == one
