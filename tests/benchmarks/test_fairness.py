"""The benchmark of fairness floods a broker as it says, and judges what it measured."""

import pytest

from benchmarks.bench_broker import Server
from benchmarks.bench_fairness import (
    AIMS,
    CLIENTS,
    PROBE,
    Measured,
    _fill,
    _kinds,
    _marks,
    _measure,
    _serving,
    percentile,
)
from benchmarks.flood import flooding


def measured(name: str, control: str | None, worse: float = 1.0) -> Measured:
    """What just meets every target, or is that much worse in one kind of flood."""
    found = Measured(Server(name, ("127.0.0.1", 0), 0), control)
    for (probe, clients), limit in AIMS.items():
        found.note(probe, ("Metadata", clients), [0.0] * 98 + [limit] * 2)
        found.note(probe, ("Fetch", clients), [0.0] * 98 + [limit * worse] * 2)
    return found


def test_targets_are_judged_by_the_worst_flood() -> None:
    kinds = ["Metadata", "Fetch"]
    servers = [measured("mockbroker", "http://a"), measured("kfake", None)]
    marks = _marks(servers, kinds)
    assert len(marks) == len(AIMS)
    assert all(mark.met for mark in marks)
    assert not any("kfake" in mark.aim for mark in marks)
    marks = _marks([measured("mockbroker", "http://a", 1.01)], kinds)
    assert [mark.met for mark in marks] == [False] * len(AIMS)
    assert {mark.met for mark in _marks([Measured(servers[0].server, "")], kinds)} == {None}


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([3.0], 0.99) == 3.0
    assert percentile(list(map(float, range(1000))), 0.99) == 990.0
    assert percentile([2.0, 1.0], 0.5) == 2.0


@pytest.mark.slow
def test_a_flood_is_answered_and_so_are_the_probes() -> None:
    with _serving("mockbroker", "-m", "mockbroker") as each:
        _fill(each.server)
        for kind, frame in _kinds().items():
            for clients in CLIENTS:
                with flooding(each.server.address, frame, clients) as flood:
                    _measure(each, (kind, clients), 0.05)
                assert flood.rate > 0
                for probe in ("probe", "control"):
                    assert each.waits[probe, (kind, clients)]


@pytest.mark.slow
def test_a_flood_that_is_closed_on_is_an_error() -> None:
    closed = PROBE[:4] + b"\x7f\xff" + PROBE[6:]
    with (
        _serving("mockbroker", "-m", "mockbroker") as each,
        pytest.raises(RuntimeError, match="ended before it began"),
        flooding(each.server.address, closed, 1),
    ):
        pass
