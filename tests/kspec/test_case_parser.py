"""Case files: what is in one is what was written, and whatever is wrong is told with its line and
place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.case_parser import parse_case
from kspec.errors import CaseError, KspecError
from kspec.runner.files import CASES, choose, load_cases

FILE = "cases/framing/003-cut-short.yaml"
CASE = """\
title: An answer is cut
source: KIP-482
about: It ends too soon.
faults:
  - {api: Metadata, truncate: -9}
steps:
  - call: describe_cluster
  - {call: describe_topics, with: {topics: [foo]}, as: next}
must:
  - says: the client lives on
    result: next
    success: true
  - says: asks again
    requests: {api: Metadata, since: next}
    count: 1-3
wrong: {by: claims-success}
"""


def test_a_case_is_what_its_file_says():
    found = parse_case(CASE, FILE)
    assert (found.id, found.group) == ("framing/003-cut-short", "framing")
    (variant,) = found.variants
    assert [step.name or step.call for step in variant.case.steps] == ["describe_cluster", "next"]
    asked = variant.case.must[1].requests
    assert asked is not None
    assert (asked.api, asked.since) == ("Metadata", "next")
    assert not found.case.informational


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("truncate", "trunkate", "5: faults[0]: unknown member 'trunkate'"),
        ("api: Metadata, truncate", "api: Metatada, version: x, truncate", "5: faults[0]: "),
        ("result: next", "result: nxt", "11: must[0].result: no call is named 'nxt'"),
        ("success: true", "success: 1", "12: must[0].success: Expected `bool | null`"),
        ("success: true", "sucess: true", "10: must[0]: Object contains unknown field sucess"),
        ("    success: true\n", "", "10: must[0]: needs one of success"),
        ("count: 1-3", "count: 3-1", "15: must[1].count: '3-1' is an empty range"),
        ("count: 1-3", "value: 3", "15: must[1].value: does not apply to requests"),
        ("{api: Metadata, since", "{api: Metatada, since", "14: must[1].requests.api: 'Metatada'"),
        ("since: next", "since: nxt", "14: must[1].requests.since: no call is named"),
        ("call: describe_cluster", "call: describe", "7: steps[0].call: 'describe' is not one of"),
        (
            "call: describe_cluster",
            "cluster: jump 3",
            "7: steps[0].cluster: 'jump 3' is not an operation",
        ),
        ("call: describe_cluster", "pause_ms: 3\n    reconnect: true", "7: steps[0]: a step has"),
        (
            "call: describe_cluster",
            "together: [{call: list_topics}]",
            "7: steps[0].together: needs",
        ),
        ("call: describe_cluster", "together: [{call: x}, {call: y}]", "7: steps[0].call: 'x' is"),
        (", as: next", "", "11: must[0].result: no call is named 'next'"),
        ("KIP-482", "hearsay", "2: source: must name a KIP"),
        ("about: It ends too soon.\n", "", "1: Object missing required field about"),
        ("title:", "title: [", "2: not YAML"),
        ("title: An", "title: twice\ntitle: An", "1: duplicate key title"),
        ("title:", "id: 7\ntitle:", "1: id: comes from the file's path"),
        ("truncate: -9", "truncate: -9, optional: 2", "5: faults[0].optional: must be true"),
        ("truncate: -9", "truncate: -9, applies: false", "5: faults[0].applies: must be true"),
        ("truncate: -9", "truncate: -9, applies: true, optional: true", "5: faults[0]: has one of"),
        ("success: true", "outcomes: {}", "12: must[0].outcomes: is empty and checks nothing"),
        ("success: true", "delivered: {}", "12: must[0].delivered: is empty and checks nothing"),
        (
            "requests: {api: Metadata, since: next}\n    count: 1-3",
            "logs: {}",
            "14: must[1].logs: is empty and checks nothing",
        ),
        (
            "requests: {api: Metadata, since: next}\n    count: 1-3",
            "order: []",
            "14: must[1].order: is empty and checks nothing",
        ),
        ("truncate: -9", 'truncate: "${cut}"', "1: unknown parameter 'cut'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_place(old, new, told):
    assert old in CASE
    with pytest.raises(CaseError) as caught:
        parse_case(CASE.replace(old, new, 1), FILE)
    text = str(caught.value).replace("`", "")
    assert text.startswith(f"{FILE}:{told}".replace("`", "")), text


def test_a_path_that_is_no_cases_is_refused():
    for path in ("framing/3-x.yaml", "framing/003.yaml", "003-x.yaml", "framing/003-X.yaml"):
        with pytest.raises(CaseError, match="three digits"):
            parse_case(CASE, path)


def test_parameters_are_put_in_with_their_types():
    text = CASE.replace("truncate: -9", 'truncate: "${cut}"').replace(
        "title: An", "title: ${cut} of an"
    )
    found = parse_case(text + "variants: [{cut: -1}, {cut: -2}]\n", FILE)
    assert [each.name for each in found.variants] == ["cut=-1", "cut=-2"]
    assert [each.case.faults[0]["truncate"] for each in found.variants] == [-1, -2]
    assert found.variants[1].case.title == "-2 of an answer is cut"


@given(st.text(max_size=200))
def test_any_text_is_a_case_or_a_case_error(text):
    with pytest.raises(CaseError):
        parse_case(text, FILE)


@given(st.integers(0, len(CASE)), st.text(max_size=5))
def test_a_case_with_anything_put_in_is_a_case_or_an_error_with_a_line(place, insertion):
    told = f"{FILE}:1: a case"
    try:
        parse_case(CASE[:place] + insertion + CASE[place:], FILE)
    except CaseError as error:
        told = str(error)
    assert re.match(re.escape(FILE) + r":\d+: ", told)


# ---- the suite's own ----------------------------------------------------------------------------


def test_every_case_of_the_suite_can_be_read():
    cases = load_cases()
    assert len(cases) == len(list(CASES.glob("*/*")))
    assert len({each.case.title for each in cases}) == len(cases)


def test_cases_are_chosen_by_id_group_and_glob():
    cases = load_cases()
    ids = [each.id for each in cases]
    assert [each.id for each in choose(cases, [])] == ids
    (one,) = choose(cases, ["framing/001"])
    assert one.id.startswith("framing/001-")
    assert choose(cases, [one.id]) == [one]
    assert {each.group for each in choose(cases, ["framing", "fl*/002-*"])} == {
        "framing",
        "flexible",
    }
    with pytest.raises(KspecError, match="no case matches 'nowhere'"):
        choose(cases, ["nowhere"])


def test_a_number_that_is_taken_is_told(tmp_path):
    (tmp_path / "framing").mkdir()
    for slug in ("one", "two"):
        (tmp_path / "framing" / f"001-{slug}.yaml").write_text(CASE)
    with pytest.raises(CaseError, match=r"framing/001 is already used by 001-one"):
        load_cases(tmp_path)


@pytest.mark.parametrize(
    "text", ["!!foo", "title: !!int x", "title: 2001-99-99", "&a [*a]", "a: &b {c: *b}"]
)
def test_yaml_that_makes_no_value_is_told(text):
    with pytest.raises(CaseError, match=r"invalid value|nested too deeply|not YAML"):
        parse_case(text, FILE)
