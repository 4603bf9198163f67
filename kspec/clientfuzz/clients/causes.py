"""Decide which outcomes have the same cause, ignoring the parts of a message that vary."""

from __future__ import annotations

import re
from typing import Final

from kspec.clientfuzz.clients.case import Case
from kspec.clientfuzz.clients.judge import Outcome

__all__ = ["cause", "normalised"]

_CHANCE: Final = (
    (re.compile(r"127\.0\.0\.1:\d+|localhost:\d+"), "HOST"),
    (re.compile(r"0x[0-9a-fA-F]+"), "HEX"),
    (re.compile(r"'[^']*'|\"[^\"]*\""), "TEXT"),
    (re.compile(r"-?\d+(\.\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)
_LONGEST: Final = 120
_WORD: Final = re.compile(r"\bSIG[A-Z]+\b|\b\w*(?:Error|Exception)\b|\bpanic\b")


def normalised(message: str) -> str:
    for pattern, word in _CHANCE:
        message = pattern.sub(word, message)
    return message[:_LONGEST].strip()


def cause(case: Case, outcome: Outcome) -> str:
    """Return a text that is equal for outcomes with the same cause.

    If the place in the client's code is known, it identifies the cause. Otherwise the mutation
    does, since a hang or a wrong result has no message.
    """
    verdict = outcome.verdict
    if outcome.at:
        word = _WORD.search(outcome.message)
        return f"{verdict} at {outcome.at}" + (f": {word[0]}" if word else "")
    where = re.sub(r"\[\d+\]", "[]", case.mutation.path if case.mutation is not None else "")
    done = f"{case.kinds[0]} {where}".strip() if len(case.kinds) == 1 else "several"
    if verdict in ("lenient", "refuses", "wedged"):
        return f"{verdict}: {done.split()[0]}"
    if verdict in ("hang", "memory", "cpu", "stuck", "wrong"):
        return f"{verdict}: {case.op}, api {case.api_key}: {done}"
    return f"{verdict}: api {case.api_key}: {normalised(outcome.message)}"
