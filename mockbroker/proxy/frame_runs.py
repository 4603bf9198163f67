"""Runs of frames that need no look inside: consecutive requests with the same head, and consecutive
answers in the expected order. No I/O.

A pipelining client sends many such frames at once; one call takes all of a read. The native engine
has the same functions (``kproto/native/frames.c``), and ``frame_runs`` selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias, cast

from kproto import extension
from kproto.codec.registry import CompiledPlan
from kproto.framing import SIZE_LENGTH

__all__ = ["FrameRuns", "answers_in_order", "frame_runs", "is_untagged", "requests_alike"]

_REQUEST: Final = Struct(">i4si")
"""Size, API key and version, correlation id."""
_ANSWER: Final = Struct(">ii")
"""Size, correlation id."""

RequestsAlike: TypeAlias = Callable[[bytes, int, int, int], tuple[list[int], int]]
AnswersInOrder: TypeAlias = Callable[
    [bytes, int, Sequence[int], int, int, CompiledPlan | None], tuple[int, int]
]

IsUntagged: TypeAlias = Callable[[list[bytes], CompiledPlan], bool]


class FrameRuns(NamedTuple):
    """The functions, in Python or in C. Python cannot tell whether a response has tagged fields
    without decoding it, and does not try."""

    requests_alike: RequestsAlike
    answers_in_order: AnswersInOrder
    is_untagged: IsUntagged


def requests_alike(data: bytes, at: int, rest: int, max_size: int) -> tuple[list[int], int]:
    """Return the correlation ids of a run of requests, and the offset behind its last frame.

    The first request begins at ``at``; its beginning, up to ``rest`` bytes behind the correlation
    id, has been received. Those that follow belong to the run as long as they have the same bytes
    there, apart from the correlation id, and a size of at most ``max_size``.
    """
    read, ids = _REQUEST.unpack_from, []
    begin, least = _REQUEST.size, _REQUEST.size - SIZE_LENGTH + rest
    size, api, correlation_id = read(data, at)
    expected = data[at + begin : at + begin + rest]
    last = len(data) - begin - rest
    while True:
        ids.append(correlation_id)
        at += SIZE_LENGTH + size
        if at > last:
            break
        size, found, correlation_id = read(data, at)
        if found != api or not least <= size <= max_size:
            break
        if not data.startswith(expected, at + begin):
            break
    return ids, at


def answers_in_order(
    data: bytes, at: int, ids: Sequence[int], place: int, max_size: int, plan: CompiledPlan | None
) -> tuple[int, int]:
    """Return how many answers from ``at`` on have the correlation ids ``ids[place:]``, and the
    offset behind the last of them. Their sizes are at most ``max_size``.

    With the ``plan`` of their bodies, which only the native engine has, only complete answers
    without tagged fields count (``is_untagged``).
    """
    assert plan is None
    read, least = _ANSWER.unpack_from, _ANSWER.size - SIZE_LENGTH
    last, count = len(data) - _ANSWER.size, 0
    while at <= last and place + count < len(ids):
        size, correlation_id = read(data, at)
        if correlation_id != ids[place + count] or not least <= size <= max_size:
            break
        count += 1
        at += SIZE_LENGTH + size
    return count, at


def is_untagged(_parts: list[bytes], _plan: CompiledPlan) -> bool:
    """Whether the response with this plan, a frame in parts, has no tagged fields in its header and
    none of the body's own; structs inside may have some. False for an invalid one."""
    return False


def frame_runs() -> FrameRuns:
    """Return the functions of the engine in use."""
    module = extension.in_use
    if module is None:
        return FrameRuns(requests_alike, answers_in_order, is_untagged)
    return FrameRuns(
        cast(RequestsAlike, module.requests_alike),
        cast(AnswersInOrder, module.answers_in_order),
        cast(IsUntagged, module.is_untagged),
    )
