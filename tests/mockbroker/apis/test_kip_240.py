"""KIP-240 end to end: our Admin, the mock, its znodes; and every byte of both requests."""

from struct import pack
from typing import Any

import pytest

import kproto
from kproto.client import Admin
from kproto.client.errors import (
    ClusterAuthorizationError,
    NotControllerError,
    NotRequestedError,
    UnknownTopicOrPartitionError,
)
from kproto.client.values import UNTHROTTLED, Reassignment, TopicPartition
from kproto.dialects import kip_240
from kproto.errors import UnknownNameError, UnsupportedVersionError
from mockbroker import MockCluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import Authorizer
from tests.mockbroker.grammar import text
from tests.mockbroker.wire import Wire, connect

FOO0, FOO1, BAR0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)
CHILD = "/admin/reassignments/foo/0"


def five(**options: Any) -> MockCluster:
    settings = {"topics": ["foo=1,2/1,2", "bar=1,2"], "profile": "kip-240", "clock": "manual"}
    return MockCluster(5, **{**settings, **options})


def admin_of(mock: MockCluster, dialect: Any = "kip-240") -> Admin:
    return Admin(mock.bootstrap, dialect=dialect)


async def reassign(admin: Admin, replicas: list[int], tp: TopicPartition = FOO0) -> None:
    await admin.alter_partition_reassignments({tp: replicas}).all()


async def only(admin: Admin) -> Reassignment:
    (found,) = await admin.list_reassignments().all()
    return found


@pytest.mark.requirement("C-07", "K240-02", "K240-06", "A-26")
async def test_listing_all_of_them_or_some() -> None:
    async with five() as mock, admin_of(mock) as admin:
        assert await admin.list_reassignments().all() == []
        await reassign(admin, [3, 4], FOO1)
        await reassign(admin, [3], BAR0)
        everything = admin.list_reassignments()
        assert [each.topic_partition for each in await everything.all()] == [BAR0, FOO1]
        assert await everything.get(FOO0) is None
        some = admin.list_reassignments([FOO1, FOO0, FOO1])
        assert (await some.get(FOO1)) is not None
        assert [each.topic_partition for each in await some.all()] == [FOO1]
        with pytest.raises(NotRequestedError):
            some.get(BAR0)
        assert await admin.list_reassignments([]).all() == []


@pytest.mark.requirement("K240-03", "K240-06", "K240-18")
async def test_two_reassignments_of_one_partition_are_two() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [2, 3])
        first = await only(admin)
        await reassign(admin, [2, 4])
        assert await only(admin) == first
        mock.join_isr("foo-0", 4)
        await reassign(admin, [1, 2])
        second = await only(admin)
        assert second != first
        assert second.topic_partition == first.topic_partition == FOO0
        result = admin.describe_reassignments([first, second])
        # The first is over, whatever happens to its partition now.
        assert await result.get(first) is None
        assert (await result.all()).keys() == {second}


@pytest.mark.requirement("K240-08", "K240-15")
async def test_what_is_over_is_left_out_and_what_was_not_asked_is_a_key_error() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [2, 3])
        await reassign(admin, [3], BAR0)
        bar, foo = await admin.list_reassignments().all()
        mock.join_isr("foo-0", 3)
        result = admin.describe_reassignments([foo])
        assert await result.get(foo) is None
        with pytest.raises(KeyError, match="was not part of the call"):
            result.get(bar)
        assert list(await admin.describe_reassignments([foo, bar]).all()) == [bar]


@pytest.mark.requirement("K240-09")
async def test_describing_all_of_them() -> None:
    async with five() as mock, admin_of(mock) as admin:
        assert await admin.describe_reassignments().reassignments() == []
        await reassign(admin, [2, 3])
        await reassign(admin, [3], BAR0)
        found = await admin.describe_reassignments().reassignments()
        assert [each.topic_partition for each in found] == [BAR0, FOO0]


@pytest.mark.requirement("K240-10", "K240-11", "K240-12", "K240-17")
async def test_a_description_keeps_its_start_and_follows_leader_and_target() -> None:
    async with five() as mock, admin_of(mock) as admin:
        mock.advance(1_000)
        await reassign(admin, [5, 3, 2])
        started = await only(admin)
        mock.advance(500)
        described = await admin.describe_reassignments([started]).get(started)
        assert described is not None
        assert (described.start_time, described.current_leader) == (1_000, 1)
        assert described.new_assigned_brokers == [5, 3, 2]
        await reassign(admin, [4, 2])
        await mock.stop_broker(1)
        changed = await admin.describe_reassignments([started]).get(started)
        assert changed is not None
        assert (changed.start_time, changed.current_leader) == (1_000, 2)
        assert changed.new_assigned_brokers == [4, 2]
        stat = mock.cluster.znodes.read(CHILD)
        assert stat is not None
        assert stat[1].ctime == 1_000


@pytest.mark.requirement("K240-12")
async def test_the_first_of_the_new_brokers_is_the_preferred_leader() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [5, 2])
        mock.join_isr("foo-0", 5)
        partition = mock.cluster.topics.partition("foo", 0)
        assert (partition.replicas, partition.preferred_leader) == ((5, 2), 5)
        await admin.elect_preferred_leaders([FOO0]).all()
        assert mock.cluster.topics.partition("foo", 0).leader == 5


@pytest.mark.requirement("K240-11", "K240-13", "K240-17")
async def test_throttles_are_those_of_topic_and_broker_configs() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [3, 4, 2])
        started = await only(admin)

        async def throttles() -> tuple[int, dict[int, int]]:
            found = await admin.describe_reassignments([started]).get(started)
            assert found is not None
            return found.leader_throttle, dict(found.new_assigned_throttles)

        def configure(kind: int, name: str, *values: tuple[str, str]) -> None:
            operations = [(key, 0, value) for key, value in values]
            (result,) = mock.cluster.config_changes.alter_incrementally([(kind, name, operations)])
            assert result.error_code == 0

        unthrottled = {3: UNTHROTTLED, 4: UNTHROTTLED, 2: UNTHROTTLED}
        assert UNTHROTTLED == 2**63 - 1
        # A list without a rate throttles nobody, nor does a rate without a list.
        listed = ("follower.replication.throttled.replicas", "0:3,1:4,0:2")
        configure(2, "foo", ("leader.replication.throttled.replicas", "0:1,0:2"), listed)
        assert await throttles() == (UNTHROTTLED, unthrottled)
        for broker in "134":
            rates = (f"{side}.replication.throttled.rate" for side in ("leader", "follower"))
            values = [(rate, broker + add) for rate, add in zip(rates, ("000", "001"), strict=True)]
            configure(4, broker, *values)
        assert await throttles() == (1000, {**unthrottled, 3: 3001})
        configure(2, "foo", ("follower.replication.throttled.replicas", "*"))
        assert await throttles() == (1000, {**unthrottled, 3: 3001, 4: 4001})
        assert list((await throttles())[1]) == [3, 4, 2]
        # The throttle is of whoever leads: broker 2 is listed and has no rate.
        await mock.stop_broker(1)
        assert (await throttles())[0] == UNTHROTTLED


@pytest.mark.requirement("K240-05", "A-24")
async def test_listing_a_partition_that_does_not_exist_lists_nothing() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [3])
        for wrong in (TopicPartition("foo", 7), TopicPartition("no", 0)):
            text = rf"^There is no partition {wrong}\.$"
            with pytest.raises(UnknownTopicOrPartitionError, match=text):
                await admin.list_reassignments([FOO0, wrong, TopicPartition("later", 0)]).all()


@pytest.mark.requirement("K240-16")
async def test_describing_what_does_not_exist_is_no_error() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [3])
        started = await only(admin)
        nowhere = Reassignment(TopicPartition("no", 0), started._id)
        assert await admin.describe_reassignments([nowhere]).all() == {}


@pytest.mark.requirement("K240-04", "K240-05", "K240-16")
async def test_only_the_controller_answers() -> None:
    async with five() as mock, admin_of(mock) as admin, connect(mock, 2) as other:
        await reassign(admin, [3])
        for name in ("ListReassignmentsRequest", "DescribeReassignmentsRequest"):
            request: Any = mock.dialect.message(name)
            answer = await other.ask(request(timeout_ms=1000), 0)
            assert (answer.error_code, answer.error_message) == (41, None)
        mock.failover(2)
        # The client finds the other controller by itself.
        assert [each.topic_partition for each in await admin.list_reassignments().all()] == [FOO0]
        mock.on(32240)(lambda call: call.api.response(error_code=41, error_message=None))
        with pytest.raises(NotControllerError):
            await admin.list_reassignments(timeout_ms=50).all()


@pytest.mark.requirement("K240-01", "K240-05", "K240-07")
async def test_who_may_not_describe_the_cluster_is_told_so() -> None:
    async with five(authorizer=Authorizer(frozenset())) as mock, admin_of(mock) as admin:
        with pytest.raises(ClusterAuthorizationError):
            await admin.list_reassignments().all()
        started = Reassignment(FOO0, 1)
        with pytest.raises(ClusterAuthorizationError):
            await admin.describe_reassignments([started]).get(started)


@pytest.mark.requirement("K240-14")
async def test_how_far_the_replicas_are_is_asked_of_the_brokers() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [3, 2])
        started = await only(admin)
        described = await admin.describe_reassignments([started]).get(started)
        assert described is not None
        for broker in described.new_assigned_brokers:
            async with connect(mock, broker) as wire:
                answer = await wire.ask("DescribeLogDirs", 1, topics=None)
            (directory,) = answer.results
            (topic,) = [each for each in directory.topics if each.name == "foo"]
            assert 0 in [each.partition_index for each in topic.partitions]


@pytest.mark.requirement("K240-17", "A-25")
async def test_answers_come_from_the_znodes_as_they_are_now() -> None:
    async with five() as mock, admin_of(mock) as admin:
        await reassign(admin, [3])
        started = await only(admin)
        found = mock.cluster.znodes.read(CHILD)
        assert found is not None
        assert found[1].czxid == started._id
        Operations(mock.cluster).write_znode(CHILD, found[0].replace("[3]", "[4,5]"))
        described = await admin.describe_reassignments([started]).get(started)
        assert described is not None
        assert described.new_assigned_brokers == [4, 5]
        Operations(mock.cluster).write_znode(CHILD, "nonsense")
        unreadable = await admin.describe_reassignments([started]).get(started)
        assert unreadable is not None
        assert unreadable.new_assigned_brokers == [3]
        Operations(mock.cluster).write_znode(CHILD, None)
        assert await admin.list_reassignments().all() == []
        assert await admin.describe_reassignments([started]).get(started) is None


# ---- other controllers, with this dialect --------------------------------------------------------


@pytest.mark.requirement("A-50")
@pytest.mark.parametrize("profile", ["kip-455-old", "kip-455-new", "kafka-4.1", "kafka-2.4"])
async def test_controllers_without_such_znodes_have_identities_made_up(profile: str) -> None:
    topics = ["foo=1,2,3/1,2,3", "bar=1"]
    options = {"profile": profile, "dialect": "kip-240", "clock": "manual", "topics": topics}
    async with MockCluster(6, **options) as mock, admin_of(mock) as admin:  # type: ignore[arg-type]
        mock.advance(100)
        await reassign(admin, [4, 5, 6])
        await reassign(admin, [4], FOO1)
        first, other = await admin.list_reassignments([FOO0, FOO1]).all()
        assert first != other
        mock.advance(100)
        mock.join_isr("foo-0", 4)
        assert first in await admin.list_reassignments().all()
        described = await admin.describe_reassignments([first]).get(first)
        assert described is not None
        assert (described.start_time, described.new_assigned_brokers) == (100, [4, 5, 6])
        identity = mock.cluster.reassignments.identities()[FOO0]
        assert identity.czxid == identity.mzxid
        await reassign(admin, [4, 5])
        changed = mock.cluster.reassignments.identities()[FOO0]
        assert changed.czxid == identity.czxid == first._id < changed.mzxid
        assert (changed.ctime_ms, changed.target) == (100, (4, 5))
        mock.join_isr("foo-0", 5)
        assert await admin.describe_reassignments([first]).get(first) is None
        await reassign(admin, [1])
        again = await admin.list_reassignments([FOO0]).get(FOO0)
        assert again is not None
        assert again != first
        assert again._id > changed.mzxid
        mock.cluster.topics.delete([("foo", kproto.schema.model.ZERO_UUID)])
        assert await admin.list_reassignments().all() == []


# ---- the wire ------------------------------------------------------------------------------------


async def say(wire: Wire, content: bytes) -> bytes:
    wire.send(pack(">i", len(content)) + content)
    return (await wire.receive())[4:]


@pytest.mark.requirement("K240-01", "K240-13", "K240-15", "A-22", "A-23")
async def test_every_byte() -> None:
    async with five() as mock, admin_of(mock) as admin, connect(mock) as wire:
        mock.advance(7)
        await reassign(admin, [2, 3])
        czxid = (await only(admin))._id
        listed = await say(
            wire,
            pack(">hhi", 32240, 0, 5) + text("acc") + pack(">i", 1000)
            + pack(">i", 1) + text("foo") + pack(">iii", 2, 1, 0),
        )  # fmt: skip
        assert listed == (
            pack(">i", 5) + pack(">ih", 0, 0) + text(None)
            + pack(">i", 1) + text("foo") + pack(">i", 1) + pack(">iq", 0, czxid)
        )  # fmt: skip
        described = await say(
            wire,
            pack(">hhi", 32241, 0, 6) + text("acc")
            + pack(">i", 1) + text("foo") + pack(">i", 2) + pack(">iq", 0, czxid)
            + pack(">iq", 0, czxid + 1) + pack(">i", 1000),
        )  # fmt: skip
        unthrottled = bytes.fromhex("7fffffffffffffff")
        assert described == (
            pack(">i", 6) + pack(">ih", 0, 0) + text(None) + pack(">i", 1)
            + pack(">qqi", czxid, 7, 1) + unthrottled
            + pack(">i", 2) + pack(">i", 2) + unthrottled + pack(">i", 3) + unthrottled
        )  # fmt: skip
        everything = await say(
            wire, pack(">hhi", 32240, 0, 7) + text("acc") + pack(">ii", 1000, -1)
        )
        assert everything[4:] == listed[4:]


# ---- which api keys ------------------------------------------------------------------------------


@pytest.mark.requirement("A-22")
async def test_the_keys_are_advertised_with_the_dialect_only_and_are_yours_to_choose() -> None:
    async def keys(mock: MockCluster) -> set[int]:
        async with connect(mock) as wire:
            answer = await wire.ask("ApiVersions", 2)
        return {row.api_key for row in answer.api_keys if row.api_key > 1000}

    async with five() as mock:
        assert await keys(mock) == {32240, 32241}
    async with five(profile="kip-236-old") as mock, admin_of(mock) as admin:
        assert await keys(mock) == set()
        with pytest.raises(UnsupportedVersionError, match="does not support LIST_REASSIGNMENTS"):
            await admin.list_reassignments().all()
    chosen = kip_240(list_key=4000, describe_key=3000)
    for implemented_only in (False, True):
        async with (
            five(dialect=chosen, implemented_only=implemented_only) as mock,
            admin_of(mock, chosen) as admin,
        ):
            assert await keys(mock) == {4000, 3000}
            await reassign(admin, [3])
            started = await only(admin)
            assert await admin.describe_reassignments([started]).get(started) is not None
            entries = {entry.api_key for entry in mock.journal.select(direction="response")}
            assert {4000, 3000, 45} <= entries


@pytest.mark.requirement("A-22", "A-02")
async def test_a_listener_of_several_dialects_answers_them_where_the_profile_has_them() -> None:
    async with five(dialect="auto", implemented_only=True) as mock, admin_of(mock) as admin:
        await reassign(admin, [3])
        started = await only(admin)
        assert await admin.describe_reassignments([started]).get(started) is not None
        assert {e.dialect for e in mock.journal.select(api=32241)} == {"kip-240"}
        assert {e.dialect for e in mock.journal.select(api=45)} == {"kafka"}
    async with five(dialect="auto", profile="kafka-4.1") as mock:
        assert not {32240, 32241} & mock.served.keys()


@pytest.mark.requirement("A-22")
def test_keys_that_cannot_be_had() -> None:
    assert kip_240() is kproto.dialect("kip-240")
    assert kip_240(list_key=4000) is kip_240(list_key=4000)
    assert sorted(set(kip_240(list_key=4000).apis) - set(kproto.dialect("kafka").apis)) == [
        4000, 32241,
    ]  # fmt: skip
    for keys in ((-1, 32241), (32768, 32241), (3, 32241), (32240, 46), (77777, 5)):
        with pytest.raises(UnknownNameError, match="is taken, or is not one of 0 to 32767"):
            kip_240(list_key=keys[0], describe_key=keys[1])
    with pytest.raises(UnknownNameError, match="cannot be that of both"):
        kip_240(list_key=4000, describe_key=4000)
