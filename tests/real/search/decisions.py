"""What the mock decides otherwise on purpose, each with its reason: these differences are no kinds.

``docs/explanation/fidelity.md`` states the decisions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeAlias

from tests.real.search.side import SILENT

__all__ = ["DECISIONS", "Decision", "ends", "harms", "undecided"]

Field: TypeAlias = tuple[str, Any, Any]
"""A path, Kafka's value and the mock's."""


ANY: Final = "*"
_DELETE: Final = 1
"""An operation of IncrementalAlterConfigs."""


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


def _is_older_join(body: Mapping[str, Any]) -> bool:
    """Before members can be static."""
    return "groupInstanceId" not in body


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
        for marker in body["markers"] or ()
    )  # fmt: skip
    return any(times > 1 for each in named for times in each.values())


def _ends_with_an_empty_marker(body: Mapping[str, Any]) -> bool:
    """Behind one that writes something."""
    writes = [
        any(
            index in (0, 1)
            for topic in marker["topics"]
            if topic["name"] == "$t"
            for index in topic["partitionIndexes"]
        )
        for marker in body["markers"] or ()
    ]
    return any(writes) and not writes[-1]


def _has_format(body: Mapping[str, Any]) -> bool:
    return any(
        config["name"] == "message.format.version"
        for each in body["topics"] or ()
        for config in each["configs"] or ()
    )


def _has_null_configs(body: Mapping[str, Any]) -> bool:
    return any(
        config["value"] is None for each in body["topics"] or () for config in each["configs"] or ()
    )


def _lists_no_replicas(body: Mapping[str, Any]) -> bool:
    """Or leaves partitions out."""
    return any(
        not row["brokerIds"] or row["partitionIndex"] not in range(len(each["assignments"]))
        for each in body["topics"] or ()
        for row in each["assignments"] or ()
    )


def _repeats_topics(body: Mapping[str, Any]) -> bool:
    names = [each["name"] for each in body["topics"] or ()]
    return len(set(names)) < len(names)


def _names_no_operation(body: Mapping[str, Any]) -> bool:
    return any(
        not 0 <= config["configOperation"] <= 3
        for each in body["resources"] or ()
        for config in each["configs"] or ()
    )


def _deletes_a_config(body: Mapping[str, Any]) -> bool:
    """Null stands for its absence as well."""
    return any(
        config["configOperation"] == _DELETE or config["value"] is None
        for each in body["resources"] or ()
        for config in each["configs"] or ()
    )


_NEWEST: Final = -3
"""In place of a timestamp: the largest one."""
_DELETE_RECORDS: Final = 21


def _asks_for_newest(body: Mapping[str, Any]) -> bool:
    return any(
        partition["timestamp"] == _NEWEST
        for topic in body["topics"] or ()
        for partition in topic["partitions"] or ()
    )


class Decision(NamedTuple):
    """``path`` is that of a field, or empty where Kafka does not answer, or ``ANY``. ``applies`` is
    a condition on the request's body. ``releases`` are those that it holds for, or empty for all.
    ``codes``: Kafka answers with the first of these error codes where the mock has the second.
    ``after``: only once the program has sent a request of this API."""

    api_key: int
    path: str
    why: str
    applies: Callable[[Mapping[str, Any]], bool] = _any
    releases: tuple[str, ...] = ()
    codes: tuple[int, int] | None = None
    after: int | None = None
    harms: bool = False
    """Kafka fails for good: no program may have such a request."""
    ends: bool = False
    """The connection has another answer, or none: a program ends with such a request."""


_PREVIEWS: Final = ("2.8.2", "3.0.2")
"""KRaft before it checks configs."""


DECISIONS: Final = (
    Decision(
        0, ANY, "Kafka fails after the answer, which may not go out", _has_null_records, ends=True
    ),
    Decision(
        2, ANY, "Kafka may find a deleted record of the first segment", _asks_for_newest,
        after=_DELETE_RECORDS,
    ),
    Decision(11, ANY, "Kafka fails once members are listed", _repeats_protocols),
    Decision(
        11, ANY, "Kafka fails to tell an older leader of static members", _is_older_join,
        releases=("2.4.1", "2.8.2", "2.8.2-zk", "3.0.2"), codes=(35, 0),
    ),
    Decision(24, "", "Kafka never answers without a transaction", _names_no_transaction),
    Decision(27, "", "Kafka never answers a marker with a partition twice", _repeats_partitions),
    Decision(
        27, "", "Kafka never answers when the last marker writes nothing, and another one does",
        _ends_with_an_empty_marker,
    ),
    Decision(
        32, "results[].configs[].documentation", "the mock leaves the texts about configs out"
    ),
    *(
        Decision(90, path, "Kafka looks for 15 seconds first", _names_absent_partitions)
        for path in ("", "groups[].topics[].topicId")
    ),
    Decision(33, "", "Kafka never answers a repeated resource", _repeats_resources),
    *(
        Decision(18, path, "a broker that is its own controller has other keys", releases=_PREVIEWS)
        for path in (
            "apiKeys.length", "apiKeys[].apiKey", "apiKeys[].minVersion", "apiKeys[].maxVersion",
        )
    ),
    *(
        Decision(
            key, ANY, "Kafka stores a value that its brokers cannot read", releases=_PREVIEWS,
            codes=(0, 40),
        )
        for key in (19, 33, 44)
    ),
    Decision(
        19, ANY, "Kafka creates topics of a format that no broker reads", _has_format,
        releases=("0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1"),
    ),
    Decision(
        44, ANY, "Kafka's controller resigns", _names_no_operation, releases=_PREVIEWS, harms=True
    ),
    Decision(
        44, ANY, "Kafka's controller cannot store that a config is deleted", _deletes_a_config,
        releases=("2.8.2",), harms=True,
    ),
    Decision(
        19, ANY, "Kafka's controller resigns", _lists_no_replicas, releases=_PREVIEWS, harms=True
    ),
    Decision(
        19, ANY, "Kafka's controller cannot store a config without a value", _has_null_configs,
        releases=("2.8.2",), harms=True,
    ),
    Decision(
        19, ANY, "Kafka creates two topics of a name", _repeats_topics, releases=("2.8.2",),
        harms=True,
    ),
    *(
        Decision(key, ANY, "the mock keeps access rules without an authorizer", releases=("3.0.2",))
        for key in (29, 30, 31)
    ),
)  # fmt: skip


def undecided(
    step: Mapping[str, Any],
    fields: Sequence[Field],
    release: str = "",
    sent: Set[int] = frozenset(),
) -> list[Field]:
    """The differences in the answers to a step that no decision about the release explains.
    ``sent`` are the APIs of the steps so far."""
    codes = {(kafka, mock) for path, kafka, mock in fields if path.endswith("rrorCode")}
    possible = [
        each
        for each in DECISIONS
        if each.api_key == step["api"]
        and (not each.releases or release in each.releases)
        and (each.codes is None or each.codes in codes)
        and (each.after is None or each.after in sent)
    ]
    return [field for field in fields if not any(_explains(each, step, field) for each in possible)]


def _explains(decision: Decision, step: Mapping[str, Any], field: Field) -> bool:
    path, kafka, _ = field
    if decision.path != ANY:
        if decision.path != re.sub(r"\[[^]]*\]", "[]", path):
            return False
        if not path and kafka != SILENT:
            return False
    return decision.applies(step["body"])


def ends(step: Mapping[str, Any]) -> bool:
    """Whether answers to later requests cannot be compared."""
    return bool(step["body"]) and any(
        each.ends and each.api_key == step["api"] and each.applies(step["body"])
        for each in DECISIONS
    )


def harms(step: Mapping[str, Any], release: str) -> bool:
    """Whether a broker of the release serves nothing afterwards."""
    return bool(step["body"]) and any(
        each.harms
        and each.api_key == step["api"]
        and release in each.releases
        and each.applies(step["body"])
        for each in DECISIONS
    )
