"""What the mock decides otherwise on purpose, each with its reason: these differences are no kinds.

``docs/explanation/fidelity.md`` states the decisions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tests.real.search.side import SILENT

__all__ = ["DECISIONS", "Decision", "undecided"]

Field: TypeAlias = tuple[str, Any, Any]
"""A path, Kafka's value and the mock's."""


ANY: Final = "*"


def _any(body: Mapping[str, Any]) -> bool:
    return True


def _names_no_transaction(body: Mapping[str, Any]) -> bool:
    return body.get("transactions") == []


def _repeats_resources(body: Mapping[str, Any]) -> bool:
    named = Counter(
        (each["resourceType"], each["resourceName"]) for each in body["resources"] or ()
    )
    return any(times > 1 for times in named.values())


def _names_absent_partitions(body: Mapping[str, Any]) -> bool:
    """Topics of programs have two partitions."""
    return any(
        index > 1
        for group in body["groups"]
        for topic in group["topics"] or ()
        for index in topic["partitions"]
    )


def _repeats_protocols(body: Mapping[str, Any]) -> bool:
    named = Counter(each["name"] for each in body["protocols"] or ())
    return any(times > 1 for times in named.values())


def _has_null_records(body: Mapping[str, Any]) -> bool:
    return any(
        partition["records"] is None
        for topic in body["topicData"] or ()
        for partition in topic["partitionData"] or ()
    )


def _repeats_partitions(body: Mapping[str, Any]) -> bool:
    named = (
        Counter((topic["name"], each) for topic in marker["topics"]
                for each in topic["partitionIndexes"])
        for marker in body["markers"]
    )  # fmt: skip
    return any(times > 1 for each in named for times in each.values())


class Decision(NamedTuple):
    """``path`` is that of a field, or empty where Kafka does not answer, or ``ANY``. ``applies`` is
    a condition on the request's body."""

    api_key: int
    path: str
    why: str
    applies: Callable[[Mapping[str, Any]], bool] = _any


DECISIONS: Final = (
    Decision(0, ANY, "Kafka fails after the answer, which may not go out", _has_null_records),
    Decision(11, ANY, "Kafka fails once members are listed", _repeats_protocols),
    Decision(24, "", "Kafka never answers without a transaction", _names_no_transaction),
    Decision(27, "", "Kafka never answers a marker with a partition twice", _repeats_partitions),
    Decision(
        32, "results[].configs[].documentation", "the mock leaves the texts about configs out"
    ),
    *(
        Decision(90, path, "Kafka looks for 15 seconds first", _names_absent_partitions)
        for path in ("", "groups[].topics[].topicId")
    ),
    Decision(33, "", "Kafka never answers a repeated resource", _repeats_resources),
)


def undecided(step: Mapping[str, Any], fields: Sequence[Field]) -> list[Field]:
    """The differences in the answers to a step that no decision explains."""
    return [
        field for field in fields if not any(_explains(each, step, field) for each in DECISIONS)
    ]


def _explains(decision: Decision, step: Mapping[str, Any], field: Field) -> bool:
    path, kafka, _ = field
    if decision.path == ANY:
        return decision.api_key == step["api"] and decision.applies(step["body"])
    return (
        decision.api_key == step["api"]
        and decision.path == re.sub(r"\[[^]]*\]", "[]", path)
        and (bool(path) or kafka == SILENT)
        and decision.applies(step["body"])
    )
