"""Short stateful programs: requests of one family about one state, their values drawn from what the
program has.

A member's epoch, a producer's id and the like are kept from answers under names; a request takes
them by ``$name``, mostly the right one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kproto.schema.versions import Versions
from tests.real.programs.model import Program
from tests.real.search.changes import apply, draw_change
from tests.real.search.encode import ASSIGNMENT
from tests.real.search.generator import guard
from tests.real.search.requests import (
    SHORT_SESSION_MS,
    SHORT_TRANSACTION_MS,
    TRANSACTIONAL,
    batch_of,
    body_of,
    row_of,
    schema,
    setup,
    subscription,
)

__all__ = ["FAMILIES", "drawn_request", "family_of", "programs"]

Body = dict[str, Any]
Keep = dict[str, str]

LENGTH: Final = 10
LENGTH_WITH_PAUSE: Final = 6
"""Fewer requests, so that what lasts for seconds does not end among them."""
CHANGED: Final = 0.12
"""How many requests have one part changed, as single requests do."""


class Family(NamedTuple):
    """``apis`` are drawn by weight. ``pools`` are values for (API key, path). ``pause``: seconds
    that pass once in a program, more than the sessions, locks or transactions of its state last.
    ``states`` are others that programs may begin with."""

    needs: tuple[str, ...]
    apis: Mapping[int, int]
    pools: Mapping[tuple[int, str], Sequence[Any]]
    pause: float = 0.0
    states: Sequence[tuple[str, ...]] = ()
    vary: Mapping[int, Callable[[random.Random, Body, int], Keep]] = {}


def programs(seed: str, first: int, count: int, served: Mapping[int, Versions]) -> list[Program]:
    return [_program(f"{seed}:p{number}", served) for number in range(first, first + count)]


def _program(name: str, served: Mapping[int, Versions]) -> Program:
    draw = random.Random(name)
    possible = {
        key: each for key, each in FAMILIES.items() if any(api in served for api in each.apis)
    }
    family = possible[draw.choice(sorted(possible))]
    steps = setup(draw.choice((family.needs, *family.states)), served)
    weights = {api: weight for api, weight in family.apis.items() if api in served}
    length = LENGTH_WITH_PAUSE if family.pause else LENGTH
    pause = draw.randrange(length - 1) if family.pause else length
    for place in range(length):
        if place == pause:
            steps.append({"api": 0, "version": 0, "body": {}, "pause": family.pause})
        (api,) = draw.choices(list(weights), list(weights.values()))
        steps.append(drawn_request(draw, api, draw.choice(list(served[api])), family))
        if api in _WITH_SESSIONS and draw.random() < 0.3:
            steps[-1]["on"] = "other"
        if draw.random() < 0.04:
            steps.append({"api": api, "version": 0, "body": {}, "hang up": True,
                          "on": draw.choice(["main", "other"])})  # fmt: skip
    return Program(name, steps)


_WITH_SESSIONS: Final = (1, 78, 79)


def drawn_request(draw: random.Random, api: int, version: int, family: Family) -> dict[str, Any]:
    body = body_of(api, version)
    for (key, path), values in family.pools.items():
        if key == api and draw.random() < 0.6:
            _set(body, path.split("."), draw, values)
    vary = {**_VARY, **family.vary}
    keep = vary[api](draw, body, version) if api in vary else {}
    if draw.random() < CHANGED:
        body = apply(body, draw_change(draw, api, version, body))
    guard(api, version, body)
    step = {"api": api, "version": version, "body": body}
    return {**step, "keep": keep} if keep else step


def _set(value: Any, path: Sequence[str], draw: random.Random, values: Sequence[Any]) -> None:
    name, *rest = path
    if isinstance(value, list):
        for each in value:
            _set(each, path, draw, values)
    elif isinstance(value, dict) and name in value:
        if rest:
            _set(value[name], rest, draw, values)
        else:
            value[name] = draw.choice(values)


def _mostly(draw: random.Random, right: Any, *others: Any) -> Any:
    return right if draw.random() < 0.75 else draw.choice(others)


# ---- requests whose values belong together -------------------------------------------------------


def _beat(draw: random.Random, body: Body, version: int) -> Keep:
    """A member joins, stays with the epoch that it has, or leaves."""
    number = draw.choice((1, 1, 2, 3))
    body["memberId"] = f"~{number}"
    body["memberEpoch"] = draw.choice((0, f"$e{number}", f"$e{number}", f"$e{number}", -1, 99))
    if body["memberEpoch"] != 0 and draw.random() < 0.8:
        for name in ("subscribedTopicNames", "topicPartitions", "topology", "processId"):
            if name in body:
                body[name] = None
        for name in ("activeTasks", "standbyTasks", "warmupTasks"):
            if name in body:
                body[name] = draw.choice((None, [], [{"subtopologyId": "0", "partitions": [0]}]))
        if "rebalanceTimeoutMs" in body:
            body["rebalanceTimeoutMs"] = -1
    if "topicPartitions" in body and body["memberEpoch"] not in (0, -1) and draw.random() < 0.5:
        owned = draw.choice(([], [0], [1], [0, 1]))
        body["topicPartitions"] = [{"topicId": "$tid", "partitions": owned}] if owned else []
    if "instanceId" in body and draw.random() < 0.2:
        body["instanceId"] = draw.choice(("i1", "i2"))
        if draw.random() < 0.3:
            body["memberEpoch"] = -2
    return {f"e{number}": "memberEpoch"}


def _share_fetch(draw: random.Random, body: Body, version: int) -> Keep:
    body["memberId"] = draw.choice(("~1", "~1", "~1", "~2"))
    body["shareSessionEpoch"] = draw.choice((0, 0, 1, 1, 2, 3, -1))
    if body["shareSessionEpoch"] in (0, -1) or draw.random() < 0.5:
        return {}
    body["topics"] = draw.choice(([], _acknowledgements(draw)))
    return {}


def _acknowledgements(draw: random.Random) -> list[Any]:
    first = draw.choice((0, 0, 1, 2, 4))
    last = first + draw.choice((0, 0, 1, 3, -1))
    count = draw.choice((1, 1, last - first + 1, 2))
    batch = {"firstOffset": first, "lastOffset": last,
             "acknowledgeTypes": draw.choices((1, 1, 2, 3, 0, 4, 9), k=max(count, 1))}  # fmt: skip
    partition = {"partitionIndex": 0, "acknowledgementBatches": [batch], "partitionMaxBytes": 0}
    return [{"topicId": "$tid", "partitions": [partition]}]


def _share_acknowledge(draw: random.Random, body: Body, version: int) -> Keep:
    body["memberId"] = draw.choice(("~1", "~1", "~2"))
    body["shareSessionEpoch"] = draw.choice((0, 1, 1, 2, 3, -1))
    body["topics"] = _acknowledgements(draw)
    return {}


def _join(draw: random.Random, body: Body, version: int) -> Keep:
    body["memberId"] = draw.choice(("$member", "$member", "$m2", "", "$m3"))
    body["groupId"] = _mostly(draw, "$c", "$d")
    if body["memberId"] == "":
        return {draw.choice(("m2", "m3")): "memberId", "gen": "generationId"}
    return {"gen": "generationId"}


def _init(draw: random.Random, body: Body, version: int) -> Keep:
    if draw.random() < 0.4 and "producerId" in body:
        body["producerId"], body["producerEpoch"] = "$pid", _mostly(draw, "$pepoch", 0, 99, -1)
    body["transactionalId"] = _mostly(draw, "$x", None, "$x2", "")
    return {"pid": "producerId", "pepoch": "producerEpoch"} if draw.random() < 0.8 else {}


def _end(draw: random.Random, body: Body, version: int) -> Keep:
    body["committed"] = draw.random() < 0.5
    body["producerEpoch"] = _mostly(draw, "$pepoch", 0, 1, 99, -1)
    return {"pid": "producerId", "pepoch": "producerEpoch"} if version >= 5 else {}


def _produce_in_transaction(draw: random.Random, body: Body, version: int) -> Keep:
    body["acks"] = draw.choice((-1, -1, -1, 1, 0, 2))
    if version >= 3 and draw.random() < 0.6:
        epoch = _mostly(draw, "$pepoch", 0, 1)
        attributes = _mostly(draw, TRANSACTIONAL, 0)
        made = batch_of("$pid", epoch, draw.choice((0, 0, 2, 4, 1, -1)), attributes)
        body["transactionalId"] = _mostly(draw, "$x" if attributes else None, None, "$x", "$x2")
        _set(body, ["topicData", "partitionData", "records"], draw, [made])
    return {}


def _subscribe(draw: random.Random, body: Body, version: int) -> Keep:
    """A member of the classic protocol joins a group of either. Partitions are dealt in the order
    of ids: only one is drawn by the coordinator, and comes before the others, which begin with a
    tilde."""
    body["groupId"] = "$k"
    body["memberId"] = _mostly(draw, "$member", "", "$m2") if version >= 5 else "$member"
    keep = {"member": "memberId", "gen": "generationId"}
    if body["memberId"] != "$member":
        body["groupInstanceId"] = "i2"
        keep = {"m2": "memberId", "gen": "generationId"}
    topics = draw.choice((["$t"], ["$t"], ["$t", "$none"], []))
    owned = draw.choice(([], [], [{"topic": "$t", "partitions": [0, 1]}]))
    made = draw.choice(
        (
            subscription(0, *topics),
            subscription(1, *topics, ownedPartitions=owned),
            subscription(2, *topics, ownedPartitions=owned, generationId=1),
            subscription(3, *topics, ownedPartitions=owned, generationId=1, rackId="r1"),
            "bWV0YQ==",
        )
    )
    _set(body, ["protocols", "metadata"], draw, [made])
    return keep


def _beat_by_range(draw: random.Random, body: Body, version: int) -> Keep:
    keep = _beat(draw, body, version)
    body["serverAssignor"] = "range"
    return keep


_ASSIGNMENTS: Final[Sequence[Any]] = (
    {ASSIGNMENT: {"assignedPartitions": [{"topic": "$t", "partitions": [0, 1]}]}},
    {ASSIGNMENT: {"assignedPartitions": []}},
    "",
    "YXNzaWdu",
)


def _topology(draw: random.Random, body: Body, version: int) -> Keep:
    """A member of a streams group with any of what a member may say."""
    keep = _beat(draw, body, version)
    root = schema(_STREAMS_HEARTBEAT).root
    for field in root.fields:
        name = field.name[0].lower() + field.name[1:]
        inner = field.type.inner_struct
        if inner is None or name not in body or name == "topology" or draw.random() < 0.8:
            continue
        row = row_of(_STREAMS_HEARTBEAT, version, inner, name)
        body[name] = [row] if field.type.kind == "array" else row
    if isinstance(body["topology"], dict) and draw.random() < 0.5:
        (sub,) = body["topology"]["subtopologies"]
        topic: dict[str, Any] = {"name": "$n", "partitions": draw.choice((0, 1, 2)),
                 "replicationFactor": draw.choice((0, 1, -1, 2)), "topicConfigs": []}  # fmt: skip
        place = draw.choice(("stateChangelogTopics", "repartitionSourceTopics"))
        sub[place] = [topic]
        if draw.random() < 0.3:
            topic["topicConfigs"] = [draw.choice(_TOPIC_CONFIGS)]
        if place == "repartitionSourceTopics" and draw.random() < 0.5:
            sub["repartitionSinkTopics"] = ["$n"]
        if draw.random() < 0.3:
            sub["sourceTopics"] = draw.choice((["$t", "$none"], ["$t", "$n2"], [], ["$n"]))
            sub["copartitionGroups"] = draw.choice((
                [], [{"sourceTopics": [0], "sourceTopicRegex": [], "repartitionSourceTopics": [0]}],
                [{"sourceTopics": [5], "sourceTopicRegex": [], "repartitionSourceTopics": []}],
            ))  # fmt: skip
    return keep


_STREAMS_HEARTBEAT: Final = 88
_TOPIC_CONFIGS: Final = (
    {"key": "cleanup.policy", "value": "compact"},
    {"key": "retention.ms", "value": "x"},
    {"key": "no.such", "value": "1"},
)


_VARY: Final[Mapping[int, Callable[[random.Random, Body, int], Keep]]] = {
    0: _produce_in_transaction, 11: _join, 22: _init, 26: _end, 68: _beat, 76: _beat,
    88: _topology,
    78: _share_fetch, 79: _share_acknowledge,
}  # fmt: skip

_MEMBERS: Final = ("$member", "$member", "$m2", "$m3", "", "nobody")
_GENERATIONS: Final = ("$gen", "$gen", 1, 2, -1, 99)
_GROUPS: Final = ("$g", "$c", "$k", "$s", "$m", "$none", "")
_OFFSETS: Final = (0, 1, 2, 3, 4, 5, -1, -2, 100)
_ENTITIES: Final[Sequence[Any]] = (
    [{"entityType": "user", "entityName": "$u"}],
    [{"entityType": "client-id", "entityName": "$u"}],
    [{"entityType": "ip", "entityName": "127.0.0.9"}],
    [{"entityType": "ip", "entityName": "$u"}],
    [{"entityType": "user", "entityName": "$u"}, {"entityType": "client-id", "entityName": "$u"}],
    [{"entityType": "user", "entityName": "$u"}, {"entityType": "client-id", "entityName": None}],
    [{"entityType": "user", "entityName": "$u"}, {"entityType": "ip", "entityName": "127.0.0.9"}],
    [{"entityType": "user", "entityName": "$u"}, {"entityType": "user", "entityName": "$v"}],
    [{"entityType": "user", "entityName": None}],
    [{"entityType": "user", "entityName": ""}],
    [{"entityType": "x", "entityName": "$u"}],
    [],
)
_NO_POOLS: Final[Mapping[tuple[int, str], Sequence[Any]]] = {}

_PLAIN: Final[Mapping[str, Family]] = {
    "classic groups": Family(
        ("topic", "classic"),
        {11: 4, 12: 3, 13: 1, 14: 4, 15: 3, 16: 1, 8: 2, 9: 1, 42: 1, 47: 1},
        {(12, "memberId"): _MEMBERS, (12, "generationId"): _GENERATIONS,
         (11, "protocols.name"): ("range", "roundrobin"), (11, "groupInstanceId"): ("i1", "i2",
          None),
         (11, "protocolType"): ("consumer", "connect", ""),
         (14, "memberId"): _MEMBERS, (14, "generationId"): _GENERATIONS,
         (13, "members.memberId"): _MEMBERS, (13, "memberId"): _MEMBERS,
         (13, "members.groupInstanceId"): ("i1", None),
         (8, "groupId"): ("$c", "$g"), (8, "generationIdOrMemberEpoch"): _GENERATIONS,
         (8, "memberId"): _MEMBERS, (9, "groupId"): ("$c", "$g"), (9, "groups.groupId"): ("$c",),
         (42, "groupsNames"): (["$c"], ["$g", "$c"]), (47, "groupId"): ("$c",),
         (16, "statesFilter"): ([], ["Stable"], ["Empty", "x"])},
    ),
    "consumer groups": Family(
        ("topic", "consumer"),
        {68: 8, 69: 3, 8: 2, 9: 2, 15: 1, 16: 1, 42: 1, 47: 1, 11: 1},
        {(68, "subscribedTopicRegex"): (None, None, None, None, "$t.*", "", "x", "(", "$t|x.*"),
         (68, "subscribedTopicNames"): (["$t"], ["$t", "$none"], [], ["$t", "$t"]),
         (68, "serverAssignor"): (None, "range", "uniform", "x"),
         (68, "rackId"): (None, "r1"), (68, "rebalanceTimeoutMs"): (30_000, 5_000, 0),
         (8, "groupId"): ("$k",), (8, "generationIdOrMemberEpoch"): ("$e1", "$e1", 0, -1, 99),
         (8, "memberId"): ("~1", "~1", "~2", ""), (9, "groups.groupId"): ("$k",),
         (9, "groups.memberId"): ("~1", None), (9, "groups.memberEpoch"): ("$e1", -1, 99),
         (15, "groups"): (["$k"],), (42, "groupsNames"): (["$k"],), (47, "groupId"): ("$k",),
         (11, "groupId"): ("$k",)},
    ),
    "both protocols": Family(
        ("topic", "migrated"),
        {68: 5, 11: 4, 14: 3, 12: 3, 13: 1, 8: 1, 9: 1, 15: 2, 69: 2, 16: 1, 42: 1, 47: 1},
        {(68, "subscribedTopicNames"): (["$t"], ["$t", "$none"], []),
         **{(key, "groupId"): ("$k",) for key in (8, 12, 13, 14, 47)},
         (9, "groupId"): ("$k",), (9, "groups.groupId"): ("$k",),
         (8, "generationIdOrMemberEpoch"): ("$e1", "$gen", -1), (8, "memberId"): ("~1", "$member"),
         (12, "memberId"): _MEMBERS, (12, "generationId"): _GENERATIONS,
         (14, "memberId"): _MEMBERS, (14, "generationId"): _GENERATIONS,
         (14, "assignments.assignment"): _ASSIGNMENTS,
         (13, "members.memberId"): _MEMBERS, (13, "memberId"): _MEMBERS,
         (11, "protocols.name"): ("range", "range", "roundrobin"),
         (15, "groups"): (["$k"],), (69, "groupIds"): (["$k"],), (42, "groupsNames"): (["$k"],),
         (16, "typesFilter"): ([], ["consumer"], ["classic"]),
         (16, "statesFilter"): ([], ["Stable"], ["Reconciling", "PreparingRebalance"])},
        states=(("topic", "consumer"),),
        vary={11: _subscribe, 68: _beat_by_range},
    ),
    "share groups": Family(
        ("topic", "share"),
        {76: 4, 77: 2, 78: 6, 79: 4, 90: 1, 91: 1, 92: 1, 42: 1, 16: 1},
        {(76, "subscribedTopicNames"): (["$t"], [], ["$t", "$none"]), (42,
         "groupsNames"): (["$s"],),
         (78, "maxRecords"): (100, 1, 0), (91, "groupId"): ("$s", "$s2"),
         (91, "topics.partitions.startOffset"): _OFFSETS, (92, "groupId"): ("$s", "$s2")},
    ),
    "streams groups": Family(
        ("topic", "streams"),
        {88: 8, 89: 4, 15: 1, 16: 1, 42: 1, 8: 1, 9: 1, 93: 1},
        {(88, "processId"): ("p", "q"), (42, "groupsNames"): (["$m"],), (8, "groupId"): ("$m",),
         (8, "memberId"): ("~1", ""), (8, "generationIdOrMemberEpoch"): ("$e1", -1),
         (9, "groups.groupId"): ("$m",), (15, "groups"): (["$m"],),
         (88, "topology.epoch"): (0, 1)},
    ),
    "transactions": Family(
        ("topic", "transaction"),
        {22: 3, 24: 4, 25: 2, 26: 4, 28: 2, 0: 2, 61: 1, 65: 2, 66: 1, 2: 1, 1: 1, 9: 1},
        {(24, "v3AndBelowProducerEpoch"): ("$pepoch", "$pepoch", 0, 99, -1),
         (24, "transactions.producerEpoch"): ("$pepoch", "$pepoch", 99),
         (24, "transactions.verifyOnly"): (False, True),
         (25, "producerEpoch"): ("$pepoch", "$pepoch", 99), (25, "groupId"): ("$g", "$none"),
         (28, "producerEpoch"): ("$pepoch", "$pepoch", 99, -1), (28, "producerId"): ("$pid", -1),
         (65, "transactionalIds"): (["$x"], ["$x", "$x2"], [""]),
         (2, "isolationLevel"): (0, 1), (1, "isolationLevel"): (0, 1),
         (9, "requireStable"): (False, True),
         (66, "stateFilters"): ([], ["Ongoing"], ["Empty", "CompleteAbort"], ["x"])},
        states=(("aborted",),),
    ),
    "data": Family(
        ("topic",),
        {0: 5, 1: 5, 2: 3, 21: 2, 23: 2, 61: 1, 3: 1, 75: 1},
        {(1, "topics.partitions.fetchOffset"): _OFFSETS, (1, "sessionEpoch"): (-1, 0, 1, 2),
         (1, "maxBytes"): (1_000_000, 0, 100), (1,
          "topics.partitions.partitionMaxBytes"): (1_000_000, 0, 80),
         (1, "isolationLevel"): (0, 1),
         (2, "topics.partitions.timestamp"): (-1, -2, -3, -4, -5, -6, 0, 1_600_000_000_001,
          1_700_000_000_000),
         (21, "topics.partitions.offset"): _OFFSETS, (0, "acks"): (-1, 1, 0, 2),
         (23, "topics.partitions.leaderEpoch"): (0, 1, -1),
         (75, "cursor"): (None, {"topicName": "$t", "partitionIndex": 1},
                          {"topicName": "$a", "partitionIndex": 0},
                          {"topicName": "$z", "partitionIndex": 5}),
         (75, "responsePartitionLimit"): (100, 1, 2)},
        states=(("trimmed",), ("aborted",), ("compacted",), ("stamped",), ("small",)),
    ),
    "offsets": Family(
        ("topic", "group"),
        {8: 5, 9: 5, 47: 2, 42: 1, 16: 1, 15: 1, 28: 1},
        {(8, "topics.partitions.committedOffset"): _OFFSETS, (8,
         "topics.partitions.partitionIndex"): (0, 1, 2),
         (9, "groupId"): _GROUPS, (9, "groups.groupId"): _GROUPS, (9, "topics"): (None,),
         (9, "groups.topics"): (None,), (15, "groups"): (["$g"],)},
    ),
    "topics": Family(
        ("topic",),
        {19: 4, 20: 2, 37: 3, 3: 3, 75: 1, 45: 1, 46: 1, 43: 1, 35: 1, 60: 1, 55: 1},
        {(19, "topics.name"): ("$n", "$n2", "$t", "bad name", "__x"), (19, "validateOnly"): (True,
         False),
         (19, "topics.numPartitions"): (1, 3, -1, 0), (19, "topics.replicationFactor"): (1, -1, 2),
         (19, "topics.configs"): ([], [{"name": "cleanup.policy", "value": "compact"}],
                                  [{"name": "no.such", "value": "1"}],
                                  [{"name": "segment.bytes", "value": "x"}],
                                  [{"name": "retention.ms", "value": None}]),
         (37, "topics.count"): (1, 2, 3, 4, 0, -1), (37, "topics.name"): ("$t", "$n", "$none"),
         (37, "validateOnly"): (True, False), (20, "topicNames"): (["$n"], ["$none"], ["$n",
          "$n2"]),
         (20, "topics.name"): ("$n", "$none"), (3, "topics.name"): ("$n", "$t", "$none",
          "bad name"),
         (45, "topics.partitions.replicas"): ([1], None, [1, 1], [2], []),
         (43, "electionType"): (0, 1)},
    ),
    "configs": Family(
        ("topic",),
        {32: 5, 33: 2, 44: 5, 74: 1},
        {(44, "resources.configs"): (
            [{"name": "retention.ms", "configOperation": 1, "value": None}],
            [{"name": "cleanup.policy", "configOperation": 2, "value": "compact"}],
            [{"name": "cleanup.policy", "configOperation": 3, "value": "delete"}],
            [{"name": "cleanup.policy", "configOperation": 2, "value": ",delete"}],
            [{"name": "min.insync.replicas", "configOperation": 0, "value": "0"}],
            [{"name": "max.message.bytes", "configOperation": 0, "value": " 100 "}],
            [{"name": "compression.type", "configOperation": 0, "value": "brotli"}],
            [{"name": "no.such", "configOperation": 0, "value": "1"}]),
         (44, "resources.resourceType"): (2, 2, 4, 32, 16), (44, "validateOnly"): (False, True),
         (44, "resources.resourceName"): ("$t", "$t", "1", "$none", ""),
         (33, "resources.resourceName"): ("$t", "$none"),
         (32, "resources.resourceName"): ("$t", "$t", "1", "$none", ""),
         (32, "resources.resourceType"): (2, 2, 4, 32, 16, 8),
         (32, "resources.configurationKeys"): (["retention.ms", "cleanup.policy",
          "segment.bytes"], []),
         (32, "includeSynonyms"): (True, False)},
    ),
    "access rules": Family(
        ("topic", "acl"),
        {29: 4, 30: 4, 31: 2},
        {(30, "creations.resourceType"): (2, 3, 4, 5, 6, 7), (30, "creations.operation"): (2, 3,
         4, 8, 12),
         (30, "creations.resourcePatternType"): (3, 4), (30, "creations.permissionType"): (2, 3),
         (30, "creations.resourceName"): ("$t", "$g", "kafka-cluster"),
         (29, "patternTypeFilter"): (1, 2, 3, 4), (31, "filters.patternTypeFilter"): (1, 2, 3, 4),
         (30, "creations.principal"): ("User:$u", "User:$u", "User:*", "User:", "$u", "Group:$u",
                                       ":$u", ""),
         (30, "creations.host"): ("*", "*", "127.0.0.1", "", "localhost"),
         (29, "resourceTypeFilter"): (1, 2, 3), (29, "principalFilter"): (None, "User:$u", "$u"),
         (31, "filters.principalFilter"): (None, "User:$u", "$u")},
    ),
    "quotas": Family(
        ("quota",),
        {48: 4, 49: 5},
        {(49, "entries.entity"): _ENTITIES,
         (48, "components"): tuple(
             [{"entityType": kind, "matchType": match, "match": name}]
             for kind in ("user", "client-id", "ip", "x")
             for match, name in ((0, "$u"), (1, None), (2, None), (0, None), (1, "$u"), (3, "$u"))
         ),
         (49, "entries.ops.key"): ("producer_byte_rate", "consumer_byte_rate", "request_percentage",
                                   "controller_mutation_rate", "connection_creation_rate", "x"),
         (49, "entries.ops.value"): (1.0, 0.0, -1.0, 0.5, 1e9), (49, "entries.ops.remove"): (True,
          False),
         (48, "components.matchType"): (0, 2), (48, "strict"): (True, False)},
    ),
    "credentials": Family(
        ("scram",),
        {50: 4, 51: 5, 38: 1, 41: 1},
        {(51, "upsertions.mechanism"): (1, 2, 0, 3), (51, "upsertions.iterations"): (4096, 8192,
         1, 16384, 20000),
         (51, "deletions"): ([{"name": "$u", "mechanism": 1}], [{"name": "$u", "mechanism": 2}]),
         (51, "upsertions"): ([],), (50, "users"): (None, [{"name": "$u"}, {"name": "$u"}], [])},
    ),
}  # fmt: skip


def _timed(
    name: str, pause: float, needs: str, pools: Mapping[tuple[int, str], Sequence[Any]] = _NO_POOLS
) -> Family:
    family = _PLAIN[name]
    return family._replace(needs=("topic", needs), pools={**family.pools, **pools}, pause=pause)


_SHORT: Final = (SHORT_SESSION_MS,)

FAMILIES: Final[Mapping[str, Family]] = {
    **_PLAIN,
    "classic groups, timed": _timed(
        "classic groups", 7.0, "short classic",
        {(11, "sessionTimeoutMs"): _SHORT, (11, "rebalanceTimeoutMs"): _SHORT},
    ),
    "consumer groups, timed": _timed(
        "consumer groups", 7.0, "short consumer", {(68, "rebalanceTimeoutMs"): (30_000, 4_000)}
    ),
    "share groups, timed": _timed("share groups", 7.0, "short share"),
    "share locks, timed": _timed("share groups", 4.0, "share locks"),
    "streams groups, timed": _timed("streams groups", 7.0, "short streams"),
    "transactions, timed": _timed(
        "transactions", 5.0, "short transaction",
        {(22, "transactionTimeoutMs"): (SHORT_TRANSACTION_MS,)},
    ),
}  # fmt: skip
"""The timed ones are the same requests about state that does not last."""


def family_of(program: Program) -> str:
    """The family that a program counts in: that of its last request."""
    api = program.steps[-1]["api"]
    named = [name for name, family in _PLAIN.items() if api in family.apis]
    name = named[0] if named else "cluster"
    return f"{name}, timed" if any("pause" in step for step in program.steps) else name
