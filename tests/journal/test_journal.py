"""The ring, its bounds and its text form; decoding and rendering are in test_reading."""

import io
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError
from kproto.journal import ClientSoftware, Entry, Journal, JournalWriter, read_journal, select

int16 = st.integers(-(2**15), 2**15 - 1)
# JSON cannot carry a lone surrogate, and bytes decoded from a socket never hold one.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

entries = st.builds(
    Entry,
    sequence=st.integers(1, 2**53),
    timestamp_ns=st.integers(0, 2**63 - 1),
    broker_id=st.integers(-1, 2**31 - 1),
    connection_id=st.integers(0, 2**53),
    direction=st.sampled_from(["request", "response", "event"]),
    peer=texts,
    api_key=st.none() | int16,
    api_version=st.none() | int16,
    correlation_id=st.none() | st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | texts,
    client_software=st.none() | st.builds(ClientSoftware, texts, texts),
    dialect=st.sampled_from(["kafka", "kip-455-new", "mine"]),
    raw=st.binary(max_size=40),
    event=texts,
    note=texts,
)


def written(some: list[Entry]) -> str:
    file = io.StringIO()
    writer = JournalWriter(file)
    for entry in some:
        writer.write(entry)
    return file.getvalue()


@given(some=st.lists(entries, max_size=5))
def test_what_is_written_is_read_back(some: list[Entry]) -> None:
    text = written(some)
    assert text.count("\n") == len(some)
    assert list(read_journal(io.StringIO(text, newline="\n"))) == some


@given(some=st.lists(entries, min_size=1, max_size=4), data=st.data())
def test_a_cut_last_line_loses_that_line_alone(some: list[Entry], data: st.DataObject) -> None:
    text = written(some)
    start = text.rindex("\n", 0, -1) + 1 if len(some) > 1 else 0
    cut = data.draw(st.integers(start, len(text) - 2))
    assert list(read_journal(io.StringIO(text[:cut], newline="\n"))) == some[:-1]


def test_a_whole_last_line_without_its_line_end_counts() -> None:
    entry = Entry(1, 2, 3, 4, "event", event="connected")
    assert list(read_journal([written([entry]).rstrip("\n")])) == [entry]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        '{"sequence":1}',
        '{"sequence":"x","timestamp_ns":1}',
        "no json at all",
        '"\ud800"',
    ],
)
def test_another_bad_line_says_where(bad: str) -> None:
    good = written([Entry(1, 2, 3, 4, "event", note="é")])
    reader = read_journal(io.StringIO(f"{good}\n{bad}\n{good}", newline="\n"))
    assert next(reader).note == "é"
    with pytest.raises(DecodeError, match=r"^line 3: not a journal entry: ") as caught:
        next(reader)
    assert caught.value.offset == len(good.encode()) + 1


def test_fields_of_a_newer_format_are_passed_over() -> None:
    line = written([Entry(7, 2, 3, 4, "event")])
    newer = line.replace("{", '{"span":{"id":1},', 1)
    assert next(read_journal([newer])).sequence == 7


def test_raw_is_base64_and_defaults_are_left_out() -> None:
    line = written([Entry(1, 2, 3, 4, "request", raw=b"\x00\xff\xfe")])
    assert msgspec.json.decode(line) == {
        "sequence": 1,
        "timestamp_ns": 2,
        "broker_id": 3,
        "connection_id": 4,
        "direction": "request",
        "raw": "AP/+",
    }


@given(
    sizes=st.lists(st.integers(0, 30), max_size=40),
    max_entries=st.integers(1, 10),
    max_bytes=st.integers(0, 100),
)
def test_the_ring_keeps_the_newest_within_both_bounds(sizes, max_entries, max_bytes):
    seen: list[int] = []
    journal = Journal(
        max_entries=max_entries, max_bytes=max_bytes, sink=lambda entry: seen.append(entry.sequence)
    )
    for size in sizes:
        journal.record(0, 1, 1, "request", raw=b"x" * size)
    held = [len(entry.raw) for entry in journal]
    assert held == sizes[len(sizes) - len(held) :]
    numbers = list(range(1, len(sizes) + 1))
    assert [entry.sequence for entry in journal] == numbers[len(sizes) - len(held) :]
    assert journal.size == sum(held)
    assert journal.dropped == len(sizes) - len(held)
    assert journal.dropped_bytes == sum(sizes) - sum(held)
    assert len(held) <= max_entries
    assert sum(held) <= max_bytes or len(held) == 1
    assert bool(held) == bool(sizes), "the newest is always kept"
    # Nothing was dropped that would still have fitted.
    if journal.dropped and len(held) < max_entries:
        assert sum(held) + sizes[len(sizes) - len(held) - 1] > max_bytes
    assert seen == numbers


def test_appending_does_not_disturb_an_iteration() -> None:
    journal = Journal()
    journal.record(0, 1, 1, "event", event="connected")
    for entry in journal:
        if journal.last_sequence < 5:
            journal.record(0, 1, 1, "event", note=str(entry.sequence))
    assert len(journal) == 2


@pytest.mark.parametrize("bounds", [{"max_entries": 0}, {"max_bytes": -1}])
def test_bounds_that_hold_nothing_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Journal(**bounds)


def conversation() -> Journal:
    journal = Journal()
    python = ClientSoftware("kafka-python", "3.0.12")
    journal.record(1, 1, 10, "event", "p:1", event="connected")
    journal.record(2, 1, 10, "request", "p:1", 18, 4, 0, "me", python)
    journal.record(3, 1, 10, "response", "p:1", 18, 4, 0, "me", python)
    journal.record(4, 2, 11, "request", "p:2", 45, 0, 5, "you", None, event="unimplemented")
    journal.record(5, 2, 11, "request", "p:2", 45, 0, 6, "you", None, "kip-455-new")
    journal.record(6, 2, 11, "request", "p:2", 32240, 0, 7, "you", None, "mine")
    return journal


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"broker_id": 2}, [4, 5, 6]),
        ({"connection_id": 10, "direction": "request"}, [2]),
        ({"api": 45}, [4, 5]),
        ({"api": "ALTER_PARTITION_REASSIGNMENTS"}, [4, 5]),
        ({"api": "AlterPartitionReassignments"}, [4, 5]),
        ({"api": "AlterPartitionReassignmentsRequest"}, [4, 5]),
        ({"api": "ApiVersions", "direction": "response"}, [3]),
        ({"api": 18}, [2, 3]),
        ({"api": "NoSuchApi"}, []),
        ({"client_software": "kafka-python"}, [2, 3]),
        ({"client_software": "kafka-python 3.0.12"}, [2, 3]),
        ({"client_software": "kafka-python 3"}, []),
        ({"client_id": "you", "after": 4}, [5, 6]),
        ({"event": "connected"}, [1]),
        ({"event": "unimplemented"}, [4]),
    ],
)
@pytest.mark.requirement("C-08")
def test_select(filters: dict[str, Any], expected: list[int]) -> None:
    journal = conversation()
    assert [entry.sequence for entry in journal.select(**filters)] == expected
    assert [entry.sequence for entry in select(list(journal), **filters)] == expected


def test_clear_forgets_entries_and_keeps_numbers() -> None:
    journal = conversation()
    journal.clear()
    assert (len(journal), journal.size, journal.dropped, journal.last_sequence) == (0, 0, 0, 6)
    assert journal.record(9, 1, 1, "event").sequence == 7


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 8), st.integers(0, 40))
def test_newer_is_what_a_look_at_every_entry_finds(cleared, most, after):
    """Whatever was dropped or cleared meanwhile."""
    journal = Journal(max_entries=most)
    for clear in cleared:
        journal.record(0, 1, 1, "event")
        if clear:
            journal.clear()
    expected = [entry for entry in journal if entry.sequence > after]
    assert journal.newer(after) == expected
    assert journal.select(after=after) == expected


@given(
    added=st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from([None, "", "me", "client"])), max_size=20
    ),
    max_entries=st.integers(1, 12),
    max_bytes=st.integers(0, 40),
    look=st.integers(0, 20),
)
def test_a_run_is_recorded_as_its_entries_are(added, max_entries, max_bytes, look):
    """Whoever looks meanwhile, and whatever is dropped: lengths of 0 are single entries."""
    runs, single = (Journal(max_entries=max_entries, max_bytes=max_bytes) for _ in range(2))
    software = ClientSoftware("a", "1")
    for number, (length, client_id) in enumerate(added):
        if not length:
            for journal in (runs, single):
                journal.record(number, 1, 2, "event", client_id=client_id, raw=b"raw", note="n")
        ids = list(range(100 * number, 100 * number + length))
        runs.record_run(number, 1, 2, "request", "peer", 12, 4, ids, client_id, software, "mine")
        for each in ids:
            single.record(number, 1, 2, "request", "peer", 12, 4, each, client_id, software, "mine")
        if number == look:
            assert runs.newer(3) == single.newer(3)
    for what in ("dropped", "dropped_bytes", "size", "last_sequence"):
        assert getattr(runs, what) == getattr(single, what)
    assert len(runs) == len(single)
    assert list(runs) == list(single)
    assert runs.newer(2) == single.newer(2)
    runs.clear()
    assert (len(runs), list(runs), runs.size) == (0, [], 0)


def test_whoever_listens_gets_each_entry_of_a_run() -> None:
    seen: list[Entry] = []
    calls: list[int] = []
    journal = Journal(sink=seen.append)
    journal.record_run(1, 1, 1, "response", "", 12, 4, [5, 6])
    assert [each.correlation_id for each in seen] == [5, 6]
    journal.sink = None
    with journal.listening(lambda: calls.append(journal.last_sequence)):
        journal.record_run(1, 1, 1, "response", "", 12, 4, [7, 8])
    assert calls == [3, 4]


@given(
    added=st.lists(st.lists(st.binary(max_size=9), max_size=4), max_size=20),
    max_entries=st.integers(1, 12),
    max_bytes=st.integers(0, 60),
    look=st.integers(0, 20),
)
def test_parts_are_recorded_as_their_bytes_are(added, max_entries, max_bytes, look):
    """Whoever looks meanwhile, and whatever is dropped; views of large objects are parts, too."""
    parted, single = (Journal(max_entries=max_entries, max_bytes=max_bytes) for _ in range(2))
    for number, parts in enumerate(added):
        views = [memoryview(b"--" + each + b"--" * 9)[2 : 2 + len(each)] for each in parts]
        mixed = [view if at % 2 else view.tobytes() for at, view in enumerate(views)]
        rest = (number, 1, 2, "response", "peer", 1, 12, number)
        parted.record_parts(mixed, *rest, "me", event="e", note="n")
        single.record(*rest, "me", raw=b"".join(parts), event="e", note="n")
        if number % 3 == 0:
            for journal in (parted, single):
                journal.record(number, 1, 2, "event", raw=b"raw", note="n")
        if number == look:
            assert parted.newer(3) == single.newer(3)
    for what in ("dropped", "dropped_bytes", "size", "last_sequence"):
        assert getattr(parted, what) == getattr(single, what)
    assert list(parted) == list(single)
    parted.clear()
    assert (len(parted), list(parted), parted.size) == (0, [], 0)


def test_whoever_listens_gets_parts_at_once() -> None:
    seen: list[Entry] = []
    calls: list[int] = []
    journal = Journal(sink=seen.append)
    journal.record_parts([b"ab", memoryview(b"c")], 1, 1, 1, "response", "", 1, 12, 5)
    assert [each.raw for each in seen] == [b"abc"]
    journal.sink = None
    with journal.listening(lambda: calls.append(journal.last_sequence)):
        journal.record_parts([b"d"], 1, 1, 1, "response", "", 1, 12, 6)
    assert calls == [2]


def test_parts_keep_at_most_twice_their_bytes() -> None:
    """A view of less than half of an object is copied, so that the journal's limit bounds it."""
    whole = bytearray(100)
    journal = Journal()
    journal.record_parts([memoryview(whole)[:49]], 1, 1, 1, "response", "", 1, 12, 5)
    whole += b"nobody keeps it"
    journal.record_parts([memoryview(whole)[:60]], 1, 1, 1, "response", "", 1, 12, 5)
    with pytest.raises(BufferError):
        whole += b"the journal does"
    assert [len(each.raw) for each in journal] == [49, 60]
    whole += b"nobody keeps it any more"
