"""Plan files: what is written can be read, and what cannot be started is refused where it is."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import TopicPartition
from kproto.tools.errors import ToolError
from kproto.tools.plan import (
    format_plan,
    parse_broker_list,
    parse_election_partitions,
    parse_plan,
    parse_topics_to_move,
)

FOO_0, FOO_1, BAR_0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)

partitions = st.builds(TopicPartition, st.text(max_size=8), st.integers(0, 2**31 - 1))
replicas = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True)


@given(st.dictionaries(partitions, replicas, min_size=1, max_size=8))
def test_what_is_printed_can_be_executed(assignment):
    plan = parse_plan(format_plan(assignment))
    assert plan.executable() == {key: tuple(value) for key, value in assignment.items()}
    assert plan.log_dirs == {}
    assert [key for key, _ in plan.partitions] == sorted(assignment)


def test_the_form_is_kafkas_to_the_byte():
    assert format_plan({FOO_1: [2, 3], FOO_0: [1], BAR_0: []}) == (
        '{"version":1,"partitions":['
        '{"topic":"bar","partition":0,"replicas":[],"log_dirs":[]},'
        '{"topic":"foo","partition":0,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"foo","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )


def test_log_directories_other_than_any_are_kept():
    row = {"topic": "foo", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}
    assert parse_plan(json.dumps({"partitions": [row]})).log_dirs == {("foo", 0, 2): "/d"}


def row(**changes: Any) -> dict[str, Any]:
    return {"topic": "foo", "partition": 0, "replicas": [1, 2]} | changes


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([row(), row(partition=1, replicas=[])], "Partition replica list cannot be empty"),
        (
            [row(), row(topic="bar"), row(), row(topic="bar")],
            "Partition reassignment contains duplicate topic partitions: bar-0,foo-0",
        ),
        (
            [row(replicas=[3, 1, 3, 1]), row(topic="bar", replicas=[2, 2])],
            "Partition replica lists may not contain duplicate entries: "
            "foo-0 contains multiple entries for 1,3. bar-0 contains multiple entries for 2",
        ),
    ],
)
def test_a_plan_that_cannot_be_started(rows, text):
    plan = parse_plan(json.dumps({"version": 1, "partitions": rows}))
    with pytest.raises(ToolError) as caught:
        plan.executable()
    assert str(caught.value) == text
    assert caught.value.printed == f"Error: {text}"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("{", "p.json:1:2: not valid JSON: Expecting property name enclosed in double quotes"),
        ("[" * 1_000_000, "p.json: not a file of this kind: nested too deeply"),
        ("[]", "p.json: expected an object, not []"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"version": true}', "p.json.version: expected an integer, not true"),
        ('{"partitions": {}}', "p.json: partitions: expected an array, not {}"),
        ([row(), 7], "p.json: partitions[1]: expected an object, not 7"),
        ([{"topic": "foo"}], 'p.json: partitions[0]: "partition" is missing'),
        ([row(topic=None)], "p.json: partitions[0].topic: expected a string, not null"),
        ([row(partition="0")], 'p.json: partitions[0].partition: expected an integer, not "0"'),
        ([row(partition=2**31)], "p.json: partitions[0].partition: 2147483648 does not fit in"),
        ([row(replicas=[1, 2.0])], "p.json: partitions[0].replicas[1]: expected an integer"),
        ([row(replicas=None)], "p.json: partitions[0].replicas: expected an array, not null"),
        ([row(log_dirs=["any", 1])], "p.json: partitions[0].log_dirs[1]: expected a string"),
        (
            [row(log_dirs=["any"])],
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for "
            "partition foo-0",
        ),
    ],
)
def test_a_file_that_is_no_plan(document, text):
    if isinstance(document, list):
        document = json.dumps({"partitions": document})
    with pytest.raises(ToolError) as caught:
        parse_plan(document, "p.json")
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_plan_or_a_tool_error(text):
    with contextlib.suppress(ToolError):
        parse_plan(text)


def test_topics_to_move():
    assert parse_topics_to_move('{"topics": [{"topic": "b"}, {"topic": "a"}]}') == ["b", "a"]
    assert parse_topics_to_move("{}") == []
    with pytest.raises(ToolError, match=r"duplicate entries: \[a, b\]$"):
        parse_topics_to_move(json.dumps({"topics": [{"topic": each} for each in "abcab"]}))


def test_broker_lists():
    assert parse_broker_list("3,1,2") == [3, 1, 2]
    with pytest.raises(ToolError, match=r"^Broker list contains duplicate entries: \[1, 3\]$"):
        parse_broker_list("1,3,2,3,1")
    for text in ("", "1,", "1;2", "one"):
        with pytest.raises(ToolError, match="wants broker ids"):
            parse_broker_list(text)


def test_partitions_to_elect():
    text = json.dumps({"partitions": [{"topic": "foo", "partition": 1}, row()]})
    assert parse_election_partitions(text) == {FOO_0, FOO_1}
    with pytest.raises(ToolError, match='missing "partitions" field'):
        parse_election_partitions("{}")
    with pytest.raises(ToolError, match=r"duplicate partitions: \[foo-0\]$") as caught:
        parse_election_partitions(json.dumps({"partitions": [row(), row()]}))
    assert caught.value.printed is None
