"""When bytes that pass may be written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.serving.pacing import Pace, Pacing


def test_without_settings_nothing_waits() -> None:
    assert Pace(Pacing()).idle


def test_latency_delays_each_part_by_as_much() -> None:
    pace = Pace(Pacing(latency=2.0))
    assert not pace.idle
    pace.add(b"a", 10.0)
    pace.add(b"b", 11.0)
    assert (pace.due, pace.queued) == (12.0, 2)
    assert pace.take(11.9) == []
    assert pace.take(12.0) == [b"a"]
    assert pace.take(20.0) == [b"b"]
    assert (pace.due, pace.queued) == (None, 0)


def test_bandwidth_spreads_bytes() -> None:
    pace = Pace(Pacing(bandwidth=16 * 1024))
    data = bytes(64 * 1024)
    pace.add(data, 0.0)
    got = [len(b"".join(pace.take(second))) for second in range(6)]
    assert got == [0, 16384, 16384, 16384, 16384, 0]
    # Time without traffic is not saved up.
    pace.add(bytes(16384), 100.0)
    assert pace.due == 101.0


@given(st.lists(st.tuples(st.binary(max_size=50_000), st.sampled_from([0, 1]),
                          st.sampled_from([0, 5_000])), max_size=8))  # fmt: skip
def test_bytes_keep_their_order_whatever_changes(parts: list[tuple[bytes, int, int]]) -> None:
    pacing = Pacing()
    pace = Pace(pacing)
    for now, (data, latency, bandwidth) in enumerate(parts):
        pacing.latency, pacing.bandwidth = latency * 3.0, bandwidth
        pace.add(data, now)
    whole = b"".join(data for data, _, _ in parts)
    assert pace.queued == len(whole)
    assert b"".join(pace.take(10_000.0)) == whole
    assert pace.queued == 0


@pytest.mark.parametrize("latency", [0.0, 1.0])
def test_settings_that_end_let_nothing_overtake(latency: float) -> None:
    pacing = Pacing(latency=5.0)
    pace = Pace(pacing)
    pace.add(b"first", 0.0)
    pacing.latency = latency
    assert not pace.idle
    pace.add(b"second", 1.0)
    assert pace.take(4.9) == []
    assert pace.take(5.0) == [b"first", b"second"]
