"""Fetch sessions: what ids and epochs mean, what an incremental answer lists, who has to go."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import (
    FOO,
    append,
    ask,
    begin,
    decoded,
    request,
    rows,
)

BAR = ("bar", 0)
_MAX_EPOCH = 2**31 - 1


class Client:
    """A client with a session, by topic name."""

    def __init__(self, cluster: Cluster | None = None, version: int = 12) -> None:
        self.cluster = cluster or Cluster(3, topics=["foo=1,2", "bar=1,2"])
        self.broker = DirectBroker(self.cluster)
        self.version = version
        self.session = (0, 0)

    def ask(self, offsets: Any, **fields: Any) -> Any:
        answer = ask(self.broker, offsets, self.version, session=self.session, **fields)
        if answer.error_code == 0:
            epoch = self.session[1] + 1 if self.session[1] < _MAX_EPOCH else 1
            self.session = (answer.session_id, epoch)
        return answer

    def listed(self, offsets: Any, **fields: Any) -> list[tuple[str, int]]:
        """The partitions that an answer lists."""
        return list(rows(self.ask(offsets, **fields)))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.requirement("DP-SESSION-02", "DP-SESSION-07", "DP-SESSION-12")
def test_an_incremental_answer_has_only_news(client: Client) -> None:
    append(client.cluster, b"a")
    assert client.listed({FOO: 0, BAR: 0}) == [FOO, BAR]
    session_id, epoch = client.session
    assert session_id > 0
    assert epoch == 1
    assert Client().ask({FOO: 0}).session_id == session_id, "the source of ids is seeded"
    assert client.listed({FOO: 1}) == []
    append(client.cluster, b"b", tp=BAR)
    assert client.listed({}) == [BAR], "records"
    assert client.listed({}) == [BAR], "records again: it has not moved on"
    assert client.listed({BAR: 1}) == []
    append(client.cluster, b"c")
    assert client.listed({FOO: 2}) == [FOO], "another high watermark"
    assert client.listed({}) == []
    client.cluster.logs.advance_start("test", FOO, 1)
    assert client.listed({}) == [FOO], "another start"
    assert client.listed({}) == []


@pytest.mark.requirement("DP-SESSION-07")
def test_an_error_is_told_each_time_and_its_end_too(client: Client) -> None:
    client.ask({FOO: 1})
    for _ in range(2):
        assert rows(client.ask({}))[FOO].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    append(client.cluster, b"a")
    found = rows(client.ask({}))[FOO]
    assert (found.error_code, found.high_watermark, found.records) == (0, 1, b"")
    assert client.listed({}) == []


@pytest.mark.requirement("DP-SESSION-06")
def test_partitions_are_added_and_forgotten(client: Client) -> None:
    assert client.listed({FOO: 0}) == [FOO]
    assert client.listed({BAR: 0}) == [BAR]
    append(client.cluster, b"a")
    append(client.cluster, b"b", tp=BAR)
    assert client.listed({}, forget=(FOO,)) == [BAR]
    session_id = client.session[0]
    answer = client.ask({}, forget=(BAR, ("never", 0)))
    assert (answer.session_id, answer.responses) == (0, [])
    gone = ask(client.broker, {}, session=(session_id, 3))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.requirement("DP-SESSION-06")
def test_epochs_count_up_and_begin_again(client: Client) -> None:
    client.ask({FOO: 0})
    (session,) = client.cluster.fetches.sessions(1)
    session.epoch = _MAX_EPOCH
    client.session = (session.session_id, _MAX_EPOCH)
    assert client.ask({}).error_code == 0
    assert session.epoch == 1
    assert client.ask({}).error_code == 0


@pytest.mark.requirement("DP-SESSION-01", "DP-SESSION-02")
@pytest.mark.parametrize(("epoch", "opens"), [(-1, False), (0, True)])
def test_a_full_fetch_ends_the_session_that_it_names(client, epoch, opens):
    client.ask({FOO: 0})
    first, _ = client.session
    answer = ask(client.broker, {BAR: 0}, session=(first, epoch))
    assert list(rows(answer)) == [BAR]
    assert [each.session_id for each in client.cluster.fetches.sessions(1)] == (
        [answer.session_id] if opens else []
    )
    assert bool(answer.session_id) is opens


@pytest.mark.requirement("DP-SESSION-03", "DP-SESSION-04", "DP-SESSION-10")
def test_a_session_is_known_by_its_broker_id_and_epoch(client: Client) -> None:
    client.ask({FOO: 0})
    session_id, _ = client.session
    not_found, wrong_epoch = 70, 71
    for session, broker_id, code in (
        ((session_id + 1, 1), 1, not_found),
        ((0, 1), 1, not_found),
        ((session_id, 1), 2, not_found),
        ((session_id, 2), 1, wrong_epoch),
        ((session_id, -2), 1, wrong_epoch),
        ((session_id, 1), 1, 0),
        ((session_id, 1), 1, wrong_epoch),
    ):
        answer = ask(client.broker, {}, session=session, broker_id=broker_id)
        assert answer.error_code == code
        if code:
            assert (answer.session_id, answer.responses) == (0, [])
    Operations(client.cluster).stop_broker(1)
    Operations(client.cluster).start_broker(1)
    assert ask(client.broker, {}, session=(session_id, 2)).error_code == not_found


@pytest.mark.requirement("DP-CTL-38")
def test_a_tester_expires_sessions(client: Client) -> None:
    fetches = client.cluster.fetches
    client.ask({FOO: 0})
    assert [broker_id for broker_id, _ in fetches.all_sessions()] == [1]
    assert fetches.expire_sessions(2) == 0
    assert fetches.expire_sessions() == 1
    assert client.ask({}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.requirement("DP-SESSION-05")
@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_session_stays_by_name_or_by_id(client: Client, first: int, then: int) -> None:
    ids = {"foo": client.cluster.topics["foo"].topic_id}
    opened = ask(client.broker, {FOO: 0}, first, session=(0, 0), ids=ids if first >= 13 else None)
    session = (opened.session_id, 1)
    answer = ask(client.broker, {}, then, session=session, ids=ids if then >= 13 else None)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert ask(client.broker, {}, first, session=session).error_code == 0


@pytest.mark.requirement("DP-SESSION-11")
def test_an_unknown_topic_id_is_looked_up_again() -> None:
    wanted = uuid.UUID(int=77)
    made = iter([uuid.UUID(int=1), wanted, uuid.UUID(int=2)])
    cluster = simulated_cluster(1, topics=["foo=1"], new_topic_id=lambda: next(made))
    broker, ids = DirectBroker(cluster), {"bar": wanted}
    opened = ask(broker, {BAR: 0}, 13, session=(0, 0), ids=ids)
    session_id = opened.session_id

    def code(epoch: int) -> int:
        (topic,) = ask(broker, {}, 13, session=(session_id, epoch), ids=ids).responses
        assert topic.topic_id == wanted
        return topic.partitions[0].error_code

    assert code(1) == ErrorCode.UNKNOWN_TOPIC_ID
    cluster.topics.add("bar=1")
    assert code(2) == 0
    cluster.topics.delete([("bar", uuid.UUID(int=0))])
    assert code(3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.topics.add("bar=1")
    assert code(4) == ErrorCode.INCONSISTENT_TOPIC_ID


@pytest.mark.requirement("DP-SESSION-08")
async def test_the_epoch_may_move_while_a_fetch_waits(client: Client) -> None:
    client.ask({FOO: 0})
    session_id, _ = client.session
    outcome = begin(client.broker, request({}, session=(session_id, 1), max_wait_ms=3_600_000))
    assert not isinstance(outcome, bytes)
    (session,) = client.cluster.fetches.sessions(1)
    assert session.epoch == 2
    ask(client.broker, {}, session=(session_id, 2))
    append(client.cluster, b"a")
    answer = decoded(client.broker, await outcome)
    assert (answer.error_code, answer.session_id, answer.responses) == (71, session_id, [])


@pytest.mark.requirement("DP-FETCH-09")
@pytest.mark.parametrize("release", [(2, 8), (4, 4)])
def test_partitions_take_turns(release: tuple[int, int]) -> None:
    client = Client(simulated_cluster(1, topics=["foo=1", "bar=1"], release=release))
    for tp in (FOO, BAR):
        append(client.cluster, b"1", tp=tp)
    client.ask({FOO: 0, BAR: 0}, max_bytes=1)
    turns = []
    for _ in range(4):
        (only,) = client.listed({}, max_bytes=1)
        turns.append(only)
    assert turns == [FOO, BAR, FOO, BAR]


@pytest.mark.requirement("DP-FETCH-09")
@pytest.mark.parametrize(("release", "second"), [((2, 8), FOO), ((3, 0), BAR)])
def test_a_partition_without_records_keeps_its_turn(release, second):
    """Since 3.0. ``BAR`` is answered for its high watermark alone."""
    cluster = simulated_cluster(1, topics=["foo=1/1/1", "bar=1"], release=release)
    client = Client(cluster)
    append(cluster, b"1")
    client.ask({FOO: 0, BAR: 0})
    append(cluster, b"1", tp=BAR)
    assert set(client.listed({}, max_bytes=1)) == {FOO, BAR}
    assert client.listed({}, max_bytes=1) == [second]


@pytest.mark.requirement("DP-FETCH-01")
def test_a_zero_topic_id_is_unknown(client: Client) -> None:
    broker = DirectBroker(client.cluster)
    (topic,) = broker.ask(request({FOO: 0}, ids={"foo": ZERO_UUID}), 13).responses
    assert [row.error_code for row in topic.partitions] == [100]


# ---- room ----------------------------------------------------------------------------------------


def limited(slots: int) -> Cluster:
    config = {"max.incremental.fetch.session.cache.slots": str(slots)}
    return simulated_cluster(1, topics=["foo=1/1/1", "bar=1"], broker_configs=config)


def opened(cluster: Cluster, partitions: int, replica_id: int = -1) -> int:
    offsets = {("foo", index): 0 for index in range(partitions)}
    broker = DirectBroker(cluster)
    return ask(broker, offsets, session=(0, 0), replica_id=replica_id).session_id


@pytest.mark.requirement("DP-SESSION-09")
def test_a_broker_without_room_gives_no_session() -> None:
    cluster = limited(0)
    assert opened(cluster, 1) == 0


@pytest.mark.requirement("DP-SESSION-09")
def test_unused_sessions_go_first() -> None:
    cluster = limited(2)
    first, second = opened(cluster, 3), opened(cluster, 1)
    assert opened(cluster, 3) == 0, "both are young"
    cluster.turns.advance(60_000)
    assert ask(DirectBroker(cluster), {}, session=(second, 1)).error_code == 0
    cluster.turns.advance(60_001)
    assert opened(cluster, 1) > 0
    left = [each.session_id for each in cluster.fetches.sessions(1)]
    assert first not in left
    assert second in left


@pytest.mark.requirement("DP-SESSION-09")
def test_fewer_partitions_give_way_to_more() -> None:
    cluster = limited(2)
    sessions = [opened(cluster, 2), opened(cluster, 1)]
    cluster.turns.advance(120_001)
    for session_id in sessions:
        ask(DirectBroker(cluster), {}, session=(session_id, 1))
    assert opened(cluster, 1) == 0, "no more than it has"
    assert opened(cluster, 2) > 0
    left = [each.session_id for each in cluster.fetches.sessions(1)]
    assert (sessions[0] in left, sessions[1] in left) == (True, False)


@pytest.mark.requirement("DP-SESSION-09")
def test_clients_give_way_to_brokers_and_not_the_other_way() -> None:
    cluster = limited(1)
    opened(cluster, 3)
    privileged = opened(cluster, 1, replica_id=1)
    assert privileged > 0
    assert opened(cluster, 3) == 0
    cluster.turns.advance(120_001)
    ask(DirectBroker(cluster), {}, session=(privileged, 1), replica_id=1)
    assert opened(cluster, 3) == 0
    assert opened(cluster, 2, replica_id=1) > 0


# ---- incremental answers tell as much as full ones -----------------------------------------------

_PARTITIONS = (FOO, ("foo", 1), BAR)
_STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(_PARTITIONS), st.integers(1, 3)),
    st.tuples(st.just("start"), st.sampled_from(_PARTITIONS), st.integers(0, 4)),
    st.tuples(st.just("seek"), st.sampled_from(_PARTITIONS), st.integers(0, 6)),
    st.tuples(st.just("forget"), st.sampled_from(_PARTITIONS), st.just(0)),
    st.tuples(st.just("hold"), st.sampled_from(_PARTITIONS), st.just(0)),
    st.tuples(st.just("release"), st.sampled_from(_PARTITIONS), st.just(0)),
    st.tuples(st.just("leave"), st.sampled_from(_PARTITIONS), st.just(0)),
    st.tuples(st.just("fetch"), st.just(FOO), st.just(0)),
)


@pytest.mark.requirement("DP-SESSION-06", "DP-SESSION-07")
@given(st.lists(_STEPS, max_size=40))
def test_incremental_answers_tell_what_full_ones_do(steps: list[Any]) -> None:
    client = Client(Cluster(2, topics=["foo=1,2/1,2", "bar=1,2"]))
    cluster, broker = client.cluster, client.broker
    wanted: dict[tuple[str, int], int] = {}
    told: dict[tuple[str, int], Any] = {}
    changed: set[tuple[str, int]] = set()
    forgotten: set[tuple[str, int]] = set()

    def fetch() -> None:
        offsets = {tp: wanted[tp] for tp in wanted if tp in changed}
        answer = client.ask(offsets, forget=tuple(sorted(forgotten)))
        assert answer.error_code == 0
        if not answer.session_id:
            client.session = (0, 0)
            changed.update(wanted)
        else:
            changed.clear()
        forgotten.clear()
        news = rows(answer)
        told.update(news)
        full = rows(ask(broker, wanted))
        for tp, expected in full.items():
            if tp in news:
                assert news[tp] == expected
            else:
                # Not listed: no records, and nothing else than before.
                assert (expected.error_code, expected.records) == (0, b"")
                assert told[tp].high_watermark == expected.high_watermark
                assert told[tp].log_start_offset == expected.log_start_offset

    for kind, tp, number in (*steps, ("fetch", FOO, 0)):
        if kind == "append":
            append(cluster, *[b"x"] * number, tp=tp)
        elif kind == "start":
            cluster.logs.advance_start("test", tp, number)
        elif kind == "seek":
            wanted[tp] = number
            changed.add(tp)
            forgotten.discard(tp)
        elif kind == "forget" and wanted.pop(tp, None) is not None:
            changed.discard(tp)
            told.pop(tp, None)
            forgotten.add(tp)
        elif kind == "hold":
            cluster.logs.hold_replication(tp, None)
        elif kind == "release":
            cluster.logs.release_replication(tp, None)
        elif kind == "leave":
            Operations(cluster).leave_isr(tp, 2)
        elif kind == "fetch" and wanted:
            fetch()
