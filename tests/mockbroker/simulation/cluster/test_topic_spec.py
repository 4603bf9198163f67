"""The texts of the command line: brokers, topics, partitions, durations."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.option_types import parse_milliseconds
from mockbroker.simulation.topics.spec import parse_brokers, parse_topic, parse_topic_partition


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
def test_replicas_by_the_rule(partitions: int, replicas: int, brokers: int) -> None:
    ids = range(1, brokers + 1)
    text = f"foo:{partitions}:{replicas}"
    if replicas > brokers:
        with pytest.raises(ClusterError, match=f"{replicas} replicas need as many brokers"):
            parse_topic(text, ids)
    else:
        assert parse_topic(text, ids) == (
            "foo",
            [[1 + ((p + i) % brokers) for i in range(replicas)] for p in range(partitions)],
        )


@given(st.lists(st.permutations(range(5)).map(lambda o: o[:3]), min_size=1, max_size=4))
def test_replicas_as_written(lists: list[list[int]]) -> None:
    text = "a-b=" + "/".join(",".join(map(str, ids)) for ids in lists)
    assert parse_topic(text, ()) == ("a-b", lists)


@given(st.text(max_size=20))
def test_any_other_text_is_an_error_of_ours(text: str) -> None:
    for parse in (parse_topic, parse_topic_partition, parse_milliseconds):
        complaint = _complaint(parse, text)
        assert complaint is None or (complaint and "\n" not in complaint)


def _complaint(parse: Callable[[str], object], text: str) -> str | None:
    """What ``parse`` says against the text; any other error than ClusterError escapes."""
    try:
        parse(text)
    except ClusterError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("foo", "use NAME:PARTITIONS:REPLICAS"),
        ("foo:1:x", "use NAME:PARTITIONS:REPLICAS"),
        ("foo:-1:1", "use NAME:PARTITIONS:REPLICAS"),
        ("foo:0:1", "1 to 10000 partitions"),
        ("foo:10001:1", "1 to 10000 partitions"),
        ("foo:1:0", "0 replicas need"),
        ("foo=1,2/", "'' is not a list of broker ids"),
        ("foo=1,2/2;3", "'2;3' is not a list of broker ids"),
        ("foo=1,2/2,2", "'2,2' names a broker twice"),
        ("=1", "the empty string is not allowed"),
        ("a/b:1:1", "one or more characters other than"),
    ],
)
def test_topics_refused(text: str, why: str) -> None:
    with pytest.raises(ClusterError, match=why):
        parse_topic(text)


def test_partitions() -> None:
    assert parse_topic_partition("foo-0") == ("foo", 0)
    assert parse_topic_partition("a-b-12") == ("a-b", 12)
    for text in ("foo", "-1", "foo-", "foo-x"):
        with pytest.raises(ClusterError, match="use TOPIC-PARTITION"):
            parse_topic_partition(text)


def test_durations() -> None:
    assert [parse_milliseconds(t) for t in ("500ms", "1.5s", "1m", "1h", "0")] == [
        500, 1500, 60_000, 3_600_000, 0,
    ]  # fmt: skip
    with pytest.raises(ClusterError, match="'7' has no unit: use 7ms, 7s or 7m"):
        parse_milliseconds("7")
    with pytest.raises(ClusterError, match="not a whole number of milliseconds"):
        parse_milliseconds("1.5ms")


@pytest.mark.parametrize(
    ("text", "ids"), [("3", [1, 2, 3]), ("0-2", [0, 1, 2]), ("7-7", [7]), ("1", [1])]
)
def test_brokers(text: str, ids: list[int]) -> None:
    assert [each.broker_id for each in parse_brokers(text)] == ids


@pytest.mark.parametrize("text", ["0", "", "2-1", "-1", "1-", "a", "1,2", "1-1001", "1001"])
def test_no_brokers(text: str) -> None:
    with pytest.raises(ClusterError, match=f"{text!r}: "):
        parse_brokers(text)
