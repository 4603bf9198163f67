"""Valid topic names (``Topic.validate``) and names that collide with each other."""

from __future__ import annotations

import re

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal

__all__ = ["MAX_NAME_LENGTH", "check_topic_name", "collide", "name_problem"]

MAX_NAME_LENGTH = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """Return Kafka's text for an invalid name; None for a valid one."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def check_topic_name(name: str) -> None:
    """Raise Refusal (17) for an invalid name."""
    problem = name_problem(name)
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def collide(one: str, other: str) -> bool:
    """Return whether the names differ only in '.' and '_', which metrics cannot distinguish."""
    return one.replace(".", "_") == other.replace(".", "_")
