"""Which outcomes have the same cause: the words of two outcomes, without what differs by chance."""

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
    """Texts that are equal where the cause is taken to be the same.

    Where the client's code is known, that says most. Else what was done says it: a hang, or a
    result that is wrong, has no words of its own.
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
