"""Which members of a rule go together. Says what is wrong with a rule, in words; knows no bytes.

A table: each row is some members, and those they need or exclude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mockbroker.faults.rule import Fault

__all__ = ["conflict"]

_ACTIONS: Final = (
    "apply", "steps_before", "steps_after", "reply", "error", "throttle", "as_version",
    "unknown_tags", "set", "set_length", "set_bytes", "more", "replace_bytes", "correlation_id",
    "correlation_off_by", "trailing", "length", "length_off_by", "truncate", "raw", "garbage",
    "tls_alert", "follow_with", "unsolicited", "never_answer", "delay", "hold_responses",
    "hold_for", "swap", "split", "disconnect",
)  # fmt: skip
"""What a rule has to have one of."""

_BYTES: Final = ("raw", "garbage", "tls_alert")
"""What takes the answer's place whole, one at a time."""
_SAYS: Final = (
    "reply", "error", "throttle", "as_version", "unknown_tags", "set", "set_length", "set_bytes",
    "more", "replace_bytes",
)  # fmt: skip
"""What changes the message."""
_SHAPES: Final = (
    "correlation_id", "correlation_off_by", "trailing", "length", "length_off_by",
)  # fmt: skip
"""What changes the frame around it."""
_LATE: Final = ("hold_responses", "hold_for", "swap")
_ANSWERS: Final = (
    *_BYTES, *_SAYS, *_SHAPES, *_LATE, "truncate", "follow_with", "unsolicited", "split",
)  # fmt: skip
"""What needs an answer to be about."""

_NEEDS: Final = {
    "error_message": ("error",),
    "error_at": ("error",),
    "split_delay": ("split",),
    "close_with": ("disconnect",),
    "unsolicited_correlation_id": ("unsolicited",),
}
"""Member -> those without one of which it says nothing."""

_EXCLUDES: Final = (
    (("raw",), ("garbage", "tls_alert")),
    (("garbage",), ("tls_alert",)),
    (_BYTES, (*_SAYS, *_SHAPES, "unsolicited", "truncate", "swap")),
    (("reply",), ("error",)),
    (("length",), ("length_off_by",)),
    (("correlation_id",), ("correlation_off_by",)),
    (("swap",), ("hold_responses", "correlation_id", "correlation_off_by", "length")),
    (_LATE, ("split", "unsolicited", "disconnect", "follow_with")),
    (("never_answer",), (*_ANSWERS, "delay", "disconnect")),
)
"""Pairs of members that cannot both be given."""


def conflict(fault: Fault) -> str | None:
    """What is wrong with the rule as a whole; None where nothing is."""
    given = {name for name in fault.to_dict() if name != "name"}
    if not given & set(_ACTIONS):
        return f"the rule does nothing: give it one of {', '.join(_ACTIONS)}"
    for name, needed in _NEEDS.items():
        if name in given and not given & set(needed):
            return f"{name} says something about {needed[0]}, and there is none"
    for some, others in _EXCLUDES:
        one = next((name for name in some if name in given), None)
        other = next((name for name in others if name in given), None)
        if one is not None and other is not None:
            return f"{one} and {other} exclude each other"
    return _about_the_end(fault, given) or _about_applying(fault, given)


def _about_the_end(fault: Fault, given: set[str]) -> str | None:
    if fault.disconnect not in ("before", "after"):
        return None
    unanswered = next((name for name in _ANSWERS if name in given), None)
    if unanswered is not None:
        return (
            f"{unanswered} and disconnect {fault.disconnect} exclude each other: there is no "
            "answer (disconnect answered closes behind it)"
        )
    if fault.apply is not None:
        return f"disconnect {fault.disconnect} says already whether the request is applied"
    return None


def _about_applying(fault: Fault, given: set[str]) -> str | None:
    if "apply" not in given or fault.apply:
        return None
    if given & {"reply", "error", "never_answer", *_BYTES}:
        return None
    return "apply false: give a reply, an error, raw, garbage, tls_alert or never_answer with it"
