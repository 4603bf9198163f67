"""The options of a cluster are one object, whichever way a cluster is made."""

import inspect
from dataclasses import fields

import pytest

from kproto.schema.versions import Versions
from mockbroker import ClusterOptions, MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.fixture import MockKafka
from mockbroker.running.threaded import ThreadedCluster

KINDS = (MockCluster, ThreadedCluster, MockKafka)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_are_the_options(kind: type) -> None:
    options = inspect.signature(ClusterOptions).parameters
    assert list(inspect.signature(kind).parameters) == list(options)
    assert options.keys() == {each.name for each in fields(ClusterOptions)}
    with pytest.raises(TypeError, match=f"{kind.__name__} has no option 'no_such_option'$"):
        kind(no_such_option=1)
    with pytest.raises(TypeError, match=r"no option 'broker'; did you mean brokers\?"):
        kind(broker=3)


@pytest.mark.parametrize("kind", KINDS)
def test_keywords_and_an_object_make_the_same_cluster(kind: type) -> None:
    options = ClusterOptions(2, topics=["foo:1:2"], clock="manual", journal_entries=7)
    for made in (
        kind(2, topics=["foo:1:2"], clock="manual", journal_entries=7),
        kind.from_options(options),
    ):
        assert (made.options.brokers, made.options.clock) == (2, "manual")
        assert made.options.journal_entries == 7


def test_limits_out_of_range_are_refused() -> None:
    with pytest.raises(ClusterError, match="max_connections"):
        MockCluster(max_connections=0)


def test_the_journal_of_the_fixture_has_the_size_of_the_options() -> None:
    with MockKafka(brokers=1, journal_entries=5) as mock:
        assert mock.journal is mock.options.journal
        assert mock.journal_text() == ""


def test_versions_of_apis_are_written_as_on_the_command_line() -> None:
    written = MockCluster(apis={45: "off", 12: "0-1", 0: Versions(3, 9), 43: None})
    assert (written.served[12], written.served[0]) == (Versions(0, 1), Versions(3, 9))
    assert {43, 45}.isdisjoint(written.served)
    with pytest.raises(ClusterError, match="'45=x'"):
        MockCluster(apis={45: "x"})
