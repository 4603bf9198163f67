"""The known names that an unknown one may stand for."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "with_suggestion"]

_LONGEST = 60
_LEAST_PART = 3
_ALIKE = 0.65
_BEGINNING = 0.3
_PART = 0.98


def did_you_mean(name: str, known: Iterable[str], *, most: int = 2) -> str:
    """Return ``did you mean A or B?``, or "" if no known name is near.

    A name that contains the given one, whatever its case and hyphens, comes before one that is
    spelled like it: NOT_LEADER is short for NOT_LEADER_OR_FOLLOWER, and no NOT_CONTROLLER.
    """
    word, names = _plain(name[:_LONGEST]), {_plain(each): each for each in known}
    near = sorted((each for each in names if len(word) >= _LEAST_PART and word in each), key=len)
    if not near and word:
        alike = sorted(((_likeness(word, each), each) for each in names), reverse=True)
        near = [each for likeness, each in alike if likeness >= _ALIKE]
    return f"did you mean {' or '.join(names[each] for each in near[:most])}?" if near else ""


def with_suggestion(
    problem: str, name: str, known: Iterable[str], *, most: int = 2, otherwise: str = ""
) -> str:
    """Return ``PROBLEM; did you mean A or B?``, or ``PROBLEM; OTHERWISE`` if no name is near."""
    hint = did_you_mean(name, known, most=most) or otherwise
    return f"{problem}; {hint}" if hint else problem


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _likeness(word: str, name: str) -> float:
    """The share of equal characters, in the whole name or, for a little less, in as much of it as
    was written, and something for an equal beginning."""
    from difflib import SequenceMatcher  # only on errors, since it would slow every start

    pairs = list(zip(word, name, strict=False))
    equal = next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))
    whole = SequenceMatcher(None, name, word).ratio()
    part = SequenceMatcher(None, name[: len(word)], word).ratio()
    return max(whole, _PART * part) + _BEGINNING * equal / len(word)
