"""Two-phase commit (KIP-939) as far as a broker serves it: a real Kafka and the mock answer alike.

InitProducerId 6 is an unstable version, which brokers serve with ``unstable.api.versions.enable``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kproto.messages import (
    AclCreation,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    ApiVersionsRequest,
    CreatableTopic,
    CreateAclsRequest,
    CreateTopicsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from mockbroker import MockCluster
from mockbroker.simulation.security.authorizer import AclOperation, Authorizer
from tests.mockbroker.wire import Wire
from tests.real.kafka import COMMON_CONFIGS
from tests.real.single_kafka import ONE_BROKER, SingleKafka, reach, until
from tests.support.toolchain import require

RELEASE: Final = "4.4.0"
PROFILE: Final = "kafka-4.4"
UNSTABLE: Final = {
    "unstable.api.versions.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
ENABLED: Final = {**UNSTABLE, "transaction.two.phase.commit.enable": "true"}
_AUTHORIZED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_CONCURRENT: Final = 51
_TRANSACTIONAL_ID: Final = 5
_ALLOW: Final = 3


def _init(name: str | None = "t", timeout_ms: int = 60_000, **fields: bool) -> Any:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **fields)  # type: ignore[arg-type]


async def _ready(wire: Wire) -> None:
    topic = CreatableTopic(name="foo", num_partitions=1, replication_factor=1)
    await until(
        wire,
        CreateTopicsRequest(topics=[topic], timeout_ms=5_000),
        5,
        lambda answer: answer.topics[0].error_code in (0, 36),
    )
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
    await until(wire, find, 4, lambda answer: answer.coordinators[0].error_code == 0)
    await until(wire, _init("other"), 5, lambda answer: answer.error_code == 0)


async def _initialized(wire: Wire, body: Any, version: int = 6) -> tuple[int, ...]:
    """Everything of the answer but the producer id, which both sides choose."""
    answer = await until(wire, body, version, lambda each: each.error_code != _CONCURRENT)
    return (
        answer.error_code, answer.producer_epoch, answer.ongoing_txn_producer_id,
        answer.ongoing_txn_producer_epoch, answer.producer_id >= 0,
    )  # fmt: skip


async def _add(wire: Wire, name: str, *, producer: Any) -> int:
    body = AddPartitionsToTxnRequest(transactions=[
        AddPartitionsToTxnTransaction(
            transactional_id=name, producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[AddPartitionsToTxnTopic(name="foo", partitions=[0])],
        )
    ])  # fmt: skip
    answer = await until(
        wire, body, 5,
        lambda each: _partition_code(each) != _CONCURRENT,
    )  # fmt: skip
    return _partition_code(answer)


def _partition_code(answer: Any) -> int:
    (transaction,) = answer.results_by_transaction
    return int(transaction.topic_results[0].results_by_partition[0].partition_error_code)


async def _described(wire: Wire, name: str) -> tuple[Any, ...]:
    answer = await wire.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0)
    (found,) = answer.transaction_states
    return (
        found.error_code, found.transaction_state, found.transaction_timeout_ms,
        found.producer_epoch, found.transaction_start_time_ms > 0,
        [(topic.topic, topic.partitions) for topic in found.topics],
    )  # fmt: skip


async def _listed(wire: Wire, **filters: Any) -> tuple[Any, ...]:
    answer = await wire.ask(ListTransactionsRequest(**filters), 2)
    rows = sorted((each.transactional_id, each.transaction_state)
                  for each in answer.transaction_states)  # fmt: skip
    return answer.error_code, answer.unknown_state_filters, rows


async def refused(wire: Wire) -> list[Any]:
    """Two-phase commit where it is off, and more that fails."""
    await _ready(wire)
    return [
        await _initialized(wire, _init(timeout_ms=0, enable2_pc=True)),
        await _initialized(wire, _init(keep_prepared_txn=True)),
        await _initialized(wire, _init(enable2_pc=True, keep_prepared_txn=True)),
        await _initialized(wire, _init("", enable2_pc=True)),
        await _initialized(wire, _init(None, enable2_pc=True, keep_prepared_txn=True)),
        await _initialized(wire, _init("t")),
        await _described(wire, "t"),
    ]


async def served(wire: Wire) -> list[Any]:
    """The life of a producer with two-phase commit beside one without."""
    await _ready(wire)
    answers: list[Any] = []
    versions = await wire.ask(ApiVersionsRequest(), 0)
    answers += [
        (each.min_version, each.max_version) for each in versions.api_keys if each.api_key == 22
    ]
    for body in (
        _init(timeout_ms=0, enable2_pc=True),
        _init(timeout_ms=-1, enable2_pc=True),
        _init(timeout_ms=2**31 - 1, enable2_pc=True),
        _init(timeout_ms=2**31 - 1),
        _init(keep_prepared_txn=True),
        _init(enable2_pc=True, keep_prepared_txn=True),
        _init("", enable2_pc=True),
        _init(None, timeout_ms=0, enable2_pc=True, keep_prepared_txn=True),
    ):
        answers.append(await _initialized(wire, body))
    answers.append(await _described(wire, "t"))

    prepared = await wire.ask(_init("t", enable2_pc=True), 6)
    timed = await wire.ask(_init("timed", 1), 6)
    answers += [await _add(wire, "t", producer=prepared), await _add(wire, "timed", producer=timed)]
    listing = ListTransactionsRequest(state_filters=["CompleteAbort"])
    await until(
        wire, listing, 2,
        lambda answer: "timed" in [each.transactional_id for each in answer.transaction_states],
    )  # fmt: skip
    answers += [await _described(wire, "t"), (await _described(wire, "timed"))[:3]]
    for filters in (
        {"transactional_id_pattern": "t.*"},
        {"transactional_id_pattern": "t"},
        {"transactional_id_pattern": "ime"},
        {"transactional_id_pattern": ""},
        {"transactional_id_pattern": None},
        {"transactional_id_pattern": "("},
        {"transactional_id_pattern": "t.*", "state_filters": ["Ongoing", "Prepared"]},
    ):
        answers.append(await _listed(wire, **filters))
    # A client that comes back ends the transaction: nothing is kept.
    answers.append(await _initialized(wire, _init("t", enable2_pc=True)))
    answers.append((await _described(wire, "t"))[1:])
    answers.append(await _initialized(wire, _init("t", 1000), 5))
    answers.append((await _described(wire, "t"))[1:])
    ended = await wire.ask(
        EndTxnRequest(transactional_id="t", producer_id=prepared.producer_id,
                      producer_epoch=prepared.producer_epoch, committed=True), 5,
    )  # fmt: skip
    answers.append(ended.error_code)
    return answers


async def authorized(wire: Wire) -> list[Any]:
    """Write alone does not allow two-phase commit, and two-phase commit alone allows nothing."""
    await _ready(wire)
    answers: list[Any] = [(await _initialized(wire, _init("t", enable2_pc=True)))[0]]
    for operation in (AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT):
        for name in ("t", f"only-{operation.value}"):
            rule = AclCreation(
                resource_type=_TRANSACTIONAL_ID, resource_name=name, resource_pattern_type=3,
                principal="User:ANONYMOUS", host="*", operation=operation.value,
                permission_type=_ALLOW,
            )  # fmt: skip
            created = await wire.ask(CreateAclsRequest(creations=[rule]), 3)
            answers.append(created.results[0].error_code)
            if name == "t":
                # A rule reaches the broker a moment after it is acknowledged.
                wanted = 53 if operation is AclOperation.WRITE else 0
                await until(
                    wire, _init("t", enable2_pc=True), 6,
                    lambda answer, wanted=wanted: answer.error_code == wanted,
                )  # fmt: skip
    only = f"only-{AclOperation.TWO_PHASE_COMMIT.value}"
    await until(wire, _init(only), 6, lambda answer: answer.error_code == 53)
    answers += [
        (await _initialized(wire, _init(name, enable2_pc=enabled)))[0]
        for name in ("t", f"only-{AclOperation.WRITE.value}", only)
        for enabled in (False, True)
    ]
    return answers


PLAYS: Final = {
    "off": (refused, UNSTABLE, {}, None),
    "on": (served, ENABLED, {}, None),
    "authorized": (
        authorized, ENABLED, _AUTHORIZED, Authorizer(allow_everyone_if_no_acl_found=True),
    ),
}  # fmt: skip


def _mock(configs: dict[str, str], authorizer: Authorizer | None) -> MockCluster:
    return MockCluster(
        1, profile=PROFILE, broker_configs={**COMMON_CONFIGS, **ONE_BROKER, **configs},
        authorizer=authorizer,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-INIT-02", "DP-INIT-06", "DP-INIT-09", "DP-INIT-10")
@pytest.mark.parametrize("name", sorted(PLAYS))
async def test_two_phase_commit(name: str, tmp_path: Path) -> None:
    require("java", "maven")
    play, configs, secured, authorizer = PLAYS[name]
    with SingleKafka(RELEASE, tmp_path, configs={**configs, **secured}) as kafka:
        async with reach(kafka.address) as wire:
            real = await play(wire)
    async with _mock(configs, authorizer) as mock, reach(mock.addresses[1]) as wire:
        assert await play(wire) == real
