"""Turn ElectLeaders (43) into rows of elections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kproto import error_codes
from wiredump.body_texts import BodyTexts
from wiredump.model import Exchange
from wiredump.rows.exchanges import Row

__all__ = ["ELECT_LEADERS", "election_rows"]

ELECT_LEADERS: Final = 43
_TYPES: Final = {0: "preferred", 1: "unclean"}


def election_rows(item: Exchange, texts: BodyTexts) -> Iterator[Row]:
    """Return a row for each partition in the request or response, and at least one for each
    request."""
    if item.api_key != ELECT_LEADERS or item.request is None:
        return
    request = texts.request_value()
    if request is None:
        return
    number = request.get("electionType", 0)  # version 0 has only preferred elections
    named = _partitions(request.get("topicPartitions"), "topic", "partitions")
    answer = texts.response_value() or {}
    whole = answer.get("errorCode", 0)
    results = {
        (topic.get("topic"), each.get("partitionId")): each
        for topic in answer.get("replicaElectionResults") or ()
        for each in topic.get("partitionResult") or ()
    }
    who = (
        item.connection.id,
        item.request.offset,
        item.request.first_ns,
        item.connection.broker,
        item.client_id,
        _TYPES.get(number, str(number)),
    )
    everything = "topicPartitions" in request and request["topicPartitions"] is None
    places = list(dict.fromkeys([*named, *results])) or [(None, None)]
    for place in places:
        each = results.get(place)
        code = each.get("errorCode", 0) if each is not None else whole
        text = each.get("errorMessage") if each is not None else None
        answered = each is not None or whole != 0
        error = error_codes.name(code) if answered else None
        yield "elections", (*who, everything, *place, answered, error, text)


def _partitions(
    topics: list[dict[str, object]] | None, name: str, numbers: str
) -> list[tuple[object, object]]:
    return [
        (topic.get(name), number)
        for topic in topics or ()
        for number in topic.get(numbers) or ()  # type: ignore[attr-defined]
    ]
