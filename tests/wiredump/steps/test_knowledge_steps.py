"""The steps to learn from exchanges grow with their number, whatever they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from tests.support.steps import MOST_GROWTH, growth_of
from wiredump.knowledge.clusters import Clusters
from wiredump.knowledge.excerpts import (
    ALTER,
    END_TXN,
    FETCH,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST,
    PRODUCE,
    Excerpt,
    FetchRequest,
    fetch_of_text,
)
from wiredump.knowledge.following import follower_of
from wiredump.knowledge.order import InOrder
from wiredump.knowledge.reassignments import Reassignments
from wiredump.knowledge.topics import TopicNames

SIZE = 200
METADATA, DELETE_TOPICS = 3, 20


def said(
    number: int, key: int, request: Any, response: Any, *, broker: str = "b:9092", took: int = 1,
    version: int = 12, fetch: FetchRequest | None = None,
) -> Excerpt:  # fmt: skip
    """Exchange number ``number``."""
    return Excerpt(
        number, 0, 10 * number, 10 * number + took, broker, "c", None, None, key, version, "kafka",
        request, response, fetch,
    )  # fmt: skip


def alter(number: int, code: int | None = 0, took: int = 1) -> Excerpt:
    request = {
        "topics": [
            {"name": f"t{number}", "partitions": [{"partitionIndex": 0, "replicas": [1, 2]}]}
        ]
    }
    row = {"name": f"t{number}", "partitions": [{"partitionIndex": 0, "errorCode": code}]}
    response = None if code is None else {"errorCode": 0, "responses": [row]}
    return said(number, ALTER, request, response, took=took)


def listing(number: int, topics: Any = None) -> Excerpt:
    return said(number, LIST, {"topics": topics}, {"errorCode": 0, "topics": []})


def join(number: int, group: str, member: str) -> Excerpt:
    response = {"errorCode": 0, "memberId": member, "generationId": 1, "leader": "m"}
    return said(number, JOIN_GROUP, {"groupId": group, "memberId": member}, response)


def leave(number: int, member: str) -> Excerpt:
    return said(number, LEAVE_GROUP, {"groupId": "g", "memberId": member}, {"errorCode": 0})


def unanswered_and_listed(size: int) -> list[Excerpt]:
    return [alter(n, None) for n in range(size)] + [listing(n) for n in range(size, 2 * size)]


def accepted_later_and_listed(size: int) -> list[Excerpt]:
    later = [alter(n, took=10**9) for n in range(size)]
    return later + [listing(n) for n in range(size, 2 * size)]


def listed_by_topic(size: int) -> list[Excerpt]:
    return [alter(n) for n in range(size)] + [
        listing(size + n, [{"name": f"t{n}", "partitionIndexes": [0]}]) for n in range(size)
    ]


def listed_by_many_topics(size: int) -> list[Excerpt]:
    topics = [{"name": f"u{n}", "partitionIndexes": [0, 1]} for n in range(size)]
    return [*[alter(n) for n in range(size)], listing(size, topics)]


def listed_by_number(size: int) -> list[Excerpt]:
    return [alter(n) for n in range(size)] + [
        listing(size + n, [{"partitionIds": [1]}]) for n in range(size)
    ]


def deleted(size: int) -> list[Excerpt]:
    return [alter(n) for n in range(size)] + [
        said(size + n, DELETE_TOPICS, {}, {"responses": [{"name": f"u{n}", "errorCode": 0}]})
        for n in range(size)
    ]


def cancelled_by_topic(size: int) -> list[Excerpt]:
    nulls = [{"name": f"t{n}", "partitions": None} for n in range(size)]
    return [*[alter(n) for n in range(size)], said(size, ALTER, {"topics": nulls}, None)]


def united(size: int) -> list[Excerpt]:
    """Each broker has a reassignment, then they turn out to be one cluster, one by one."""
    found = []
    for n in range(size):
        each = alter(n)
        found.append(said(n, ALTER, each.request, each.response, broker=f"b{n:06}:9092"))
        partition = {"partitionIndex": 0, "replicaNodes": [1], "isrNodes": [1]}
        topics = [{"name": f"t{n}", "partitions": [partition]}]
        response = {"topics": topics, "brokers": []}
        found.append(said(n, METADATA, {}, response, broker=f"b{n:06}:9092"))
    for n in range(1, size):
        brokers = [{"host": f"b{n - 1:06}", "port": 9092}]
        found.append(said(size + n, METADATA, {}, {"brokers": brokers}, broker=f"b{n:06}:9092"))
    return found


def many_groups(size: int) -> list[Excerpt]:
    return [join(n, f"g{n}", "m") for n in range(size)]


def members_that_leave(size: int) -> list[Excerpt]:
    joined = [join(n, "g", f"m{n}") for n in range(size)]
    others = [leave(size + n, f"x{n}") for n in range(size)]
    most = [leave(2 * size + n, f"m{n}") for n in range(size - 1)]
    return joined + others + most + [leave(3 * size + n, "y") for n in range(size)]


def transactions(size: int) -> list[Excerpt]:
    produced = [said(n, PRODUCE, {"transactionalId": f"t{n}", "topicData": []}, {}) for n in
                range(size)]  # fmt: skip
    ended = [said(size + n, END_TXN, {"transactionalId": f"t{n}", "committed": True},
                  {"errorCode": 0}) for n in reversed(range(size))]  # fmt: skip
    return produced + ended


def one_transaction(size: int) -> list[Excerpt]:
    return [
        said(n, PRODUCE, {"transactionalId": "t", "topicData": [
            {"name": f"topic{n}", "partitionData": [{"index": n}]}]}, {})
        for n in range(size)
    ]  # fmt: skip


def sessions(size: int) -> list[Excerpt]:
    def fetch(number: int, session: int, epoch: int, begun: int) -> Excerpt:
        topics = f'[{{"topic":"t","partitions":[{{"partition":{session},"fetchOffset":1}}]}}]'
        text = f'{{"sessionId":{session},"sessionEpoch":{epoch},"topics":{topics}}}'
        answer = {"errorCode": 0, "sessionId": begun}
        return said(number, FETCH, None, answer, fetch=fetch_of_text(text))

    begun = [fetch(n, 0, 0, n + 1) for n in range(size)]
    return begun + [fetch(size + n, n + 1, 1, n + 1) for n in reversed(range(size))]


FOLLOWED = {
    "reassignments": [
        unanswered_and_listed, accepted_later_and_listed, listed_by_topic, listed_by_many_topics,
        listed_by_number, deleted, cancelled_by_topic, united,
    ],
    "groups": [many_groups, members_that_leave],
    "transactions": [transactions, one_transaction],
    "fetches": [sessions],
}  # fmt: skip


def followed(table: str, excerpts: Iterable[Excerpt]) -> None:
    follower = follower_of(table, lambda _id, _ns: None)
    for each in excerpts:
        for _ in follower.feed(each):
            pass
    for _ in follower.end():
        pass


def grows(prepare: Callable[[int], Callable[[], object]]) -> None:
    found = growth_of(prepare, SIZE)
    assert found.factor <= MOST_GROWTH, found


@pytest.mark.parametrize(
    ("table", "make"), [(table, make) for table, makes in FOLLOWED.items() for make in makes]
)
def test_steps_grow_with_exchanges(table: str, make: Callable[[int], list[Excerpt]]) -> None:
    grows(lambda size: partial(followed, table, make(size)))


def test_steps_grow_with_topics_clusters_and_exchanges_that_wait() -> None:
    def topics(size: int) -> Callable[[], None]:
        response = {
            "topics": [{"name": f"t{n}", "topicId": f"{n:022}"} for n in range(size)],
            "brokers": [{"host": f"h{n}", "port": 1} for n in range(size)],
        }
        excerpt = said(0, METADATA, {}, response)

        def run() -> None:
            names, clusters = TopicNames(most=size // 2), Clusters()
            for _ in range(4):
                names.learn(excerpt)
            clusters.learn(excerpt)
            list(names.rows())

        return run

    def waiting(size: int) -> Callable[[], None]:
        def run() -> None:
            order = InOrder()
            for number in reversed(range(size)):
                list(order.add(alter(number)))
            list(order.end())

        return run

    grows(topics)
    grows(waiting)


def test_replicas_are_forgotten_at_once() -> None:
    """The oldest of many is found without passing those that were forgotten before."""

    def prepare(size: int) -> Callable[[], None]:
        excerpts = [
            said(n, METADATA, {}, {"topics": [{"name": f"t{n}", "partitions": [
                {"partitionIndex": 0, "replicaNodes": [1], "isrNodes": [1]}]}]})
            for n in range(size)
        ]  # fmt: skip

        def run() -> None:
            follower = Reassignments(most=size // 2)
            for each in excerpts:
                list(follower.feed(each))

        return run

    grows(prepare)
