"""The events of logs: values in a bounded ring, without the bytes of records."""

from kproto.records import Record, build_batch
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.log_events import Appended, DataEvents
from tests.mockbroker.simulated import simulated_cluster


def test_an_append_is_an_event() -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], now_ms=7)
    data = build_batch([Record(timestamp=1, value=b"a"), Record(timestamp=2, value=b"b")])
    before = len(cluster.log)
    cluster.logs.append(("foo", 0), data, read_header(data))
    assert list(cluster.logs.events) == [Appended(7, ("foo", 0), 0, 1, len(data))]
    assert len(cluster.log) == before, "appends are too many for the action log"


def test_the_newest_events_stay() -> None:
    events = DataEvents(most=3)
    appended = [Appended(0, ("foo", 0), offset, offset, 70) for offset in range(5)]
    for each in appended:
        events.append(each)
    assert list(events) == appended[2:]
    assert (len(events), events.dropped) == (3, 2)
