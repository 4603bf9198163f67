"""When the bytes of a response go out, and when the connection ends.

``plan_answer`` turns a response frame and a rule into a plan. This module has no sockets and no
clock: ``mockbroker.serving.listeners`` performs the plan in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from mockbroker.faults.frame_edits import with_correlation_id
from mockbroker.faults.rule import CloseWith, Fault, Swap

__all__ = ["End", "Hold", "LateAnswers", "Plan", "Sleep", "Step", "Write", "plan_answer"]

_UNSOLICITED_BIT = 0x4000_0000
"""The correlation id of an unsolicited response differs from the request's in this bit."""


class Write(NamedTuple):
    data: bytes


class Sleep(NamedTuple):
    milliseconds: int


class End(NamedTuple):
    """The connection ends in the way ``how`` names; no later request on it is answered."""

    how: CloseWith


class Hold(NamedTuple):
    """A response that later responses overtake.

    It goes out after that many ``responses``, or after that many ``milliseconds``; None sets no
    such limit. ``went_out`` is called with its bytes when it goes out.
    """

    data: bytes
    responses: int | None
    milliseconds: int | None
    swap: Swap | None
    went_out: Callable[[bytes], None]


Step: TypeAlias = Write | Sleep | End | Hold


class Plan(NamedTuple):
    """Steps to perform in order. ``answers``: whether they contain the response."""

    steps: tuple[Step, ...]
    answers: bool


def plan_answer(frame: bytes, fault: Fault, went_out: Callable[[bytes], None]) -> tuple[Step, ...]:
    """Plan the delivery of a response frame.

    ``went_out`` is called with each frame: now, or, for a held response, when it goes out.
    """
    data = frame if fault.truncate is None else frame[: fault.truncate]
    data += bytes.fromhex(fault.follow_with or "")
    if fault.swap or fault.hold_responses or fault.hold_for is not None:
        responses = 1 if fault.swap else fault.hold_responses
        held_for = fault.hold_for if isinstance(fault.hold_for, int) else None
        return (Hold(data, responses, held_for, fault.swap, went_out),)
    steps: list[Step] = []
    if fault.unsolicited == "before":
        steps.append(_unsolicited(frame, fault, went_out))
    went_out(data)
    steps += _writes(data, fault)
    if fault.unsolicited == "after":
        steps.append(_unsolicited(frame, fault, went_out))
    if fault.disconnect == "answered":
        steps.append(End(fault.close_with or "fin"))
    return tuple(steps)


def _unsolicited(frame: bytes, fault: Fault, went_out: Callable[[bytes], None]) -> Write:
    own, other = int.from_bytes(frame[4:8], "big"), fault.unsolicited_correlation_id
    if other is None:
        other = own ^ _UNSOLICITED_BIT
    extra = with_correlation_id(frame, other if isinstance(other, int) else own)
    went_out(extra)
    return Write(extra)


def _writes(data: bytes, fault: Fault) -> list[Step]:
    if fault.split is None:
        return [Write(data)]
    steps: list[Step] = []
    pause = fault.split_delay if isinstance(fault.split_delay, int) else 0
    for at in range(0, len(data), fault.split):
        if at:
            steps.append(Sleep(pause))
        steps.append(Write(data[at : at + fault.split]))
    return steps


class LateAnswers:
    """The held responses of one connection, oldest first."""

    def __init__(self) -> None:
        self._held: list[tuple[Hold, int | None]] = []

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, held: Hold) -> None:
        self._held.append((held, held.responses))

    def overtaken_by(self, answer: bytes) -> list[bytes]:
        """Return ``answer``, which goes out now, with the held responses that follow it."""
        due: list[Hold] = []
        left: list[tuple[Hold, int | None]] = []
        for held, responses in self._held:
            remaining = None if responses is None else responses - 1
            if remaining == 0:
                due.append(held)
            else:
                left.append((held, remaining))
        self._held = left
        out = [answer]
        for held in due:
            data = held.data
            if held.swap == "ids" and len(answer) >= 8 and len(data) >= 8:
                # Each keeps its place in the stream and takes the other's correlation id.
                data = with_correlation_id(data, _id(answer))
                out = [data, with_correlation_id(answer, _id(held.data))]
            else:
                out.append(data)
            held.went_out(data)
        return [each for each in out if each]

    def release(self, held: Hold | None = None) -> list[bytes]:
        """Return the bytes of one response, if it is still held, or of all of them."""
        due = [each for each, _ in self._held if held is None or each is held]
        self._held = [pair for pair in self._held if not any(pair[0] is each for each in due)]
        for each in due:
            each.went_out(each.data)
        return [each.data for each in due]


def _id(frame: bytes) -> int:
    return int.from_bytes(frame[4:8], "big", signed=True)
