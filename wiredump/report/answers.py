"""Sections of the page that are answers to queries: saved questions, whose answers are those of
``wiredump ask``, and lists of rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kproto.dialects import dialect
from wiredump.questions.answers import Answer, Tables
from wiredump.questions.saved import FINDINGS, question
from wiredump.report.blocks import Block, Cell, Note, Table, cut, duration
from wiredump.rows.schema import TABLES

__all__ = [
    "LISTS", "MOST_LISTED", "QUESTIONS", "Answered", "answer_blocks", "api_name", "ask", "in_order",
]  # fmt: skip

MOST_SHOWN: Final = 200
MOST_LISTED: Final = 500

QUESTIONS: Final = (
    FINDINGS, "slow-clients", "slow-brokers", "errors", "groups", "attempts", "rebalances",
    "hot-partitions", "throttling", "top-talkers", "transactions", "lag", "rates", "retries",
    "metadata-storms", "hops",
)  # fmt: skip
"""Those that no other section answers."""


def in_order(table: str, times: str) -> str:
    """Return the order of a table's rows: by the first of ``times`` that is known, and at one
    time by what names a row, in whichever order files have them."""
    names = ", ".join(f"{table}.{column}" for column in ("run", *TABLES[table].order))
    return f"FROM {table} ORDER BY coalesce({times}, 0), {names}"


_WHO: Final = """
coalesce(nullif(concat_ws(' · ', nullif(concat_ws(' ', nullif(software_name, ''),
  nullif(software_version, '')), ''), nullif(client_id, '')), ''), 'unknown')"""

_UNSUPPORTED: Final = (
    "event, api_key, api_version, lowest, highest, software_name, software_version, client_id"
)

# Rows without a version list what a broker offered when it fell back.
LISTS: Final = {
    "unsupported": f"""
SELECT moment(first_ns) AS first_seen, event, api_key AS api, api_version AS version_asked,
  lowest || '\N{EN DASH}' || highest AS offered, {_WHO} AS client, times
FROM (
  SELECT {_UNSUPPORTED}, min(requested_ns) AS first_ns, count(*) AS times FROM negotiations
  WHERE event <> 'offered' AND NOT (event = 'fell back' AND api_version IS NULL)
  GROUP BY {_UNSUPPORTED}
)
ORDER BY first_ns, {_UNSUPPORTED}""",
    "reassignments": f"""
SELECT moment(coalesce(asked_ns, first_listed_ns, ended_ns)) AS asked,
  coalesce(topic, '?') || '-' || coalesce(CAST(partition AS STRING), '?') AS partition, outcome,
  coalesce(nullif(concat_ws(': ', nullif(error, ''), nullif(error_message, '')), ''), evidence)
    AS why, array_join(before, ', ') AS before, array_join(target, ', ') AS target,
  rf_change, ended_ns - asked_ns AS took_ns,
  if(asked_ns IS NULL, 'before the capture', {_WHO}) AS client, cluster
{in_order("reassignments", "asked_ns, first_listed_ns, ended_ns")}""",
    "elections": f"""
SELECT moment(requested_ns) AS asked, type,
  if(topic IS NULL, 'all', topic || '-' || partition) AS partition,
  if(answered, error, 'not answered') AS result, error_message AS message, client_id
{in_order("elections", "requested_ns")}""",
    "anomaly-kinds": """
SELECT kind, count(*) AS anomalies, coalesce(sum(bytes), 0) AS bytes,
  coalesce(sum(missing), 0) AS bytes_missing
FROM anomalies GROUP BY kind ORDER BY kind""",
    "anomalies": f"""
SELECT moment(timestamp_ns) AS time, kind, reason, 'c' || connection AS connection, direction,
  anomalies.offset, capture || ':' || packet AS packet
{in_order("anomalies", "timestamp_ns")}""",
    "lineage": """
SELECT capture AS number, source, kind, bytes AS bytes_read, moment(first_ns) AS began,
  moment(last_ns) AS ended, software AS made_by, CAST(schema AS STRING) AS schema
FROM lineage ORDER BY run, capture""",
}

_HEADS: Final = {
    "unsupported": {"first_seen": "first (UTC)", "offered": "offered#", "client": "client~"},
    "reassignments": {
        "asked": "asked (UTC)", "rf_change": "RF change", "took_ns": "took#",
        "cluster": "cluster%",
    },
    "elections": {"asked": "asked (UTC)", "message": "message~", "client_id": "client id~"},
    "anomalies": {"time": "time (UTC)", "reason": "reason~", "packet": "packet#"},
    "errors": {"error": "error%", "api": "api%", "client_id": "client id%"},
    "lineage": {"began": "from (UTC)", "ended": "to (UTC)", "schema": "schema#"},
}  # fmt: skip
"""Heads of columns of ``LISTS`` that are not made of their names. They may end in a mark of
``blocks.Table``."""

_NUMBERS: Final = ("INTEGER", "BIGINT", "SMALLINT", "HUGEINT", "DOUBLE", "DECIMAL", "FLOAT")
_BREAKABLE: Final = frozenset(
    {"group_id", "transactional_id", "topic", "topics", "topic_id", "assignor", "reasons", "errors"}
)
_NAMES: Final = frozenset({"producer_id", "epoch", "generation", "partition"})
"""Columns of numbers that are not amounts."""


class Answered(NamedTuple):
    """The first rows of an answer; ``total`` is the number of all rows."""

    answer: Answer
    total: int


def ask(tables: Tables) -> dict[str, Answered]:
    """Answer ``QUESTIONS`` about tables, and make ``LISTS``. Raises QueryError."""
    listed = [f"{query} LIMIT {MOST_LISTED}" for query in LISTS.values()]
    counted = [f"SELECT count(*) FROM ({query})" for query in LISTS.values()]
    found = tables.answers([question(name).query for name in QUESTIONS] + listed + counted)
    answered = {name: next(found) for name in (*QUESTIONS, *LISTS)}
    totals = {name: next(found).rows[0][0] for name in LISTS}
    return {
        name: Answered(each, totals[name])
        if name in totals
        else Answered(each._replace(rows=each.rows[:MOST_SHOWN]), len(each.rows))
        for name, each in answered.items()
    }


def answer_blocks(name: str, answered: Answered, table: str = "") -> list[Block]:
    """Return an answer as a table, with its id; nothing if it has no rows."""
    answer = answered.answer
    if not answer.rows:
        return []
    explanation = "" if name in LISTS else question(name).explanation
    known = _HEADS.get(name, {})
    columns = zip(answer.columns, answer.types, strict=True)
    heads = [known.get(column) or _head(column, kind) for column, kind in columns]
    return [
        *[Note(explanation)] * bool(explanation),
        Table(table or name, heads, [[*map(_cell, answer.columns, row)] for row in answer.rows]),
        *cut(len(answer.rows), answered.total),
    ]


def api_name(key: int | None) -> str:
    """Return the name of an api by its key."""
    found = dialect("kafka").apis.get(key) if key is not None else None
    if found is None:
        return "unknown" if key is None else f"api {key}"
    return found.request.MESSAGE_NAME.removesuffix("Request")


def _head(name: str, kind: str) -> str:
    text = name.replace("_ms", " (ms)").replace("_", " ")
    if kind.startswith(_NUMBERS) and name != "api":
        return f"{text}#"
    return f"{text}%" if name in _BREAKABLE else text


def _cell(name: str, value: Any) -> Any:
    match value:
        case None:
            return ""
        case int() if name == "api":
            return api_name(value)
        case int() if name == "took_ns":
            return duration(value)
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
