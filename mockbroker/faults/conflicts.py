"""Tables of the rule members that need or exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["conflict"]

_ACTIONS: Final = (
    "apply", "steps_before", "steps_after", "reply", "error", "throttle", "as_version",
    "unknown_tags", "set", "set_length", "set_bytes", "more", "replace_bytes", "corrupt",
    "correlation_id",
    "correlation_off_by", "trailing", "length", "length_off_by", "truncate", "raw", "garbage",
    "tls_alert", "follow_with", "unsolicited", "never_answer", "delay", "hold_responses",
    "hold_for", "swap", "split", "disconnect",
)  # fmt: skip
"""A rule needs at least one of these, unless it observes."""

_BYTES: Final = ("raw", "garbage", "tls_alert")
"""Members that replace the whole response. A rule has at most one."""
_SAYS: Final = (
    "reply", "error", "throttle", "as_version", "unknown_tags", "set", "set_length", "set_bytes",
    "more", "replace_bytes", "corrupt",
)  # fmt: skip
"""Members that change the response message."""
_SHAPES: Final = (
    "correlation_id", "correlation_off_by", "trailing", "length", "length_off_by",
)  # fmt: skip
"""Members that change the frame around the message."""
_LATE: Final = ("hold_responses", "hold_for", "swap")
_ANSWERS: Final = (
    *_BYTES, *_SAYS, *_SHAPES, *_LATE, "truncate", "follow_with", "unsolicited", "split",
)  # fmt: skip
"""Members that have no effect without a response."""

_NEEDS: Final = {
    "error_message": ("error",),
    "error_at": ("error",),
    "split_delay": ("split",),
    "close_with": ("disconnect",),
    "unsolicited_correlation_id": ("unsolicited",),
}
"""Member -> members of which the rule needs at least one with it."""

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
"""Pairs of groups: a rule has no member of one together with a member of the other."""


def conflict(members: Mapping[str, Any]) -> str | None:
    """Describe the first conflict between the members that a rule has, as ``Fault.to_dict`` returns
    them; None if there is none."""
    given = {*members} - {"name"}
    if "observe" in given:
        action = next((name for name in _ACTIONS if name in given), None)
        return None if action is None else f"observe cannot be combined with {action}"
    if not given & set(_ACTIONS):
        return f"the rule has no effect; it needs at least one of {', '.join(_ACTIONS)}"
    for name, needed in _NEEDS.items():
        if name in given and not given & set(needed):
            return f"{name} requires {needed[0]}"
    for some, others in _EXCLUDES:
        one = next((name for name in some if name in given), None)
        other = next((name for name in others if name in given), None)
        if one is not None and other is not None:
            return f"{one} cannot be combined with {other}"
    return _about_the_end(members, given) or _about_applying(members, given)


def _about_the_end(members: Mapping[str, Any], given: set[str]) -> str | None:
    end = members.get("disconnect")
    if end not in ("before", "after"):
        return None
    unanswered = next((name for name in _ANSWERS if name in given), None)
    if unanswered is not None:
        return (
            f"{unanswered} cannot be combined with disconnect {end}, which sends no "
            "response (disconnect answered sends one and then closes)"
        )
    if "apply" in given:
        return (
            f"apply cannot be combined with disconnect {end}, which already decides "
            "whether the request is applied"
        )
    return None


def _about_applying(members: Mapping[str, Any], given: set[str]) -> str | None:
    if members.get("apply", True):
        return None
    if given & {"reply", "error", "never_answer", *_BYTES}:
        return None
    return "apply false requires reply, error, raw, garbage, tls_alert or never_answer"
