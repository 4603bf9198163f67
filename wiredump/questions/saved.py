"""Saved questions: files of SQL, of which the first line of comment is the question and the others
explain the answer."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from kproto.errors import UnknownNameError
from kproto.near_names import with_suggestion

__all__ = ["FINDINGS", "Question", "question", "questions"]

FINDINGS: Final = "findings"
"""The question whose answer comes first."""


class Question(NamedTuple):
    name: str
    text: str
    """The question in a sentence."""
    explanation: str
    """What the columns mean where their names do not tell; may be empty."""
    query: str


@cache
def questions() -> dict[str, Question]:
    """Return all saved questions by name, sorted."""
    folder = resources.files(__package__).joinpath("queries")
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".sql")),
        key=lambda each: each.name,
    )
    return {
        name: _question(name, each.read_text(encoding="utf-8"))
        for each in files
        for name in [each.name.removesuffix(".sql")]
    }


def question(name: str) -> Question:
    """Return a question by name. Raises UnknownNameError with near matches."""
    found = questions().get(name)
    if found is None:
        problem, hint = f"no question is called {name!r}", "`wiredump ask` lists them"
        raise UnknownNameError(with_suggestion(problem, name, questions(), most=3, otherwise=hint))
    return found


def _question(name: str, text: str) -> Question:
    lines = text.splitlines()
    comments = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    query = "\n".join(line for line in lines if not line.startswith("--")).strip()
    return Question(name, comments[0], " ".join(comments[1:]), query)
