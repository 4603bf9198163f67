"""The reference client on the mock: whatever is lost or refused, it keeps what it promises."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
import yaml

from kspec.case_parser import parse_case
from kspec.reference_client.client import Client
from kspec.reference_client.consumer_group_member import ConsumerGroupMember
from kspec.reference_client.producer import OutgoingBatch, Producer
from kspec.runner.adapters import LocalAdapter
from kspec.runner.play import play
from kspec.traffic import Evidence, body_of

_LOSING = ("foo-0", "foo-1")
"""Partitions whose batches are appended and not acknowledged."""
_REFUSING = "foo-2"
"""A partition, with a leader of its own, whose batches are refused as out of order."""
_APPENDED = ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_NOT_APPENDED = ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "CORRUPT_MESSAGE")


async def _played(**members: Any) -> Evidence:
    text = yaml.safe_dump(
        {
            "title": "t",
            "source": "KIP-98",
            "about": "a",
            "must": [{"says": "it connects", "events": {"event": "connected"}}],
            "wrong": {"by": "never-retries"},
            **members,
        }
    )
    case = parse_case(text, "x/001-x.yaml").case
    return await play(case, {None: LocalAdapter(Client())})


def _drawn_faults(rng: random.Random) -> list[dict[str, Any]]:
    faults: list[dict[str, Any]] = []
    for partition in _LOSING:
        rule = {"api": "Produce", "topic": "foo", "partition": int(partition[-1])}
        times = rng.randint(1, 2)
        kind = rng.choice(("lost", "applied", "refused"))
        if kind == "lost":
            faults.append({**rule, "times": times, "disconnect": "after"})
        elif kind == "applied":
            error = rng.choice(_APPENDED)
            faults.append({**rule, "times": times, "error": error, "apply": True})
        else:
            faults.append({**rule, "times": times, "error": rng.choice(_NOT_APPENDED)})
    rule = {"api": "Produce", "topic": "foo", "partition": int(_REFUSING[-1])}
    faults.append({**rule, "times": rng.randint(1, 2), "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"})
    return faults


@pytest.mark.parametrize("number", range(6))
async def test_each_record_is_written_once_and_in_order(number: int, rng: random.Random) -> None:
    """One partition needs a new epoch while it is unknown what another one has: the batches of the
    other one keep their numbers."""
    rng = random.Random(f"{rng.random()} {number}")
    faults = _drawn_faults(rng)
    values = {
        partition: [f"{partition}.{each}" for each in range(rng.randint(1, 8))]
        for partition in (*_LOSING, _REFUSING)
    }

    def produce(name: str, values: dict[str, list[str]]) -> dict[str, Any]:
        return {"call": "produce", "with": {"values": values}, "as": name}

    played = await _played(
        cluster={"topics": ["foo=1/2/3"]},
        client={"producer": {"acks": "all", "batch_bytes": rng.choice((8, 40, 16_384))}},
        steps=[
            produce("first", {each: [f"{each}.first"] for each in values}),
            {"faults": [{**each, "optional": True} for each in faults]},
            produce("second", values),
            produce("third", {each: [f"{each}.last"] for each in values}),
        ],
    )
    assert all(call.answer.ok for call in played.calls.values()), (faults, played.calls)
    for partition, sent in values.items():
        held = played.logs[partition]["values"]
        assert held == [f"{partition}.first", *sent, f"{partition}.last"], (faults, Counter(held))


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    producer = Producer(Client(), {})
    producer.identity = (7, 32_767)
    batch = OutgoingBatch(("foo", 0), [{"value": "a"}])
    producer.number(batch)
    assert (batch.sequence, batch.identity) == (0, (7, 32_767))
    producer.begin_epoch([batch])
    assert producer.identity == (-1, -1)
    assert (batch.sequence, batch.identity) == (-1, (-1, -1))


async def test_a_batch_is_sent_again_with_its_timestamps() -> None:
    played = await _played(
        cluster={"topics": ["foo=1"], "brokers": 1},
        faults=[{"api": "Produce", "times": 1, "error": "NOT_ENOUGH_REPLICAS"}],
        steps=[{"call": "produce", "with": {"values": {"foo-0": ["a"]}}}],
    )
    sent = [
        body_of(each)["topicData"][0]["partitionData"][0]["records"]
        for each in played.entries
        if each.direction == "request" and each.api_key == 0
    ]
    assert len(sent) == 2
    assert sent[0] == sent[1]


async def test_a_fetch_session_forgets_a_partition_that_has_another_leader() -> None:
    played = await _played(
        cluster={"topics": ["foo=1,2/1,2"], "brokers": 2},
        client={"consumer": {"offset_reset": "earliest"}},
        steps=[
            {"cluster": "append foo-0 a"},
            {"cluster": "append foo-1 b"},
            {"call": "assign", "with": {"offsets": {"foo-0": 0, "foo-1": 0}}},
            {"call": "poll", "with": {"records": 2, "ms": 3000}, "as": "before"},
            {"cluster": "unclean-election foo-1 2"},
            {"cluster": "append foo-1 c"},
            {"call": "poll", "with": {"records": 1, "ms": 3000}, "as": "after"},
            {"cluster": "append foo-0 d"},
            {"call": "poll", "with": {"records": 1, "ms": 3000}, "as": "again"},
        ],
    )
    assert played.blocked is None
    values = [each["value"] for call in ("before", "after", "again") for each in
              played.calls[call].answer.records]  # fmt: skip
    assert sorted(values[:2]) == ["a", "b"]
    assert values[2:] == ["c", "d"]
    forgotten = [
        each["partitions"]
        for entry in played.entries
        if entry.direction == "request" and entry.api_key == 1 and entry.broker_id == 1
        for each in body_of(entry).get("forgottenTopicsData") or ()
    ]
    assert forgotten == [[1]]


@pytest.mark.parametrize(("policy", "outcome"), [("earliest", ["a", "b"]), ("none", None)])
async def test_an_epoch_that_the_leader_does_not_know_is_a_truncation(
    policy: str, outcome: list[str] | None
) -> None:
    """KIP-320: without an end offset, the consumer does what its policy says."""
    unknown = {
        "topics[0].partitions[0].leader_epoch": -1,
        "topics[0].partitions[0].end_offset": -1,
    }
    played = await _played(
        cluster={"topics": ["foo=1,2"], "brokers": 2},
        client={"consumer": {"offset_reset": policy}},
        faults=[{"api": "OffsetForLeaderEpoch", "times": 1, "set": unknown}],
        steps=[
            {"cluster": "append foo-0 a"},
            {"cluster": "append foo-0 b"},
            {"call": "assign", "with": {"offsets": {"foo-0": 0}}},
            {"call": "poll", "with": {"records": 2, "ms": 3000}, "as": "before"},
            {"cluster": "unclean-election foo-0 2"},
            {"call": "poll", "with": {"records": 2, "ms": 3000}, "as": "after"},
        ],
    )
    assert played.blocked is None
    assert not played.unhit
    after = played.calls["after"].answer
    if outcome is None:
        assert after.failure is not None
    else:
        assert [each["value"] for each in after.records] == outcome


@pytest.mark.parametrize("turns", range(4))
async def test_a_member_that_is_woken_as_it_stops_ends(turns: int) -> None:
    class Silent(ConsumerGroupMember):
        async def beat_once(self) -> float:
            return 60

    member: Any = object.__new__(Silent)
    member.fatal, member.joining, member.woken = None, None, asyncio.Event()
    beating = member.beating = asyncio.create_task(member.beat())
    await asyncio.sleep(0)
    member.woken.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await member.stop()
    assert beating.cancelled()
