"""Saved questions as sections of the page: the same answers as those of ``wiredump ask``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from wiredump.questions.database import Answer, answers
from wiredump.questions.saved import question
from wiredump.report.blocks import Block, Cell, Note, Table, cut

__all__ = ["MOST_SHOWN", "QUESTIONS", "Asked", "answer_blocks", "ask"]

MOST_SHOWN: Final = 200

QUESTIONS: Final = (
    "slow-clients", "slow-brokers", "errors", "rebalances", "hot-partitions", "throttling",
    "top-talkers", "transactions",
)  # fmt: skip
"""Those that no other section answers."""

_NUMBERS: Final = ("INTEGER", "BIGINT", "SMALLINT", "HUGEINT", "DOUBLE", "DECIMAL", "FLOAT")
_BREAKABLE: Final = frozenset(
    {"group_id", "transactional_id", "topic", "topics", "topic_id", "assignor", "reasons", "errors"}
)
_NAMES: Final = frozenset({"producer_id", "epoch", "generation", "partition"})
"""Columns of numbers that are not amounts."""


class Asked(NamedTuple):
    """The first rows of an answer; ``total`` is the number of all rows."""

    answer: Answer
    total: int


def ask(folder: str) -> dict[str, Asked]:
    """Answer ``QUESTIONS`` about a folder of tables. Raises QueryError."""
    found = answers(folder, [question(name).query for name in QUESTIONS])
    return {
        name: Asked(each._replace(rows=each.rows[:MOST_SHOWN]), len(each.rows))
        for name, each in zip(QUESTIONS, found, strict=True)
    }


def answer_blocks(name: str, asked: Asked, table: str = "") -> list[Block]:
    """Return an answer as a table, with its id; nothing if it has no rows."""
    answer = asked.answer
    if not answer.rows:
        return []
    explanation = question(name).explanation
    heads = [_head(*each) for each in zip(answer.columns, answer.types, strict=True)]
    return [
        *[Note(explanation)] * bool(explanation),
        Table(
            table or name,
            heads,
            [[*map(_cell, answer.columns, row)] for row in answer.rows],
        ),
        *cut(len(answer.rows), asked.total),
    ]


def _head(name: str, kind: str) -> str:
    text = name.replace("_ms", " (ms)").replace("_", " ")
    if kind.startswith(_NUMBERS):
        return f"{text}#"
    return f"{text}%" if name in _BREAKABLE else text


def _cell(name: str, value: Any) -> Any:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            seconds = value.replace(tzinfo=UTC).timestamp()
            return Cell(value.isoformat(" ", "milliseconds"), seconds)
        case float():
            return Cell(f"{value:,.3f}" if value < 1 else f"{value:,.1f}", value)
        case int() if name in _NAMES:
            return Cell(str(value), value)
    return value
