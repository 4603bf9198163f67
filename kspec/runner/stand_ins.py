"""Calls in place of ``list_topics``, for clients without it.

A case that makes no other call needs just some request: it is about connections, frames, versions
or authentication. A client that can produce writes a record instead, and one that can only consume
reads one. Such an answer has no list of topics, so that a ``value`` is not compared:
``kspec.judge`` then takes success for it.
"""

from __future__ import annotations

import re
from typing import Final

from kspec.answers import Answer
from kspec.error_kinds import Failure
from kspec.errors import AdapterFault
from kspec.model import Case
from kspec.runner.adapters import Adapter
from kspec.runner.stage import Stage

__all__ = ["SOME_REQUEST", "needs_some_request", "stand_in"]

SOME_REQUEST: Final = "list_topics"
_UNREAD: Final = Failure(
    "no record", message="the poll returned no record, and there was one", kind="timeout"
)


def needs_some_request(case: Case) -> bool:
    """Whether any request will do for the calls of this case."""
    calls = [each for step in case.steps for each in step.calls]
    made = {(each.call, each.by) for each in calls}
    return made == {(SOME_REQUEST, None)} and bool(case.cluster.topics)


async def stand_in(
    name: str, case: Case, stage: Stage, adapter: Adapter
) -> tuple[str, Answer] | None:
    """Make a call in place of the one of this name. Return its operation and its answer, or None if
    the client has no call that will do."""
    capabilities = set(adapter.greeting.capabilities)
    topic = re.split("[:=]", case.cluster.topics[0])[0]
    if "produce" in capabilities:
        records = [{"topic": topic, "partition": 0, "value": name}]
        answer = await adapter.call("produce", {"records": records})
        try:
            return "produce", answer.keyed([name])
        except ValueError as error:
            raise AdapterFault(str(error)) from None
    if {"assign", "poll"} <= capabilities:
        return "poll", await _read(f"{topic}-0", case.client.timeout_ms, stage, adapter)
    return None


async def _read(partition: str, timeout_ms: int, stage: Stage, adapter: Adapter) -> Answer:
    """Read the first record. A consumer that cannot go on rarely says so: no record is a
    failure."""
    if not stage.logs()[partition]["values"]:
        await stage.step(f"append {partition} first")
    answer = await adapter.call("assign", {"offsets": {partition: 0}})
    if not answer.ok:
        return answer
    answer = await adapter.call("poll", {"records": 1, "ms": 3 * timeout_ms // 2})
    unread = answer.failure is None and answer.unsupported is None and not answer.records
    return Answer(failure=_UNREAD, raw=answer.raw) if unread else answer
