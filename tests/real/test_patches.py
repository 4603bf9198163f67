"""Fixes by patch: two patches of a line, and the mock with the fix on and off, answer as it says.

Each case plays one script on the real patch before the fix and on the first with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kproto.messages import (
    AddPartitionsToTxnRequest,
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ScramCredentialUpsertion,
    SyncGroupRequest,
)
from kproto.messages.create_topics_request import CreatableTopic
from kproto.messages.join_group_request import JoinGroupRequestProtocol
from kproto.messages.sync_group_request import SyncGroupRequestAssignment
from mockbroker import MockCluster
from mockbroker.simulation.releases.fixes import FIXES
from tests.mockbroker.wire import Wire
from tests.real.kafka import COMMON_CONFIGS
from tests.real.single_kafka import ONE_BROKER, SingleKafka, reach, until
from tests.support.full import drawn
from tests.support.toolchain import require

_CONCURRENT: Final = 51
_QUICK_CHECKS: Final = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


async def create(wire: Wire, name: str, version: int, replicas: int = 1) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=replicas)
    answer = await wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), version)
    return int(answer.topics[0].error_code)


async def find(wire: Wire, key: str, kind: int, version: int = 3) -> None:
    """Wait for the coordinator."""
    body = FindCoordinatorRequest(key=key, key_type=kind)
    await until(wire, body, version, lambda answer: answer.error_code == 0)


# ---- scripts -------------------------------------------------------------------------------------


async def a_producer_that_comes_back(wire: Wire) -> list[int]:
    """The epochs after aborts by InitProducerId and by time."""
    await create(wire, "foo", 5)
    await find(wire, "t", 1)

    async def begun(name: str, timeout_ms: int) -> None:
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        made = await until(wire, init, 5, lambda each: each.error_code == 0)
        add = AddPartitionsToTxnRequest.from_json(
            {"transactions": [{
                "transactionalId": name, "producerId": made.producer_id,
                "producerEpoch": made.producer_epoch, "verifyOnly": False,
                "topics": [{"name": "foo", "partitions": [0]}],
            }]}, 5,
        )  # fmt: skip
        await until(wire, add, 5, _is_added)

    await begun("t", 60_000)
    again = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    answer = await until(wire, again, 5, lambda each: each.error_code != _CONCURRENT)
    await begun("timed", 1)
    describe = DescribeTransactionsRequest(transactional_ids=["timed"])
    timed = await until(
        wire, describe, 0,
        lambda each: each.transaction_states[0].transaction_state == "CompleteAbort",
    )  # fmt: skip
    return [answer.error_code, answer.producer_epoch, timed.transaction_states[0].producer_epoch]


def _is_added(answer: Any) -> bool:
    (transaction,) = answer.results_by_transaction
    code = transaction.topic_results[0].results_by_partition[0].partition_error_code
    return bool(code == 0)


async def create_the_metadata_topic(wire: Wire) -> list[int]:
    return [await create(wire, "__cluster_metadata", 5)]


async def create_an_existing_topic_on_too_many_brokers(wire: Wire) -> list[int]:
    return [await create(wire, "foo", 3), await create(wire, "foo", 3, replicas=5)]


async def every_scram_user(wire: Wire) -> list[str]:
    upsertion = ScramCredentialUpsertion(
        name="a user~", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
    )
    body = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    assert (await wire.ask(body, 0)).results[0].error_code == 0
    describe = DescribeUserScramCredentialsRequest(users=None)
    answer = await until(wire, describe, 0, lambda each: each.results)
    return [each.user for each in answer.results]


async def a_static_member_changes_the_protocol(wire: Wire) -> list[Any]:
    await find(wire, "g", 0)

    def join(*protocols: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=30_000,
            group_instance_id="i", protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=each, metadata=b"\0\0") for each in protocols],
        )  # fmt: skip

    first = await until(wire, join("range", "roundrobin"), 5, lambda each: each.error_code == 0)
    assignment = SyncGroupRequestAssignment(member_id=first.member_id, assignment=b"\0")
    sync = SyncGroupRequest(
        group_id="g", generation_id=first.generation_id, member_id=first.member_id,
        group_instance_id="i", assignments=[assignment],
    )  # fmt: skip
    synced = await wire.ask(sync, 3)
    second = await wire.ask(join("roundrobin", "range"), 5)
    return [synced.error_code, second.error_code, second.generation_id, second.protocol_name]


# ---- the comparison ------------------------------------------------------------------------------


class Case(NamedTuple):
    """``before`` and ``after`` are the patches without and with the fix."""

    issue: str
    before: str
    after: str
    play: Callable[[Wire], Awaitable[list[Any]]]
    without: list[Any]
    with_fix: list[Any]
    zookeeper: bool = False

    def profile(self, patch: str) -> str:
        """The mock's profile of a patch. Before 2.8 there is only ZooKeeper."""
        both = self.zookeeper and tuple(map(int, patch.split("."))) >= (2, 8)
        return f"kafka-{patch}{'-zk' if both else ''}"


CASES: Final = (
    Case("KAFKA-8875", "2.3.0", "2.3.1", create_an_existing_topic_on_too_many_brokers,
         [0, 38], [0, 36], zookeeper=True),
    Case("KAFKA-10284", "2.6.0", "2.6.1", a_static_member_changes_the_protocol,
         [0, 0, 1, "range"], [0, 0, 2, "roundrobin"], zookeeper=True),
    Case("KAFKA-14358", "3.3.1", "3.3.2", create_the_metadata_topic, [0], [29]),
    Case("KAFKA-15243", "3.5.1", "3.5.2", every_scram_user,
         ["a%20user%7E"], ["a user~"], zookeeper=True),
    Case("KAFKA-19367", "4.0.0", "4.0.1", a_producer_that_comes_back, [0, 3, 2], [0, 2, 1]),
)  # fmt: skip


async def _mock(case: Case, patch: str, fixes: dict[str, bool]) -> list[Any]:
    configs = {**COMMON_CONFIGS, **ONE_BROKER, **_QUICK_CHECKS}
    mock = MockCluster(1, profile=case.profile(patch), broker_configs=configs, fixes=fixes)
    async with mock, reach(mock.addresses[1]) as wire:
        return await case.play(wire)


def marked(case: Case) -> Any:
    ids = FIXES[case.issue].requirement.replace(",", "").split()
    return pytest.param(case, id=case.issue, marks=pytest.mark.requirement(*ids))


@pytest.mark.parametrize("case", [marked(each) for each in CASES])
async def test_the_mock_of_both_patches(case: Case) -> None:
    for patch, own in ((case.before, case.without), (case.after, case.with_fix)):
        assert await _mock(case, patch, {}) == own
        assert await _mock(case, patch, {case.issue: False}) == case.without
        assert await _mock(case, patch, {case.issue: True}) == case.with_fix


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("case", [marked(each) for each in drawn("patches", CASES, 1)])
async def test_two_patches_of_kafka(case: Case, tmp_path: Path) -> None:
    """All of them run in ``make test-full``, one of them elsewhere."""
    require("java", "maven")
    for patch, expected in ((case.before, case.without), (case.after, case.with_fix)):
        folder = tmp_path / patch
        folder.mkdir()
        with SingleKafka(patch, folder, zookeeper=case.zookeeper, configs=_QUICK_CHECKS) as kafka:
            async with reach(kafka.address) as wire:
                assert await case.play(wire) == expected, patch
