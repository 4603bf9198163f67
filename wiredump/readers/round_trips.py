"""Round-trip times of the data that one end of a connection sends, as seen where it was captured:
from a segment to the acknowledgement that first covers its last byte.

Karn's rule: a segment that is captured twice, or behind later bytes, is not measured, since the
acknowledgement may answer either copy. At most ``TIMED`` segments are timed at once; those sent
meanwhile are not measured. Times are counted in a histogram of fixed size, so that the median is
known to 1/16 of itself or 128 ns; the minimum and the maximum are exact.

The newest segments are kept, whether acknowledged or not: a packet with the IP identification of
one of them is its copy, captured on another interface, in another VLAN or at the other end.

The state is an array of unsigned 64-bit integers. native/round_trips.c changes it in place, so that
it is the same whether Python or the extension reads a connection's next segment.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

__all__ = [
    "ACKNOWLEDGED", "COPY_NS", "NONE", "TIMED", "RoundTrips", "State", "acknowledge", "begin",
    "note", "original", "resend", "restart", "send", "sums",
]  # fmt: skip

if TYPE_CHECKING:
    State: TypeAlias = array[int]
else:
    State = array  # cannot be subscripted before Python 3.12

TIMED: Final = 32
MINIMUM: Final = 0
MAXIMUM: Final = 1
ACKNOWLEDGED: Final = 2
FIRST: Final = 3
COUNT: Final = 4
RING: Final = 5
"""Places in the state. ``ACKNOWLEDGED`` is the highest acknowledgement number. The ring has the
segments that are timed, ``COUNT`` from number ``FIRST`` on, in the order of their bytes: two
integers each, the time, and the sequence numbers of the first byte (the high half) and of the one
behind the last."""
HISTOGRAM: Final = RING + 2 * TIMED
BUCKETS: Final = 208
_UNIT_BITS: Final = 8
"""The histogram counts in units of 256 ns: a bucket for each of the first 16, and 8 for each power
of two above. Its last bucket begins at 64 s and has no end."""
NOTED: Final = HISTOGRAM + BUCKETS
KEPT: Final = 64
"""How many segments were noted, and behind that the newest of them, in a ring: two integers each,
the time, and the sequence number (the high half), the size (16 bits) and the identification."""
_SIZE: Final = NOTED + 1 + 2 * KEPT
_EMPTY: Final = bytes(8 * _SIZE)
COPY_NS: Final = 100_000
"""How soon after a segment an equal one without an identification is its copy."""
_SAME_NS: Final = 1_000_000_000
"""The same of segments with an identification, which a sender uses again after 65,536 packets."""
_SHORTEST: Final = 256
"""The bytes of segments that a network adapter cuts a longer one into, at least."""
_MASK: Final = (1 << 32) - 1
_HALF: Final = 1 << 31
_MOST_NS: Final = (1 << 63) - 1
_MASK_64: Final = (1 << 64) - 1


class RoundTrips(NamedTuple):
    """How many segments were measured, and their times; None where there are none."""

    samples: int
    min_ns: int | None
    median_ns: int | None
    max_ns: int | None


NONE: Final = RoundTrips(0, None, None, None)


def begin(sequence: int) -> State:
    """Everything before ``sequence`` is acknowledged, or will not be measured."""
    state = array("Q", _EMPTY)
    state[MINIMUM], state[ACKNOWLEDGED] = _MOST_NS, sequence & _MASK
    return state


def send(state: State, sequence: int, size: int, now: int) -> None:
    """A segment with bytes behind all that were sent before."""
    end = (sequence + size) & _MASK
    count = state[COUNT]
    if count == TIMED or (state[ACKNOWLEDGED] - end) & _MASK < _HALF:
        return
    at = RING + 2 * ((state[FIRST] + count) % TIMED)
    state[at] = now & _MASK_64  # a capture's clock may have any time
    state[at + 1] = (sequence & _MASK) << 32 | end
    state[COUNT] = count + 1


def note(state: State, sequence: int, size: int, identification: int, now: int) -> None:
    """Keep a segment, to tell its copies."""
    number = state[NOTED]
    at = NOTED + 1 + 2 * (number % KEPT)
    state[at] = now & _MASK_64
    state[at + 1] = (sequence & _MASK) << 32 | (size & 0xFFFF) << 16 | identification
    state[NOTED] = number + 1


def original(
    state: State, sequence: int, size: int, identification: int, now: int
) -> tuple[int, bool] | None:
    """Return how long ago the segment was captured of which this one is a copy, and whether their
    identifications are equal; None without one. Offloading to the network adapter sends a long
    segment as several, which count their identifications up."""
    for number in range(state[NOTED] - 1, max(0, state[NOTED] - KEPT) - 1, -1):
        at = NOTED + 1 + 2 * (number % KEPT)
        ago, key = (now - state[at]) & _MASK_64, state[at + 1]
        ago -= (ago >> 63) << 64  # the clocks of two interfaces may differ
        behind, length, other = (sequence - (key >> 32)) & _MASK, key >> 16 & 0xFFFF, key & 0xFFFF
        if identification and other:
            later = (identification - other) & 0xFFFF
            is_part = later and behind < length and behind % later == 0
            if abs(ago) <= _SAME_NS and (
                behind == later == 0 or (is_part and behind // later >= _SHORTEST)
            ):
                return ago, True
        elif behind == 0 and length == size & 0xFFFF and abs(ago) <= COPY_NS:
            return ago, False
    return None


def extend(state: State) -> None:
    """Add what states of earlier releases lack."""
    state.frombytes(_EMPTY[8 * len(state) :])


def resend(state: State, sequence: int, size: int) -> None:
    """A segment with bytes that were sent before, or that is behind later ones: those of its bytes
    that are timed are no longer."""
    timed = [
        (state[at], state[at + 1])
        for number in range(state[COUNT])
        for at in (RING + 2 * ((state[FIRST] + number) % TIMED),)
        if not _overlap(state[at + 1] >> 32, state[at + 1] & _MASK, sequence, size)
    ]
    state[FIRST], state[COUNT] = 0, len(timed)
    for number, pair in enumerate(timed):
        state[RING + 2 * number], state[RING + 2 * number + 1] = pair


def _overlap(start: int, end: int, sequence: int, size: int) -> bool:
    behind = (end - sequence) & _MASK  # how far its end is past where the other one begins
    before = (sequence + size - start) & _MASK
    return 0 < behind < _HALF and 0 < before < _HALF


def restart(state: State, sequence: int) -> None:
    """The next bytes are elsewhere: forget what is timed."""
    state[ACKNOWLEDGED], state[COUNT] = sequence & _MASK, 0


def acknowledge(state: State, number: int, now: int) -> None:
    """The other end has everything before ``number``."""
    if not 0 < (number - state[ACKNOWLEDGED]) & _MASK < _HALF:
        return
    state[ACKNOWLEDGED] = number
    first, count = state[FIRST], state[COUNT]
    while count:
        at = RING + 2 * first
        if (number - state[at + 1]) & _MASK >= _HALF:
            break
        _measured(state, (now - state[at]) & _MASK_64)
        first = (first + 1) % TIMED
        count -= 1
    state[FIRST], state[COUNT] = first, count


def _measured(state: State, took_ns: int) -> None:
    if took_ns > _MOST_NS:  # the clock of the capture went back
        return
    if took_ns < state[MINIMUM]:
        state[MINIMUM] = took_ns
    if took_ns > state[MAXIMUM]:
        state[MAXIMUM] = took_ns
    state[HISTOGRAM + _bucket(took_ns)] += 1


def _bucket(took_ns: int) -> int:
    units = took_ns >> _UNIT_BITS
    power = units.bit_length() - 4
    bucket = units if power < 0 else 8 * power + (units >> power)
    return bucket if bucket < BUCKETS else BUCKETS - 1


def sums(state: State | None) -> RoundTrips:
    """What was measured so far."""
    if state is None or state[MINIMUM] > state[MAXIMUM]:
        return NONE
    low, high = state[MINIMUM], state[MAXIMUM]
    bucket = _bucket(low)
    buckets = state[HISTOGRAM + bucket : HISTOGRAM + _bucket(high) + 1]
    count = sum(buckets)
    left = (count + 1) // 2
    for each in buckets:
        if left <= each:
            break
        left -= each
        bucket += 1
    return RoundTrips(count, low, min(high, max(low, _middle(bucket))), high)


def _middle(bucket: int) -> int:
    """Of the times that a bucket counts, in ns."""
    power = max(0, bucket // 8 - 1)
    return (2 * (bucket - 8 * power) + 1) << power + _UNIT_BITS - 1
