"""The virtual clock runs each timer once, at its own time, in order."""

import asyncio
from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.state.timers import Later, Timers, wait_for_call

Log = list[tuple[str, int]]


def recording(timers: Timers, log: Log, name: str) -> Callable[[], None]:
    return lambda: log.append((name, timers.now_ms))


def test_timers_run_in_the_order_of_their_times():
    timers, log = Timers(1_000), Log()
    for name, due in (("c", 1_300), ("a", 1_100), ("b", 1_200), ("later", 2_000)):
        timers.timer(recording(timers, log, name)).set(due)
    assert timers.next_due_ms == 1_100
    timers.run_until(1_500)
    assert log == [("a", 1_100), ("b", 1_200), ("c", 1_300)]
    assert (timers.now_ms, timers.next_due_ms) == (1_500, 2_000)


def test_a_timer_set_anew_runs_at_the_new_time_only():
    timers, log = Timers(), Log()
    timer = timers.timer(recording(timers, log, "a"))
    timer.set(100)
    timer.set(300)
    timers.run_until(200)
    assert (log, timers.next_due_ms) == ([], 300)
    timer.set(None)
    assert timers.next_due_ms is None
    timers.run_until(400)
    assert log == []
    timer.set(500)
    timers.run_until(500)
    assert log == [("a", 500)]


def test_a_timer_may_set_itself_and_others():
    timers, log = Timers(), Log()
    other = timers.timer(recording(timers, log, "other"))

    def tick() -> None:
        log.append(("tick", timers.now_ms))
        ticker.set(timers.now_ms + 100)
        other.set(timers.now_ms + 50)

    ticker = timers.timer(tick)
    ticker.set(100)
    timers.run_until(250)
    assert log == [("tick", 100), ("other", 150), ("tick", 200), ("other", 250)]
    assert timers.next_due_ms == 300


def test_a_time_that_has_passed_is_due_at_once_and_the_clock_does_not_go_back():
    timers, log = Timers(500), Log()
    timers.timer(recording(timers, log, "late")).set(100)
    timers.run_until(500)
    assert (log, timers.now_ms) == ([("late", 500)], 500)
    timers.run_until(300)
    assert timers.now_ms == 500


def test_the_horizon_is_the_end_or_the_next_timer():
    timers = Timers()
    horizons: list[int] = []
    timers.timer(lambda: horizons.append(timers.horizon_ms)).set(100)
    timers.timer(lambda: horizons.append(timers.horizon_ms)).set(200)
    timers.run_until(1_000)
    assert horizons == [200, 1_000]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=30), st.integers(0, 60))
def test_those_due_run_once_sorted_by_time_then_by_when_they_were_set(settings, end):
    timers = Timers()
    log: list[int] = []
    due: dict[int, int] = {}
    made = [timers.timer(partial(log.append, number)) for number in range(6)]
    order: list[int] = []
    for time, number in settings:
        if due.get(number) != time:
            order = [*(each for each in order if each != number), number]
        due[number] = time
        made[number].set(time)
    timers.run_until(end)
    expected = [number for number in order if due[number] <= end]
    assert log == sorted(expected, key=lambda number: (due[number], order.index(number)))


def test_timers_that_are_stopped_take_no_memory():
    timers, log = Timers(), Log()
    stays = timers.timer(recording(timers, log, "stays"))
    stays.set(1_000_000)
    for _ in range(20_000):
        timer = timers.timer(recording(timers, log, "stopped"))
        timer.set(500_000)
        timer.set(None)
    assert len(timers._heap) < 3_000
    timers.run_until(1_000_000)
    assert log == [("stays", 1_000_000)]


async def test_waiting_for_a_call_ends_with_it_or_with_the_time_out():
    calls: list[Callable[[], None]] = []
    waiting = asyncio.ensure_future(wait_for_call(calls.append, 3_600_000))
    await asyncio.sleep(0)
    calls[0]()
    calls[0]()
    assert await waiting is True
    assert await wait_for_call(calls.append, 0) is False
    assert await wait_for_call(lambda call: call()) is True


async def test_what_starts_later_may_also_be_dropped():
    started: list[int] = []

    async def start() -> int:
        started.append(1)
        return 7

    Later(start)
    assert not started
    assert await Later(start) == 7


def test_what_is_pending_is_listed_in_order():
    timers = Timers()
    for name, due in (("b", 20), ("never", None), ("a", 10), ("c", 20)):
        timers.timer(lambda: None, name).set(due)
    moved = timers.timer(lambda: None, "moved")
    moved.set(5)
    moved.set(30)
    assert timers.pending() == [(10, "a"), (20, "b"), (20, "c"), (30, "moved")]
