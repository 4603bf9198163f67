"""Whatever an adapter writes is an answer of its call's shape, or an error of the case with the
line in it; the other cases go on, and the report is whole."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.adapter_protocol import ADAPTER_CALLS, AdapterCall, ByKey, Listed, read_answer, read_line
from kspec.case_parser import parse_case
from kspec.errors import AdapterFault
from kspec.report import as_client_html, as_html, as_json, as_junit
from kspec.results import Greeting, Report
from kspec.runner import schedule
from kspec.runner.adapters import LocalAdapter
from kspec.runner.schedule import run
from tests.kspec.fixed_answers import FIXED_CALLS

EXPECTED = json.loads(Path(__file__).with_name("fixed_answers.json").read_text())

every_call = pytest.mark.parametrize("call", ADAPTER_CALLS, ids=lambda call: call.name)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


def fits(kind: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def is_wrong(call: AdapterCall, value: Any) -> bool:
    """A second reading of the shapes. Null stands for a result that cannot be read."""
    if value is None:
        return False
    shape = call.shape
    if isinstance(shape, ByKey):
        if not isinstance(value, dict):
            return True
        items = list(value.values())
    elif isinstance(shape, Listed):
        if not isinstance(value, list):
            return True
        items = value
    else:
        return not fits(shape.type, value)
    return any(
        not isinstance(each["error"], str | None)
        if isinstance(each, dict) and "error" in each
        else not fits(shape.item, each)
        for each in items
    )


def wrong_results(call: AdapterCall) -> st.SearchStrategy[Any]:
    """Values of a wrong type, with items of a wrong type among them."""
    items = VALUES | st.just({"error": 5}) | st.just(["foo"]) | st.just({"replicas": "1"})
    values = VALUES | st.lists(items, min_size=1) | st.dictionaries(st.text(), items, min_size=1)
    return values.filter(lambda value: is_wrong(call, value))


WRONG_ANSWERS: st.SearchStrategy[Any] = st.sampled_from([
    {}, {"ok": None}, {"ok": 1}, {"ok": "true"}, {"ok": True, "raw": 5}, {"unsupported": 5},
    {"ok": False, "error": 5}, {"ok": False, "code": "5"}, {"ok": False, "errors": 5},
    {"ok": False, "cause": [1]}, {"ok": False, "partitions": [1]}, {"ok": False, "records": [None]},
    {"ok": False, "partitions": {"foo-0": 5}}, {"ok": False, "errors": [None]}, [], 5, None, "ok",
])  # fmt: skip


# ---- one answer ----------------------------------------------------------------------------------


@every_call
@settings(max_examples=15)
@given(data=st.data())
def test_a_result_of_another_shape_is_refused_with_its_line(call, data):
    said = {"ok": True, "result": data.draw(wrong_results(call))}
    with pytest.raises(AdapterFault) as caught:
        read_answer(call.name, said)
    text = str(caught.value)
    assert text.startswith(f"not a line of the protocol: the answer to {call.name}: ")
    assert json.dumps(said)[:20].replace("\\", "\\\\").split("'")[0] in text
    assert len(text) < 1000


@every_call
@settings(max_examples=10)
@given(said=WRONG_ANSWERS)
def test_an_answer_of_another_shape_is_refused(call, said):
    with pytest.raises(AdapterFault, match="not a line of the protocol"):
        read_answer(call.name, said)


@every_call
def test_null_is_a_result_that_an_application_cannot_read(call):
    assert read_answer(call.name, {"ok": True, "result": None}).ok


@pytest.mark.parametrize("client", EXPECTED)
def test_the_shapes_are_those_of_released_clients(client):
    for name, said in EXPECTED[client].items():
        read_answer(FIXED_CALLS[name].call, said)


# ---- one line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\n", "not JSON"),
        (b'{"ok": tr\n', "not JSON"),
        (b'{"ok": true} {"ok": true}\n', "not JSON"),
        (b'{"ok": true, "result": NaN}\n', "has NaN"),
        (b'{"ok": true, "result": -Infinity}\n', "has -Infinity"),
        (b'{"ok": true, "result": 1e999}\n', "a number is too large"),
        (b'{"ok": true, "result": ' + b"9" * 5000 + b"}\n", "integer string"),
        (b'{"ok": true, "ok": false}\n', "a member is there twice"),
        (b'{"ok": true, "result": {"foo-0": null, "foo-0": 1}}\n', "a member is there twice"),
        (b'{"ok": true, "raw": "\xff"}\n', "not UTF-8"),
        (b'{"ok": true, "raw": "\\ud800"}\n', "half of a surrogate pair"),
        (b'{"\\udfff": 1}\n', "half of a surrogate pair"),
        (b'{"a":' * 65 + b"1" + b"}" * 65 + b"\n", "nested too deeply"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "nested too deeply"),
        (b"[]\n", "it is not an object"),
        ('{"ok": true}\n'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_a_line_that_is_not_of_the_protocol(line, problem):
    with pytest.raises(AdapterFault) as caught:
        read_line(line)
    text = str(caught.value)
    assert problem in text
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 1100


@given(st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_an_object_or_a_fault_in_printable_text(line):
    fault: AdapterFault | None = None
    try:
        json.dumps(read_line(line), ensure_ascii=False).encode()
    except AdapterFault as error:
        fault = error
    assert fault is None or str(fault).isprintable()


# ---- a whole run ---------------------------------------------------------------------------------

CASE = """\
title: t CALL
source: KIP-1
about: a
steps:
  - {call: CALL, with: ARGUMENTS, as: one}
must:
  - {says: it succeeds, result: one, success: true}
wrong: {by: claims-success}
"""
_ARGUMENTS = {"produce": "{values: {foo-0: [a]}}", "send": "{values: {foo-0: [a]}}"}
CASES = [
    parse_case(
        CASE.replace("CALL", call.name).replace("ARGUMENTS", _ARGUMENTS.get(call.name, "{}")),
        f"x/{number:03}-x.yaml",
    )
    for number, call in enumerate(ADAPTER_CALLS, 1)
    if call.in_cases
]


class Liar:
    """A client of the tests that gives these answers; to other calls it answers as it should."""

    name = "liar"

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def greeting(self) -> dict[str, Any]:
        return {"client": "liar"}

    async def call(self, op: str, arguments: Any) -> Any:
        if isinstance(self._answers.get(op), Exception):
            raise self._answers[op]
        return self._answers.get(op, {"ok": True, "result": None})

    async def close(self) -> None:
        """Nothing is open."""

    async def start(self) -> LocalAdapter:
        return LocalAdapter(self)  # type: ignore[arg-type]


def check_report(results: Any, cases: Any) -> None:
    report = Report(
        clients=["liar"], cases=cases, results=results, greetings={"liar": Greeting(client="liar")}
    )
    document = json.loads(as_json(report))
    assert len(document["results"]) == len(cases)
    suites = ElementTree.fromstring(as_junit(report))
    assert len(list(suites.iter("testcase"))) == len(cases)
    assert as_html(report, {})
    assert as_client_html(report, "liar", {})


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_a_run_with_malformed_answers_to_every_call_is_whole(data):
    answers = {
        call.name: {"ok": True, "result": data.draw(wrong_results(call))}
        for call in ADAPTER_CALLS
        if call.in_cases
    }
    results = asyncio.run(run([Liar(answers)], CASES, jobs=8))
    assert {each.judgement.verdict for each in results} == {"error"}
    for each in results:
        assert "the answer to" in each.judgement.why
    check_report(results, CASES)


@pytest.mark.parametrize("op", ["connect", "close"])
async def test_a_malformed_answer_to_what_every_case_calls(op):
    results = await run([Liar({op: {"ok": True, "result": 5}})], CASES[:2])
    assert {each.judgement.verdict for each in results} == {"error"}
    check_report(results, CASES[:2])


TOGETHER = """\
title: t
source: KIP-1
about: a
steps:
  - together: [{call: list_topics, as: one}, {call: list_groups, as: two}]
must:
  - {says: it succeeds, result: one, success: true}
wrong: {by: claims-success}
"""


@pytest.mark.parametrize(
    "parts",
    [[], [1, 2], [{"ok": True}], [{"ok": True}] * 3, [{"ok": True, "result": 5}, {"ok": True}],
     [{"ok": True}, {"ok": True, "result": ["g"]}], 5, "foo", {}, [None, None],
     [{"ok": True, "result": {"ok": 1}}, {"ok": True}]],
)  # fmt: skip
async def test_each_answer_of_several_calls_has_its_shape(parts):
    case = parse_case(TOGETHER, "x/001-x.yaml")
    (result,) = await run([Liar({"together": {"ok": True, "result": parts}})], [case])
    assert result.judgement.verdict == "error"
    assert "not a line of the protocol" in result.judgement.why


async def test_text_of_an_adapter_leaves_every_report_readable():
    """Control characters, which XML cannot hold, and noncharacters."""
    text = "".join(map(chr, [*range(32), 127, *range(0x80, 0xA0), 0x202E, 0xFFFE, 0xFFFF, 0x1F600]))
    said = {"ok": False, "error": text, "message": text, "raw": text}
    results = await run([Liar({"list_topics": said})], CASES[2:4])
    check_report(results, CASES[2:4])


async def test_a_defect_of_kspec_in_one_play_is_an_error_of_that_case_alone(monkeypatch):
    judge = schedule.judge

    def fails(case: Any, played: Any) -> Any:
        if case.title == "t list_topics":
            raise IndexError("our own")
        return judge(case, played)

    monkeypatch.setattr(schedule, "judge", fails)
    results = await run([Liar({})], CASES)
    errors = [each for each in results if each.judgement.verdict == "error"]
    (one,) = [each for each in errors if "our own" in each.judgement.why]
    assert one.case.case.title == "t list_topics"
    assert "kspec failed: IndexError: our own at test_adapter_protocol.py:" in one.judgement.why
    assert len(results) == len(CASES)
    check_report(results, CASES)
