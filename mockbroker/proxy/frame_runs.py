"""Runs of frames that need no look inside: consecutive requests with the same head, and consecutive
answers in the expected order. No I/O.

A pipelining client sends many such frames at once; one call takes all of a read. The native engine
has the same two functions (``kproto/native/frames.c``), and ``frame_runs`` selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias, cast

from kproto import extension
from kproto.framing import SIZE_LENGTH

__all__ = ["FrameRuns", "answers_in_order", "frame_runs", "requests_alike"]

_REQUEST: Final = Struct(">i4si")
"""Size, API key and version, correlation id."""
_ANSWER: Final = Struct(">ii")
"""Size, correlation id."""

RequestsAlike: TypeAlias = Callable[[bytes, int, int, int], tuple[list[int], int]]
AnswersInOrder: TypeAlias = Callable[[bytes, int, Sequence[int], int, int], tuple[int, int]]


class FrameRuns(NamedTuple):
    """The two functions, in Python or in C."""

    requests_alike: RequestsAlike
    answers_in_order: AnswersInOrder


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
    data: bytes, at: int, ids: Sequence[int], place: int, max_size: int
) -> tuple[int, int]:
    """Return how many answers from ``at`` on have the correlation ids ``ids[place:]``, and the
    offset behind the last of them. Their sizes are at most ``max_size``."""
    read, least = _ANSWER.unpack_from, _ANSWER.size - SIZE_LENGTH
    last, count = len(data) - _ANSWER.size, 0
    while at <= last and place + count < len(ids):
        size, correlation_id = read(data, at)
        if correlation_id != ids[place + count] or not least <= size <= max_size:
            break
        count += 1
        at += SIZE_LENGTH + size
    return count, at


def frame_runs() -> FrameRuns:
    """Return the functions of the engine in use."""
    module = extension.in_use
    if module is None:
        return FrameRuns(requests_alike, answers_in_order)
    return FrameRuns(
        cast(RequestsAlike, module.requests_alike), cast(AnswersInOrder, module.answers_in_order)
    )
