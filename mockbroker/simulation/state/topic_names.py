"""Valid topic names (``Topic.validate``) and names that collide with each other."""

from __future__ import annotations

import re

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

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


def _older_text(name: str, release: Release) -> str:
    if not name:
        return "Topic name is illegal, it can't be empty"
    if name in (".", ".."):
        return 'Topic name cannot be "." or ".."'
    if len(name) > MAX_NAME_LENGTH:
        again = "Topic name" if release.has(facts.TOPIC_NAMES_PREFIXED) else "topic name"
        return (
            f"Topic name is illegal, it can't be longer than {MAX_NAME_LENGTH} characters, "
            f"{again}: {name}"
        )
    return (
        f'Topic name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
        "'.', '_' and '-'"
    )


def _oldest_text(name: str) -> str:
    if not name:
        return "topic name is illegal, can't be empty"
    if name in (".", ".."):
        return 'topic name cannot be "." or ".."'
    if len(name) > MAX_NAME_LENGTH:
        return f"topic name is illegal, can't be longer than {MAX_NAME_LENGTH} characters"
    return (
        f"topic name {name} is illegal, contains a character other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )


def check_topic_name(name: str, release: Release) -> None:
    """Raise Refusal (17) for an invalid name, with the text of a release."""
    problem = name_problem(name)
    if problem is not None:
        if not release.has(facts.TOPIC_NAMES_CAPITAL):
            text = _oldest_text(name)
        elif release.has(facts.TOPIC_NAMES_ILLEGAL):
            text = _older_text(name, release)
        else:
            text = f"Topic name is invalid: {problem}"
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def collide(one: str, other: str) -> bool:
    """Return whether the names differ only in '.' and '_', which metrics cannot distinguish."""
    return one.replace(".", "_") == other.replace(".", "_")
