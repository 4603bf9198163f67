"""``controller_mutation_rate``: who changes too many partitions is refused, or throttled."""

import asyncio
import inspect
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from mockbroker.faults.delivery import Plan, Write
from mockbroker.profiles import profile
from mockbroker.serving.exchange import Outcome
from mockbroker.simulation.clients.quotas.client_quotas import Alteration, Entity
from mockbroker.simulation.clients.quotas.mutations import TokenBucket
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.serving.test_throttling import answers_in_time
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

REFUSED = (int(ErrorCode.THROTTLING_QUOTA_EXCEEDED), None)
CLIENT: Entity = (("client-id", "test"),)


class ThrottlingBroker(DirectBroker):
    """A broker whose throttled answers are returned, too."""

    def send(self, frame: bytes, *, broker_id: int = 1) -> Outcome:
        outcome: Any = super().send(frame, broker_id=broker_id)
        if inspect.iscoroutine(outcome):
            outcome = asyncio.run(outcome)
        if isinstance(outcome, Plan):
            (written,) = [step.data for step in outcome.steps if isinstance(step, Write)]
            outcome = written
        answer: Outcome = outcome
        return answer


def broker(name: str = "kafka-4.4", rate: float | None = 1.0) -> ThrottlingBroker:
    """A broker on which the client has this rate, so that its bucket holds 11 tokens."""
    found = profile(name)
    cluster = simulated_cluster(3, release=found.software, reassignment=found.reassignment)
    limit(cluster, rate)
    return ThrottlingBroker(cluster, profile_name=name)


def limit(cluster: Cluster, rate: float | None) -> None:
    (result,) = cluster.quotas.alter([Alteration(CLIENT, [("controller_mutation_rate", rate)])])
    assert result.error_code == 0


def create(*topics: tuple[str, int], validate_only: bool = False) -> Any:
    rows = [
        {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in topics
    ]
    return request_of("CreateTopics", topics=rows, timeout_ms=30_000, validate_only=validate_only)


def grow(name: str, count: int, **more: Any) -> Any:
    row = {"name": name, "count": count, **({"assignments": None, **more})}
    return request_of("CreatePartitions", topics=[row], timeout_ms=30_000)


def delete(*names: str) -> Any:
    return request_of("DeleteTopics", topic_names=list(names), timeout_ms=30_000)


def outcomes(answer: Any) -> list[tuple[int, str | None]]:
    rows = next(
        getattr(answer, name)
        for name in ("topics", "results", "responses")
        if hasattr(answer, name)
    )
    return [(each.error_code, each.error_message) for each in rows]


def test_a_bucket_holds_eleven_seconds_and_may_go_below_zero() -> None:
    bucket = TokenBucket(2, 5_000)
    assert (bucket.tokens(5_000), bucket.recovery_ms(5_000)) == (22, 0)
    bucket.take(25, 5_000)
    assert (bucket.tokens(5_000), bucket.recovery_ms(5_000)) == (-3, 1_500)
    assert (bucket.tokens(6_000), bucket.recovery_ms(6_000)) == (-1, 500)
    assert (bucket.tokens(6_500), bucket.recovery_ms(6_500)) == (0, 0)
    assert bucket.tokens(60_000) == 22


@pytest.mark.requirement("QUOTA-18")
@pytest.mark.parametrize("name", ["kafka-4.4", "kafka-3.5", "kafka-3.9-zk", "kafka-2.7"])
def test_topics_beyond_the_quota_are_refused(name: str) -> None:
    asked = broker(name)
    answer = asked.ask(create(("a", 10), ("b", 5), ("c", 1)), 6)
    assert outcomes(answer) == [(0, None), (0, None), REFUSED]
    assert answer.throttle_time_ms == 4_000
    assert sorted(asked.cluster.topics) == ["a", "b"]
    assert outcomes(asked.ask(grow("a", 12), 3)) == [REFUSED]
    assert outcomes(asked.ask(delete("a"), 5)) == [REFUSED]
    asked.cluster.turns.advance(3_999)
    assert asked.ask(delete("a"), 5).throttle_time_ms == 1
    asked.cluster.turns.advance(1)
    answer = asked.ask(grow("a", 12), 3)
    assert (outcomes(answer)[0][0], answer.throttle_time_ms) == (0, 0)
    answer = asked.ask(delete("a"), 5)
    assert (outcomes(answer), answer.throttle_time_ms) == ([REFUSED], 2_000)
    asked.cluster.turns.advance(2_000)
    assert asked.ask(delete("a"), 5).responses[0].error_code == 0
    assert asked.ask(delete("b"), 5).throttle_time_ms == 12_000
    assert list(asked.cluster.topics) == ["b"]


@pytest.mark.requirement("QUOTA-18", "QUOTA-19")
@pytest.mark.parametrize("name", ["kafka-4.4", "kafka-3.9-zk", "kafka-2.7"])
def test_older_versions_are_carried_out_and_throttled(name: str) -> None:
    asked = broker(name)
    answer = asked.ask(create(("a", 11)), 5)
    assert (outcomes(answer), answer.throttle_time_ms) == ([(0, None)], 0)
    answer = asked.ask(create(("b", 2), ("c", 1)), 5)
    assert (outcomes(answer), answer.throttle_time_ms) == ([(0, None)] * 2, 3_000)
    answer = asked.ask(grow("b", 3), 2)
    assert (answer.results[0].error_code, answer.throttle_time_ms) == (0, 4_000)
    answer = asked.ask(delete("a"), 4)
    assert (answer.responses[0].error_code, answer.throttle_time_ms) == (0, 15_000)
    assert sorted(asked.cluster.topics) == ["b", "c"]


@pytest.mark.requirement("QUOTA-18", "QUOTA-19")
@pytest.mark.parametrize("version", [5, 6])
def test_without_a_quota_and_before_it_existed_nothing_counts(version: int) -> None:
    for name, rate in (("kafka-4.4", None), ("kafka-2.6", 1.0)):
        asked = broker(name, rate)
        if version in asked.dispatcher.served[19]:
            answer = asked.ask(create(("a", 50), ("b", 1)), version)
            assert (outcomes(answer), answer.throttle_time_ms) == ([(0, None)] * 2, 0)
    assert version == 6 or len(asked.cluster.topics) == 2


@pytest.mark.requirement("QUOTA-20")
def test_a_kraft_controller_enforces_it_since_3_5() -> None:
    for name, throttled in (("kafka-3.4", 0), ("kafka-3.4-zk", 1_000), ("kafka-3.5", 1_000)):
        asked = broker(name)
        asked.ask(create(("a", 12)), 6)
        assert asked.ask(create(("b", 1)), 6).throttle_time_ms == throttled, name


@pytest.mark.requirement("QUOTA-20")
@pytest.mark.parametrize(("name", "throttled"), [("kafka-4.4", 1_000), ("kafka-3.9-zk", 0)])
def test_kraft_alone_counts_what_is_only_validated(name: str, throttled: int) -> None:
    asked = broker(name)
    asked.ask(create(("a", 12), validate_only=True), 6)
    assert asked.ask(create(("b", 1)), 6).throttle_time_ms == throttled


def test_replica_lists_are_checked_after_the_quota_with_kraft_alone() -> None:
    for name, code in (("kafka-4.4", REFUSED[0]), ("kafka-3.9-zk", 39)):
        asked = broker(name)
        asked.ask(create(("a", 12)), 6)
        lists = [{"broker_ids": [1, 1]}]
        answer = asked.ask(grow("a", 13, assignments=lists), 3)
        assert answer.results[0].error_code == code, name
        answer = asked.ask(grow("a", 14, assignments=lists), 3)
        assert answer.results[0].error_code in (37, 39), name


def test_a_new_quota_applies_to_the_tokens_that_are_left() -> None:
    asked = broker()
    asked.ask(create(("a", 21)), 6)
    limit(asked.cluster, 5)
    answer = asked.ask(create(("b", 1)), 6)
    assert (outcomes(answer), answer.throttle_time_ms) == ([REFUSED], 2_000)


async def test_who_is_refused_is_muted() -> None:
    async with MockCluster(profile="kafka-4.4", clock="manual") as mock:
        (result,) = mock.cluster.quotas.alter(
            [Alteration((("client-id", "wire"),), [("controller_mutation_rate", 1.0)])]
        )
        assert result.error_code == 0
        async with connect(mock) as wire:
            assert (await wire.ask(create(("a", 20)), 7)).throttle_time_ms == 0
            assert (await wire.ask(create(("b", 1)), 7)).throttle_time_ms == 9_000
            assert not await answers_in_time(wire)
