"""A rule means the same from Python, YAML and JSON; one that makes no sense says where and why."""

import contextlib
import json
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.error_codes import ErrorCode
from mockbroker.errors import FaultError
from mockbroker.faults import Fault, fault_of, faults_of, read_faults
from mockbroker.faults.rule import ErrorAt
from tests.support.full import quick

NAMES = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), max_size=8)
RANGES = st.sampled_from([1, "2", "1-4", "3+"])
DURATIONS = st.sampled_from([0, 250, "250ms", "2s", "1m"])
WHICH: dict[str, st.SearchStrategy[Any]] = {
    "name": NAMES,
    "broker": st.integers(0, 9),
    "api": st.integers(0, 99) | st.just("Metadata"),
    "version": RANGES,
    "client_id": NAMES,
    "software": NAMES,
    "software_version": NAMES,
    "topic": NAMES,
    "partition": st.integers(0, 9),
    "connection": RANGES,
    "nth": RANGES,
    "probability": st.sampled_from([0.25, 1.0, 1]),
    "seed": st.integers(0, 9),
    "times": st.integers(1, 9),
    "expires": DURATIONS,
}
WHAT: dict[str, st.SearchStrategy[Any]] = {
    "error": st.sampled_from([41, "NOT_CONTROLLER", "not_controller", -1, 30000]),
    "delay": DURATIONS,
    "throttle": DURATIONS,
    "steps_before": st.lists(st.sampled_from(["failover 2", "advance 1s", "join-isr foo-0 4"])),
    "steps_after": st.lists(st.sampled_from(["hold-metadata self", "close-listener other"])),
    "as_version": st.integers(0, 9),
    "unknown_tags": st.lists(st.sampled_from(["header", "body", "elements"])),
    "unknown_tag_data": st.sampled_from(["", "00", "CA fe"]),
    "set": st.dictionaries(NAMES, st.none() | st.integers() | NAMES | st.booleans()),
    "set_length": st.dictionaries(NAMES, st.integers(-1, 2**31 - 1)),
    "set_bytes": st.dictionaries(NAMES, st.sampled_from(["", "FF", "00 01"])),
    "replace_bytes": st.dictionaries(
        st.sampled_from(["4+0", "37+4"]), st.sampled_from(["", "CA fe"])
    ),
    "split": st.integers(1, 9),
    "truncate": st.integers(-9, 9),
    "trailing": st.sampled_from(["00", "CA fe"]),
}
RULES = st.fixed_dictionaries(
    {"follow_with": st.sampled_from(["00", "AB cd"])}, optional={**WHICH, **WHAT}
)


@settings(max_examples=quick(40, 10), deadline=None)
@given(st.lists(RULES, max_size=3))
def test_rules_are_the_same_from_python_yaml_and_json(rules):
    made = [fault_of(rule) for rule in rules]
    assert [Fault(**{k: tuple(v) if isinstance(v, list) else v for k, v in rule.items()})
            for rule in rules] == made  # fmt: skip
    assert read_faults(json.dumps(rules), source="f.json") == made
    assert read_faults(yaml.safe_dump(rules), source="f.yaml") == made
    assert read_faults(yaml.safe_dump({"faults": rules})) == made
    assert faults_of({"faults": rules}) == made
    assert faults_of([each.to_dict() for each in made]) == made


def test_what_is_written_differently_and_means_the_same_is_equal():
    assert Fault(error="NOT_CONTROLLER", delay="1s") == Fault(error=41, delay=1000)
    assert Fault(version=3, delay=1) == Fault(version="3", delay=1)
    assert Fault(raw="00 FF") == Fault(raw="00ff")
    assert Fault(error=41).error == ErrorCode.NOT_CONTROLLER


def test_a_document_may_be_one_rule_or_nothing():
    assert read_faults("api: 3\ndelay: 5ms") == [Fault(api=3, delay=5)]
    assert read_faults("", source="f.yaml") == []
    assert read_faults("[]") == []


BAD: list[tuple[str, str, int | None, str]] = [
    ("- delay: 1\n- api: 3\n  delay: 1\n  nope: 1", "unknown member 'nope'", 4, "rule 2"),
    ("- name: x\n  erorr: 3", "did you mean error", 2, "rule 1 'x'"),
    ("- delay: 1\n- api: 3", "the rule has no effect", 2, "rule 2"),
    ("- raw: 1503", "quote it", 1, "rule 1"),
    ("- raw: '150'", "hex", 1, "rule 1"),
    ("- error: NO_SUCH", "unknown error 'NO_SUCH'", 1, "rule 1"),
    ("- error: 3\n  error: 4", "'error' appears twice", 2, ""),
    ("- delay: 3 years", "years", 1, "rule 1"),
    ("- 3", "a rule must be an object", 1, "rule 1"),
    ("3", "expected a list of rules", None, ""),
    ("faults: []\nseed: 3", "'seed' next to 'faults'", None, ""),
    ("- delay: [", "invalid YAML", 1, ""),
    ("- &a {delay: 1}\n- *a", "aliases", None, ""),
    ("- delay: 1\n  nth: 0", "counts from 1", 1, "rule 1"),
    ("- delay: 1\n  version: 4-2", "must rise", 1, "rule 1"),
    ("- delay: 1\n  probability: 2", "above 0 and at most 1", 1, "rule 1"),
    ("- steps_after: [fly 3]", "'fly 3' is not an operation", 1, "rule 1"),
    ("- steps_after: [failover x]", "'x' is not a broker id", 1, "rule 1"),
    ("- delay: 1\n  disconnect: sometimes", "disconnect", 2, "rule 1"),
    ("- garbage: 2000000000", "between 1 and", 1, "rule 1"),
    (
        "- more: {api_keys: 0}",
        "more of 'api_keys' is 0; it must be between 1 and 100000",
        1,
        "rule 1",
    ),
]


@pytest.mark.parametrize(("text", "problem", "line", "rule"), BAD)
def test_a_bad_rule_says_where_and_why(text, problem, line, rule):
    with pytest.raises(FaultError) as caught:
        read_faults(text, source="f.yaml")
    assert problem in str(caught.value)
    assert (caught.value.source, caught.value.rule) == ("f.yaml", rule)
    if line is not None:
        assert caught.value.line == line
        assert str(caught.value).startswith(f"f.yaml:{line}: ")


CONFLICTS: list[dict[str, Any]] = [
    {"raw": "00", "garbage": 3},
    {"raw": "00", "error": 3},
    {"tls_alert": 80, "set": {"a": 1}},
    {"garbage": 3, "correlation_id": 1},
    {"length": 3, "length_off_by": 3},
    {"correlation_id": 3, "correlation_off_by": 3},
    {"swap": "order", "hold_responses": 2},
    {"swap": "ids", "correlation_id": 2},
    {"hold_for": 5, "split": 1},
    {"hold_responses": 5, "disconnect": "answered"},
    {"never_answer": True, "error": 3},
    {"never_answer": True, "delay": 3},
    {"disconnect": "before", "error": 3},
    {"disconnect": "after", "throttle": 3},
    {"disconnect": "after", "apply": True},
    {"disconnect": "before", "follow_with": "00"},
    {"delay": 3, "apply": False},
    {"delay": 3, "error_message": "x"},
    {"delay": 3, "error_at": "top"},
    {"delay": 3, "close_with": "reset"},
    {"delay": 3, "split_delay": 3},
    {"delay": 3, "unsolicited_correlation_id": 3},
    {"api": 3},
    {"reply": {}, "error": 3},
]


@pytest.mark.parametrize("members", CONFLICTS, ids=lambda m: " ".join(m))
def test_what_excludes_each_other_is_refused(members):
    with pytest.raises(FaultError) as caught:
        Fault(name="both", **members)
    assert caught.value.rule == "both"
    with pytest.raises(FaultError, match=r"^f\.json: rule 1"):
        read_faults(json.dumps([members]), source="f.json")


@pytest.mark.parametrize("level", get_args(ErrorAt))
def test_errors_combine_with_delays_throttle_times_and_ends(level):
    Fault(error=3, error_at=level, delay=1, throttle=1, disconnect="answered", close_with="reset")


@pytest.mark.parametrize("members", [{"times": "3"}, {"steps_after": 3}, {"set_bytes": 3}])
def test_what_python_gives_may_be_of_any_type(members):
    with pytest.raises(FaultError):
        Fault(delay=1, **members)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_rules_or_an_error_of_ours(text):
    for source in ("", "f.json", "f.yaml"):
        with contextlib.suppress(FaultError):
            read_faults(text, source=source)


@pytest.mark.parametrize("text", ["\0", "a: b: c", "- {", "[1,", "%x", "- delay: !!python/x 1"])
def test_an_error_is_one_line(text):
    for source in ("f.json", "f.yaml"):
        with pytest.raises(FaultError) as caught:
            read_faults(text, source=source)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("extent", ["37", "37:4", "3+4", "-4+1", "x+1", "4+", 2224])
def test_an_extent_is_an_offset_and_a_length(extent):
    with pytest.raises(FaultError, match=r"OFFSET\+LENGTH|replace_bytes"):
        faults_of([{"api": 3, "replace_bytes": {extent: "00"}}])
