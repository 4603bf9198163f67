"""What one side answered, made comparable: masked fields hidden, arrays without order sorted,
topics of others left out, topic ids named after their topics.

Knows which fields may differ and why, and nothing of sessions or programs.
"""

from __future__ import annotations

import json
import re
import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kproto.messages import CreateTopicsRequest, DeleteTopicsRequest
from kproto.schema.model import ZERO_UUID
from tests.real.chance import CHANCE, UNORDERED, ZNODE, listed_brokers
from tests.real.steps import Ask
from tests.real.targets import CLOSED, Target

__all__ = ["Answers", "differences", "leaves"]


_MASKS: Final = {(each.api_key, each.path) for each in CHANCE if each.how == "hide"}
_NAMES_OF_BROKERS: Final = {(each.api_key, each.path) for each in CHANCE if each.how == "broker"}
_ORDERS: Final = {(each.api_key, each.path): each.fields for each in UNORDERED}

OWN_TOPICS: Final = {3: ("topics", "name"), 46: ("topics", "name"),
                     35: ("results[].topics", "name"),
                     43: ("replicaElectionResults", "topic")}  # fmt: skip
"""Answers about everything are compared as far as the session's own topics go: what other sessions
left behind is theirs to compare."""


class Answers:
    """What one side answers to a session or program, whose topics' names begin with ``prefix``.
    ``forwards``: its brokers forward to the controller, as with KRaft."""

    def __init__(self, target: Target, prefix: str, *, forwards: bool) -> None:
        self.target = target
        self.topics: list[str] = []
        self._prefix = prefix
        self._forwards = forwards
        self._ids: dict[str, uuid.UUID] = {}
        self._brokers: frozenset[int] = frozenset()

    def body(self, ask: Ask) -> Any:
        return ask.body(self._ids) if callable(ask.body) else ask.body

    async def ask(self, ask: Ask, version: int) -> Any:
        body = self.body(ask)
        answer = await self.target.ask(ask, body, version)
        return self.read(answer, body, version if ask.forged is None else 0)

    def read(self, answer: Any, body: Any, version: int) -> Any:
        """An answer to ``body``, as it is compared."""
        if answer is CLOSED:
            return CLOSED
        self._remember(body, answer)
        plain = json.loads(answer.to_json(version))
        self._brokers = listed_brokers(plain) if self._forwards else frozenset()
        return self._normal(plain, body.API_KEY, "", self._names())

    async def znode(self, path: str) -> Any:
        """Read as JSON, or the text that is none; None is that there is no such znode."""
        text = await self.target.read_znode(path)
        if text is None:
            return None
        try:
            read = json.loads(text)
        except ValueError:
            return text
        return self._normal(read, ZNODE, "", self._names())

    def _names(self) -> dict[str, str]:
        """Topic ids as they are written, and what stands for them in a comparison."""
        return {_text(value): f"<id of {name}>" for name, value in self._ids.items()}

    def _remember(self, body: Any, answer: Any) -> None:
        """Topics made or seen, and their ids."""
        if isinstance(body, CreateTopicsRequest):
            for row in answer.topics:
                if row.error_code == 0 and row.name not in self.topics:
                    self.topics.append(row.name)
        elif isinstance(body, DeleteTopicsRequest):
            for row in answer.responses:
                if row.error_code == 0 and row.name in self.topics:
                    self.topics.remove(row.name)
        for row in getattr(answer, "topics", ()):
            topic_id = getattr(row, "topic_id", ZERO_UUID)
            if row.name and topic_id != ZERO_UUID:
                self._ids[row.name] = topic_id

    def _normal(self, value: Any, api_key: int, path: str, ids: Mapping[str, str]) -> Any:
        """Masked fields hidden, arrays without order sorted, other sessions' topics left out."""
        if (api_key, path) in _MASKS:
            return "<masked>"
        if (api_key, path) in _NAMES_OF_BROKERS and value in self._brokers:
            return "<a live broker>"
        if isinstance(value, dict):
            return {
                key: self._normal(each, api_key, f"{path}.{key}" if path else key, ids)
                for key, each in value.items()
            }
        if isinstance(value, list):
            rows = [self._normal(each, api_key, f"{path}[]", ids) for each in value]
            if OWN_TOPICS.get(api_key, ("", ""))[0] == path:
                name = OWN_TOPICS[api_key][1]
                rows = [row for row in rows if self._is_mine(row[name])]
            if (api_key, path) in _ORDERS:
                fields = _ORDERS[api_key, path]
                rows.sort(key=lambda row: _order(row, fields))
            return rows
        return ids.get(value, value) if isinstance(value, str) else value

    def _is_mine(self, name: str | None) -> bool:
        """Topics no session made, such as unknown ones, are in no other session's answer."""
        return name is None or name.startswith(self._prefix) or "-v" not in name


def _order(row: Any, fields: Sequence[str]) -> Any:
    """By these fields, null last; without fields, by the value itself."""
    if not fields:
        return json.dumps(row) if isinstance(row, dict) else row
    return [(row.get(name) is None, row.get(name)) for name in fields]


def _text(topic_id: uuid.UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def differences(real: Any, mock: Any) -> tuple[list[str], int]:
    """(what differs, how many fields there were)"""
    ours, theirs = dict(leaves(mock)), dict(leaves(real))
    paths = list(dict.fromkeys([*theirs, *ours]))
    missing = "<absent>"
    rows = [
        f"{path}: {theirs.get(path, missing)!r} / {ours.get(path, missing)!r}"
        for path in paths
        if theirs.get(path, missing) != ours.get(path, missing)
    ]
    return rows, len(paths)


_KEY_FIELDS: Final = ("apiKey", "name", "nodeId", "partitionIndex", "brokerId", "partitionId")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every field; an empty array or object is one too. Rows that have a name
    are called by it, so that one row too many is one difference."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        seen: Counter[str] = Counter()
        yield f"{path}.length", len(value)
        for row in value:
            key = next((str(row[name]) for name in _KEY_FIELDS if name in row), "")
            seen[key] += 1
            nth = f"#{seen[key]}" if seen[key] > 1 else ""
            yield from leaves(row, f"{path}[{key}{nth}]")
    else:
        yield re.sub(r"\s+", " ", path), value
