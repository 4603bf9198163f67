"""Generate cases from a seed: which call, which answer, and which mutation. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kspec.clientfuzz.clients.case import Case
from kspec.clientfuzz.mutate import MutationError, mutation_of
from kspec.clientfuzz.mutate.draws import SEED_BITS, Draws

__all__ = ["Target", "draw_case"]

_TRIES: Final = 20
_DELIVERIES: Final[tuple[dict[str, Any], ...]] = (
    {"split": 1},
    {"split": 5, "split_delay": 1},
    {"unsolicited": "before"},
    {"unsolicited": "after"},
    {"unsolicited": "before", "unsolicited_correlation_id": -1},
    {"disconnect": "answered"},
    {"disconnect": "answered", "close_with": "reset"},
    {"hold_for": 30},
    {"swap": "ids"},
    {"swap": "order", "hold_for": 30},
)
"""Ways to deliver an answer, independent of its content. ``swap`` needs a second request in flight;
without one, the answer never arrives, which is a valid case too."""
_DELIVERED: Final = 0.15
_PERSISTENT: Final = 0.35


class Target(NamedTuple):
    """An answer that the client received when it was asked for ``op``: the ``nth`` of this API key,
    as a whole frame."""

    op: str
    api_key: int
    version: int
    nth: int
    frame: bytes


def draw_case(
    targets: Sequence[Target],
    seed: int,
    number: int,
    *,
    kinds: Collection[str] | None = None,
    dialect: Dialect | str = "kafka",
) -> Case:
    """Return the case of a number. It depends only on the targets, the seed and the number.

    Each API key is equally likely. Raises MutationError if none of ``kinds`` applies to any target.
    """
    draws = Draws(seed * 1_000_003 + number)
    keys = sorted({target.api_key for target in targets})
    for _ in range(_TRIES):
        key = draws.one(keys)
        target = draws.one([each for each in targets if each.api_key == key])
        own = draws.below(1 << SEED_BITS)
        delivery = draws.one(_DELIVERIES) if draws.chance(_DELIVERED) else {}
        persistent = draws.chance(_PERSISTENT)
        case = Case(
            target.op, target.api_key, target.version, target.nth,
            persistent=persistent, delivery=delivery, seed=own,
        )  # fmt: skip
        if delivery and draws.chance(0.5) and kinds is None:
            return case  # a valid frame with unusual delivery
        depth = draws.one([1, 1, 1, 2, 3])
        try:
            mutation = mutation_of(
                target.frame,
                target.api_key,
                target.version,
                own,
                depth=depth,
                kinds=kinds,
                dialect=dialect,
            )
            made = case.without(mutation=mutation)
            if _possible(made):
                return made
        except MutationError:
            continue
    raise MutationError("none of these kinds has a place in any answer that the client received")


def _possible(case: Case) -> bool:
    """Return whether a fault rule can express both; ``swap`` combines with few others."""
    from mockbroker.faults.documents import fault_of

    try:
        fault_of(case.rule())
    except KprotoError:
        return False
    return True
