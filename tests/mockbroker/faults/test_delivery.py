"""Which bytes go out when: plans, and answers that are held."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.faults import Fault
from mockbroker.faults.delivery import End, Hold, LateAnswers, Sleep, Write, plan_answer


def frame(correlation_id: int, body: bytes = b"body") -> bytes:
    return (4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


def planned(**members: Any) -> tuple[list[Any], list[bytes]]:
    told: list[bytes] = []
    return list(plan_answer(frame(1), Fault(**members), told.append)), told


@given(st.integers(1, 20), st.integers(0, 50))
def test_a_split_answer_is_the_same_bytes(size, pause):
    steps, told = planned(split=size, split_delay=pause)
    writes = [step.data for step in steps if isinstance(step, Write)]
    assert b"".join(writes) == frame(1) == told[0]
    assert {len(each) for each in writes[:-1]} <= {size}
    assert steps[1::2] == [Sleep(pause)] * (len(writes) - 1)


@given(st.integers(-20, 20))
def test_a_truncated_answer_is_a_prefix(kept):
    steps, told = planned(truncate=kept)
    (write,) = steps
    assert write.data == frame(1)[:kept] == told[0]


def test_the_end_comes_last():
    steps, told = planned(unsolicited="after", disconnect="answered", close_with="reset")
    assert [type(step) for step in steps] == [Write, Write, End]
    assert len(told) == 2


def test_an_answer_may_come_twice_under_its_own_id():
    steps, told = planned(unsolicited="before", unsolicited_correlation_id="own")
    assert [step.data for step in steps] == told == [frame(1), frame(1)]


def held(correlation_id: int, out: list[int], **members: Any) -> Hold:
    def note(data: bytes) -> None:
        out.append(int.from_bytes(data[4:8], "big"))

    (step,) = plan_answer(frame(correlation_id), Fault(**members), note)
    assert isinstance(step, Hold)
    return step


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 12))
def test_each_held_answer_goes_out_once_after_so_many(waits, others):
    late, out = LateAnswers(), list[int]()
    for place, wait in enumerate(waits):
        late.hold(held(place, out, hold_responses=wait))
    sent: list[list[int]] = [
        [int.from_bytes(each[4:8], "big") for each in late.overtaken_by(frame(100 + n))]
        for n in range(others)
    ]
    for n, group in enumerate(sent, 1):
        assert group[0] == 99 + n
        assert group[1:] == [place for place, wait in enumerate(waits) if wait == n]
    assert bool(late) is any(wait > others for wait in waits)
    left = [int.from_bytes(each[4:8], "big") for each in late.release()]
    assert left == [place for place, wait in enumerate(waits) if wait > others]
    assert sorted(out) == list(range(len(waits)))
    assert not late


def test_swapped_ids_stay_in_place():
    late, out = LateAnswers(), list[int]()
    late.hold(held(1, out, swap="ids"))
    assert late.overtaken_by(frame(2, b"other")) == [frame(2, b"body"), frame(1, b"other")]
    assert out == [2]


def test_one_that_was_released_is_not_released_again():
    late, out = LateAnswers(), list[int]()
    first, second = held(1, out, hold_for=5), held(2, out, hold_for=5)
    late.hold(first)
    late.hold(second)
    assert late.release(first) == [frame(1)]
    assert late.release(first) == []
    assert late.overtaken_by(b"") == []
    assert late.release() == [frame(2)]
