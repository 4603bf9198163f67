"""Names of topic ids, from messages that have both (KIP-516).

The name of an id never changes, so it does not matter which broker stated it. A name is known from
the time at which the message that has it was complete.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from wiredump.knowledge.excerpts import INSTRUCTIVE, Excerpt
from wiredump.rows.exchanges import Row
from wiredump.rows.fields import NO_TOPIC_ID

__all__ = ["MOST_TOPICS", "TopicNames", "is_instructive"]

MOST_TOPICS: Final = 200_000
"""The most names kept; beyond that, the one learnt first is forgotten."""

_SINCE: Final = {3: 10, 4: 5, 6: 7, 19: 7, 20: 6}
"""The first version with topic ids, by API key; older versions are skipped."""

_NAMES: Final = ("name", "topicName", "topic")


def is_instructive(api_key: int, api_version: int) -> bool:
    """Whether such an exchange may have an id with its name."""
    return api_key in INSTRUCTIVE and api_version >= _SINCE.get(api_key, 0)


class TopicNames:
    """``learn`` from exchanges, then look up a ``name``."""

    def __init__(self, most: int = MOST_TOPICS) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def learn(self, excerpt: Excerpt) -> None:
        """Take the names in an exchange."""
        if not is_instructive(excerpt.api_key, excerpt.api_version):
            return
        for body, at_ns in (
            (excerpt.request, excerpt.requested_ns),
            (excerpt.response, excerpt.completed_ns),
        ):
            for topic_id, name in _pairs(body):
                before = self._known.get(topic_id)
                if before is not None and before[1] <= at_ns:
                    continue
                self._known[topic_id] = (name, at_ns)
                if len(self._known) > self._most:
                    self._known.popitem(last=False)

    def name(self, topic_id: str, at_ns: int) -> str | None:
        """Return the name, if a message had it by then."""
        known = self._known.get(topic_id)
        return known[0] if known is not None and known[1] <= at_ns else None

    def rows(self) -> Iterator[Row]:
        """Return the rows of ``topics``."""
        for topic_id, (name, at_ns) in sorted(self._known.items()):
            yield "topics", (topic_id, name, at_ns)


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every struct that has an id and a name."""
    if isinstance(value, list):
        for each in value:
            if isinstance(each, dict | list):
                yield from _pairs(each)
    elif isinstance(value, dict):
        topic_id = value.get("topicId")
        if topic_id and topic_id != NO_TOPIC_ID:
            name = next((value[each] for each in _NAMES if value.get(each)), None)
            if name is not None:
                yield topic_id, name
                return
        for each in value.values():
            if isinstance(each, dict | list):
                yield from _pairs(each)
