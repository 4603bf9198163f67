"""Clusters that hold much of one thing, and small requests to them."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from kproto.records import Record, build_batch
from mockbroker.profiles import Profile
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.filled_requests import filled_request
from tests.mockbroker.growth.grown_requests import broker_of
from tests.support.requests import request_of

__all__ = ["STATES", "Holder", "Probe", "probes"]

_GROUP: Final = "GroupId0"  # as filled_request names it
_SUBSCRIPTION: Final = bytes(10)


class Holder:
    """A broker and what its clients wait for, in a running event loop."""

    def __init__(self, profile: Profile) -> None:
        self.broker: DirectBroker = broker_of(profile, ready_coordinators=True)
        self.newest = {key: kept.highest for key, kept in self.broker.dispatcher.served.items()}
        self._waiting: list[asyncio.Future[Any]] = []
        # The internal topics are created once.
        self.join("first")
        self.begin("first")(True)
        if 76 in self.newest:
            self.heartbeat("Share", "first-share", "m")

    def ask(self, name: str, most: int = 99, /, at: int = 1, **fields: Any) -> Any:
        """Ask the broker ``at`` in the newest version, or in ``most`` if that is older. None stands
        for an answer that is waited for."""
        return self.send(request_of(name, **fields), most, at=at)[0]

    def send(self, body: Any, most: int = 99, *, at: int = 1) -> tuple[Any, int]:
        """Return the answer to a request, and its size in bytes."""
        codec, version = self.broker.codec, min(self.newest[body.API_KEY], most)
        frame = codec.encode_request(body, api_version=version, correlation_id=1, client_id="test")
        answer = self.broker.send(frame, broker_id=at)
        if inspect.isawaitable(answer):
            self._waiting.append(asyncio.ensure_future(answer))
            return None, 0
        if not isinstance(answer, bytes) or not answer:
            return None, 0
        _, found = codec.decode_response(answer, api_key=body.API_KEY, api_version=version)
        return found, len(answer)

    async def end(self) -> None:
        """Give up what is waited for."""
        for each in self._waiting:
            each.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)

    def leader(self, topic: str) -> int:
        found: int = self.broker.cluster.state.topics[topic].partitions[0].leader
        return found

    def coordinator(self, key: str, key_type: int = 0) -> int:
        found: int = self.ask("FindCoordinator", 1, key=key, key_type=key_type).node_id
        return found

    # ---- what clients do -----------------------------------------------------------------------

    def create(self, *names: str) -> None:
        topics = [{"name": each, "num_partitions": 1, "replication_factor": 3} for each in names]
        self.ask("CreateTopics", timeout_ms=1000, topics=topics)

    def produce(
        self, batch: bytes, topic: str = "foo", transactional_id: str | None = None
    ) -> None:
        self.ask(
            "Produce", 12, at=self.leader(topic), acks=-1, timeout_ms=1000, name=topic, index=0,
            records=batch, transactional_id=transactional_id,
        )  # fmt: skip

    def fetch(
        self, offset: int, *, topic: str = "foo", committed: bool = False, wait: int = 0,
        in_session: bool = False,
    ) -> int:  # fmt: skip
        """Return the size of the answer."""
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100}
        return self.send(
            request_of(
                "Fetch", max_wait_ms=wait, min_bytes=1 if wait else 0, max_bytes=1000,
                isolation_level=int(committed), session_id=0, session_epoch=0 if in_session else -1,
                topics=[{"topic": topic, "partitions": [partition]}], forgotten_topics_data=[],
            ),
            11,
            at=self.leader(topic),
        )[1]  # fmt: skip

    def list_offsets(self, timestamp: int, *, committed: bool = False) -> Any:
        return self.ask(
            "ListOffsets", 4, at=self.leader("foo"), replica_id=-1, name="foo",
            isolation_level=int(committed), partition_index=0, timestamp=timestamp,
            current_leader_epoch=-1,
        )  # fmt: skip

    def commit(self, group: str, topic: str = "foo", count: int = 1) -> None:
        partitions = [
            {"partition_index": each, "committed_offset": 0, "committed_metadata": ""}
            for each in range(count)
        ]
        self.ask(
            "OffsetCommit", 2, at=self.coordinator(group), group_id=group, member_id="",
            generation_id_or_member_epoch=-1, topics=[{"name": topic, "partitions": partitions}],
        )  # fmt: skip

    def join(self, group: str) -> None:
        self.ask(
            "JoinGroup", 2, at=self.coordinator(group), group_id=group, session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000, member_id="", protocol_type="consumer",
            protocols=[{"name": "range", "metadata": _SUBSCRIPTION}],
        )  # fmt: skip

    def heartbeat(self, kind: str, group: str, member: str, epoch: int = 0) -> None:
        """Join a consumer or share group, go on or leave."""
        fields: dict[str, Any] = {"subscribed_topic_names": ["foo"]} if epoch == 0 else {}
        if kind == "Consumer":
            fields["rebalance_timeout_ms"] = -1 if epoch else 10_000
            fields["topic_partitions"] = None if epoch else []
        self.ask(
            f"{kind}GroupHeartbeat", at=self.coordinator(group), group_id=group, member_id=member,
            member_epoch=epoch, **fields,
        )  # fmt: skip

    def begin(self, transactional_id: str) -> Callable[[bool], None]:
        """Begin a transaction with a record of foo; the result ends it."""
        at = self.coordinator(transactional_id, 1)
        producer = self.ask(
            "InitProducerId", 1, at=at, transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
        )  # fmt: skip
        self.ask(
            "AddPartitionsToTxn", 1, at=at, v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[{"name": "foo", "partitions": [0]}],
        )  # fmt: skip
        batch = _batch(producer.producer_id, producer.producer_epoch, is_transactional=True)
        self.produce(batch, transactional_id=transactional_id)

        def end(commits: bool) -> None:
            self.ask(
                "EndTxn", 1, at=at, transactional_id=transactional_id,
                producer_id=producer.producer_id, producer_epoch=producer.producer_epoch,
                committed=commits,
            )  # fmt: skip

        return end


def _batch(producer_id: int = -1, epoch: int = -1, *, is_transactional: bool = False) -> bytes:
    return build_batch(
        [Record(timestamp=1, value=b"v")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0 if producer_id >= 0 else -1,
        is_transactional=is_transactional,
    )


def _for_each(act: Callable[[Holder, int], object]) -> Callable[[Holder, int], None]:
    def grow(holder: Holder, count: int) -> None:
        for number in range(count):
            act(holder, number)

    return grow


def _set_config(holder: Holder, kind: int, names: list[str], name: str, value: str) -> None:
    configs = [{"name": name, "config_operation": 0, "value": value}]
    holder.ask(
        "IncrementalAlterConfigs",
        validate_only=False,
        resources=[
            {"resource_type": kind, "resource_name": each, "configs": configs} for each in names
        ],
    )


def _topics(holder: Holder, count: int) -> None:
    holder.create(*(f"t{number}" for number in range(count)))


def _topics_with_configs(holder: Holder, count: int) -> None:
    _topics(holder, count)
    _set_config(holder, 2, [f"t{number}" for number in range(count)], "retention.ms", "1000")


def _partitions(holder: Holder, count: int) -> None:
    holder.ask("CreatePartitions", timeout_ms=1000, topics=[
        {"name": "foo", "count": count + 2, "assignments": None}
    ])  # fmt: skip


def _committed_offsets(holder: Holder, count: int) -> None:
    _partitions(holder, count)
    holder.commit(_GROUP, count=count)


def _reassignments(holder: Holder, count: int) -> None:
    _topics(holder, count)
    topics = [
        {"name": f"t{number}", "partitions": [{"partition_index": 0, "replicas": [1, 2]}]}
        for number in range(count)
    ]
    holder.ask("AlterPartitionReassignments", timeout_ms=1000, topics=topics)


def _acls(holder: Holder, count: int) -> None:
    creation = {
        "resource_type": 2, "host": "*", "operation": 3, "permission_type": 3,
        "resource_pattern_type": 3,
    }  # fmt: skip
    names = [(f"x{number}", "User:a") for number in range(count)]
    names += [("foo", f"User:{number}") for number in range(count)]
    holder.ask("CreateAcls", creations=[
        {**creation, "resource_name": name, "principal": principal} for name, principal in names
    ])  # fmt: skip


def _quotas(holder: Holder, count: int) -> None:
    limit = {"key": "producer_byte_rate", "value": 1000.0, "remove": False}
    entries = [
        {"entity": [{"entity_type": "client-id", "entity_name": f"c{number}"}], "ops": [limit]}
        for number in range(count)
    ]
    holder.ask("AlterClientQuotas", entries=entries, validate_only=False)


def _scram_users(holder: Holder, count: int) -> None:
    upsertions = [
        {"name": f"u{number}", "mechanism": 1, "iterations": 4096, "salt": b"s",
         "salted_password": b"p"}
        for number in range(count)
    ]  # fmt: skip
    holder.ask("AlterUserScramCredentials", deletions=[], upsertions=upsertions)


def _recreate(holder: Holder, _number: int) -> None:
    holder.create("t")
    holder.ask("DeleteTopics", 5, timeout_ms=1000, topic_names=["t"])


class State(NamedTuple):
    """``grow`` lets a cluster hold so many; ``api`` is the key of an API that this needs."""

    grow: Callable[[Holder, int], None]
    api: int = 0


STATES: Final = {
    "topics": State(_topics),
    "topics with configs": State(_topics_with_configs, 44),
    "partitions": State(_partitions),
    "deleted topics": State(_for_each(_recreate)),
    "changes of a config": State(
        _for_each(lambda on, n: _set_config(on, 2, ["foo"], "retention.ms", str(1000 + n))), 44
    ),
    "reassignments": State(_reassignments, 45),
    "batches": State(_for_each(lambda on, _: on.produce(_batch()))),
    "producers": State(_for_each(lambda on, n: on.produce(_batch(1000 + n, 0)))),
    "transactional ids": State(_for_each(lambda on, n: on.ask(
        "InitProducerId", 1, at=on.coordinator(f"id{n}", 1), transactional_id=f"id{n}",
        transaction_timeout_ms=60_000,
    ))),
    "open transactions": State(_for_each(lambda on, n: on.begin(f"id{n}"))),
    "aborted transactions": State(_for_each(lambda on, n: on.begin(f"id{n}")(False))),
    "groups with offsets": State(_for_each(lambda on, n: on.commit(f"g{n}"))),
    "committed offsets": State(_committed_offsets),
    "classic groups": State(_for_each(lambda on, n: on.join(f"g{n}"))),
    "members": State(_for_each(lambda on, _: on.join(_GROUP))),
    "consumer groups": State(_for_each(lambda on, n: on.heartbeat("Consumer", f"g{n}", "m")), 68),
    "consumers": State(_for_each(lambda on, n: on.heartbeat("Consumer", _GROUP, f"{n}")), 68),
    "share groups": State(_for_each(lambda on, n: on.heartbeat("Share", f"g{n}", "m")), 76),
    "share consumers": State(_for_each(lambda on, n: on.heartbeat("Share", _GROUP, f"{n}")), 76),
    "fetch sessions": State(_for_each(lambda on, _: on.fetch(0, in_session=True))),
    "waiting fetches": State(_for_each(lambda on, _: on.fetch(0, topic="bar", wait=100_000))),
    "access rules": State(_acls),
    "quotas": State(_quotas, 49),
    "SCRAM users": State(_scram_users, 51),
    "delegation tokens": State(_for_each(lambda on, _: on.ask(
        "CreateDelegationToken", 1, renewers=[], max_lifetime_ms=-1
    ))),
    "metrics subscriptions": State(lambda on, count: _set_config(
        on, 16, [f"m{number}" for number in range(count)], "interval.ms", "1000"
    ), 71),
    "telemetry clients": State(_for_each(lambda on, _: on.ask(
        "GetTelemetrySubscriptions", client_instance_id=uuid.UUID(int=0)
    )), 71),
    "requests": State(_for_each(lambda on, _: on.ask("ApiVersions", 0))),
}  # fmt: skip
"""What a cluster can hold much of."""


class Probe(NamedTuple):
    """A small request. ``run`` returns the size of its answer where that may grow."""

    name: str
    run: Callable[[], object]


def probes(holder: Holder) -> Iterator[Probe]:
    """Requests that clients send again and again, then each API's filled request. They change the
    cluster, all in the same way."""
    ask = holder.ask
    yield Probe("Produce", lambda: holder.produce(_batch()))
    yield Probe("Produce, idempotent", lambda: holder.produce(_batch(7, 0)))
    end = holder.list_offsets(-1).topics[0].partitions[0].offset
    for place, offset in (("first", 0), ("last", end - 1), ("next", end)):
        for committed in (False, True):
            holder.fetch(offset, committed=committed)  # an index is derived once
            yield Probe(
                f"Fetch of the {place} record{' if committed' * committed}",
                partial(holder.fetch, offset, committed=committed),
            )
    for timestamp in (-1, -2, 0, 1, 2):
        for committed in (False, True):
            holder.list_offsets(timestamp, committed=committed)  # as for fetches
            yield Probe(
                f"ListOffsets of {timestamp}{' of committed records' * committed}",
                partial(holder.list_offsets, timestamp, committed=committed),
            )
    metadata = request_of("Metadata", topics=[{"name": "bar"}], allow_auto_topic_creation=False)
    yield Probe("Metadata of a topic", lambda: holder.send(metadata, 8)[1])
    yield Probe("CreateTopics", lambda: holder.create("new"))
    yield Probe("CreateTopics of one that exists", lambda: holder.create("bar"))
    yield Probe("JoinGroup of a new group", lambda: holder.join("other"))
    yield Probe("OffsetCommit of a new group", lambda: holder.commit("simple", "bar"))
    yield Probe("OffsetCommit", lambda: holder.commit(_GROUP, "bar"))
    for kind, key in (("Consumer", 68), ("Share", 76)):
        if key in holder.newest:
            for name, group, member, epoch in (
                ("", _GROUP, "5", 1), (" that joins a new group", f"new-{kind}", "m", 0),
                (" that leaves it", f"new-{kind}", "m", -1),
            ):  # fmt: skip
                yield Probe(
                    f"{kind}GroupHeartbeat{name}",
                    partial(holder.heartbeat, kind, group, member, epoch),
                )
    ended = []
    yield Probe("a transaction", lambda: ended.append(holder.begin("mine")))
    yield Probe("EndTxn", lambda: ended.pop()(True))
    yield Probe("DeleteTopics", lambda: ask(
        "DeleteTopics", 5, timeout_ms=1000, topic_names=["new"]
    ) and None)  # fmt: skip
    for key, version in sorted(holder.newest.items()):
        body = filled_request(holder.broker.codec.apis[key].request, version)
        name = type(body).__name__.removesuffix("Request")
        yield Probe(f"{name}, every field filled", partial(_answer_size, holder, body))


def _answer_size(holder: Holder, body: Any) -> int:
    return holder.send(body)[1]
