"""The drafts of KIP-455 on a socket: every byte of request and response made here by hand."""

from collections.abc import Sequence
from struct import pack
from typing import Any

import aiohttp
import pytest

import kproto
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.errors import ClusterError
from mockbroker.profiles import profile
from tests.mockbroker.grammar import array, frame, text
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

OLD, NEW = "kip-455-old", "kip-455-new"
BOTH = pytest.mark.parametrize("draft", [OLD, NEW])
DEFAULT_TIMEOUT = 60_000

Rows = Sequence[tuple[int, Sequence[int] | None]] | None
Asked = Sequence[tuple[str, Rows]] | None


def ints(values: Sequence[int] | None) -> bytes:
    return pack(">i", -1) if values is None else pack(f">i{len(values)}i", len(values), *values)


def alter_request(number: int, topics: Asked, timeout_ms: int = DEFAULT_TIMEOUT) -> bytes:
    def partitions(rows: Rows) -> bytes:
        if rows is None:
            return array(None)
        return array([pack(">i", index) + ints(replicas) for index, replicas in rows])

    body = None if topics is None else [text(name) + partitions(rows) for name, rows in topics]
    header = pack(">hhi", 45, 0, number) + text("acc")
    return frame(header + pack(">i", timeout_ms) + array(body))


def alter_response(number: int, *rows: tuple[int, str | None]) -> bytes:
    return frame(
        pack(">ii", number, 0) + array([pack(">h", code) + text(why) for code, why in rows])
    )


def list_request(
    number: int, filters: Sequence[Sequence[int] | None] | None, timeout_ms: int = DEFAULT_TIMEOUT
) -> bytes:
    body = array(None if filters is None else [ints(each) for each in filters])
    return frame(pack(">hhi", 46, 0, number) + text("acc") + pack(">i", timeout_ms) + body)


def list_response(
    number: int,
    topics: Sequence[tuple[str, Sequence[tuple[int, list[int], list[int]]]]],
    error: int = 0,
) -> bytes:
    rows = [
        text(name)
        + array([pack(">i", index) + ints(now) + ints(then) for index, now, then in each])
        for name, each in topics
    ]
    return frame(pack(">iih", number, 0, error) + text(None) + array(rows))


async def say(wire: Wire, request: bytes) -> bytes:
    wire.send(request)
    return await wire.receive()


def six(draft: str, *topics: str) -> MockCluster:
    return MockCluster(brokers=6, topics=topics or ["foo=1,2,3"], profile=draft, clock="manual")


@BOTH
@pytest.mark.requirement("K455-11", "K455-14", "K455-10", "A-47")
async def test_start_list_and_cancel_all(draft: str) -> None:
    async with six(draft) as mock, connect(mock) as wire:
        asked = alter_request(1, [("foo", [(0, [4, 5, 6])])])
        assert await say(wire, asked) == alter_response(1, (0, None))
        mock.join_isr("foo-0", 4)
        left = [5, 6] if draft == OLD else [4, 5, 6]
        expected = list_response(2, [("foo", [(0, [1, 2, 3, 4], left)])])
        assert await say(wire, list_request(2, None)) == expected
        assert await say(wire, alter_request(3, None)) == alter_response(3, (0, None))
        assert await say(wire, list_request(4, None)) == list_response(4, [])
        assert mock.cluster.topics.partition("foo", 0).replicas == (1, 2, 3, 4)


@BOTH
@pytest.mark.requirement("K455-12", "A-04")
async def test_a_null_stands_for_what_it_cancelled(draft: str) -> None:
    topics = ["foo=1,2/1,2/1,2", "bar=1,2/1,2", "idle=1,2"]
    async with six(draft, *topics) as mock, connect(mock) as wire:
        start: Asked = [("foo", [(2, [3]), (0, [3])]), ("bar", [(1, [3])])]
        assert await say(wire, alter_request(1, start)) == alter_response(1, *[(0, None)] * 3)
        # A topic's null covers two, an idle topic's none, one partition's its own.
        cancel: Asked = [("foo", None), ("idle", None), ("bar", [(1, None)])]
        assert await say(wire, alter_request(2, cancel)) == alter_response(2, *[(0, None)] * 3)
        assert await say(wire, alter_request(3, None)) == alter_response(3)
        assert mock.cluster.reassignments.list_ongoing(None).topics == ()


@BOTH
@pytest.mark.requirement("K455-12", "A-43")
async def test_empty_lists_are_not_nulls(draft: str) -> None:
    async with six(draft) as mock, connect(mock) as wire:
        await say(wire, alter_request(1, [("foo", [(0, [4])])]))
        assert await say(wire, alter_request(2, [])) == alter_response(2)
        assert await say(wire, alter_request(3, [("foo", [])])) == alter_response(3)
        refused = "The manual partition assignment includes an empty replica list."
        expected = alter_response(4, (39, refused))
        assert await say(wire, alter_request(4, [("foo", [(0, [])])])) == expected
        assert mock.cluster.topics.partition("foo", 0).reassigning


@BOTH
@pytest.mark.requirement("K455-22", "K455-23", "A-04", "A-41", "A-42")
async def test_each_position_has_its_own_error(draft: str) -> None:
    async with six(draft) as mock, connect(mock) as wire:
        rows: Rows = [(0, None), (0, [1, -1]), (0, [1, 1, 2]), (0, [1, 2, 99]), (9, [1]), (0, [4])]
        asked = alter_request(1, [("no", None), ("foo", rows), ("no", [(0, [1])])])
        header, body = mock.dialect.decode_response(
            await say(wire, asked), api_key=45, api_version=0
        )
        assert header.correlation_id == 1
        codes = [row.error_code for row in body.responses]  # type: ignore[attr-defined]
        assert codes == [3, 0, 39, 39, 39, 3, 0, 3]
        for row in body.responses:  # type: ignore[attr-defined]
            assert (row.error_string is None) == (row.error_code == 0)


@BOTH
@pytest.mark.requirement("K455-20", "K455-22", "K455-24", "K455-25", "A-05")
async def test_only_the_controller_answers(draft: str) -> None:
    async with six(draft, "foo=1,2/1,2") as mock, connect(mock, 2) as other:
        not_controller = (41, None)
        start = alter_request(1, [("foo", [(0, [3]), (1, [3])])])
        assert await say(other, start) == alter_response(1, not_controller, not_controller)
        assert await say(other, alter_request(2, None)) == alter_response(2, not_controller)
        assert await say(other, list_request(3, None)) == list_response(3, [], 41)
        assert mock.cluster.reassignments.list_ongoing(None).topics == ()
        mock.failover(2)
        assert await say(other, start) == alter_response(1, (0, None), (0, None))


@BOTH
@pytest.mark.requirement("K455-22", "K455-25", "A-05", "A-44")
async def test_recorded_in_time_or_not_at_all(draft: str) -> None:
    async with six(draft) as mock, connect(mock) as wire:
        start: Asked = [("foo", [(0, [4])])]
        assert await say(wire, alter_request(1, start, 0)) == alter_response(1, (7, None))
        assert await say(wire, alter_request(2, None, -1)) == alter_response(2, (7, None))
        assert await say(wire, list_request(3, None, 0)) == list_response(3, [], 7)
        assert not mock.cluster.topics.partition("foo", 0).reassigning
        # Recorded is enough: nothing has been moved by then.
        assert await say(wire, alter_request(4, start, 1)) == alter_response(4, (0, None))


@BOTH
@pytest.mark.requirement("A-06")
async def test_partition_ids_filter_over_all_topics(draft: str) -> None:
    async with six(draft, "b=1/1/1", "a=1/1") as mock, connect(mock) as wire:
        start: Asked = [("b", [(0, [2]), (1, [2]), (2, [2])]), ("a", [(0, [2]), (1, [2])])]
        await say(wire, alter_request(1, start))

        def rows(*indexes: int) -> list[tuple[int, list[int], list[int]]]:
            return [(index, [1], [2]) for index in indexes]

        assert await say(wire, list_request(2, [[2], [1, 9]])) == list_response(
            2, [("a", rows(1)), ("b", rows(1, 2))]
        )
        assert await say(wire, list_request(3, [[2]])) == list_response(3, [("b", rows(2))])
        for number, nothing in enumerate([[], [[]], [[9]]], 4):
            assert await say(wire, list_request(number, nothing)) == list_response(number, [])


@pytest.mark.requirement("A-07")
async def test_null_partition_ids_are_everything_in_the_newer_draft_only() -> None:
    async with six(NEW) as mock, connect(mock) as wire:
        await say(wire, alter_request(1, [("foo", [(0, [4])])]))
        expected = list_response(2, [("foo", [(0, [1, 2, 3], [4])])])
        assert await say(wire, list_request(2, [[7], None])) == expected
    async with six(OLD) as mock, connect(mock) as wire:
        wire.send(list_request(3, [None]))
        assert await wire.closed() == b""


@pytest.mark.requirement("K455-35", "K455-44")
async def test_metadata_shows_replicas_grow_one_by_one() -> None:
    async with six(NEW) as mock, connect(mock, 5) as other:

        async def replicas() -> list[int]:
            answer = await other.ask("Metadata", 8, name="foo")
            assert answer.controller_id == 1
            nodes: list[int] = answer.topics[0].partitions[0].replica_nodes
            return nodes

        async with connect(mock) as wire:
            await say(wire, alter_request(1, [("foo", [(0, [4, 5, 6])])]))
        seen = [await replicas()]
        for broker in (4, 5, 6):
            mock.join_isr("foo-0", broker)
            seen.append(await replicas())
        assert seen == [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [4, 5, 6]]


@BOTH
@pytest.mark.requirement("A-02", "K455-34")
async def test_the_profile_is_the_release_of_its_day_and_the_drafts_keys(draft: str) -> None:
    async with six(draft) as mock, connect(mock) as wire:
        answer = await wire.ask("ApiVersions", 2)
        rows = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        assert {key: rows[key] for key in (3, 4, 43, 45, 46)} == {
            3: (0, 8), 4: (0, 3), 43: (0, 0), 45: (0, 0), 46: (0, 0),
        }  # fmt: skip
        # Nothing else is bumped.
        of_its_day = profile("kafka-2.3").versions
        assert {key: row for key, row in rows.items() if key not in (4, 45, 46)} == {
            key: (each.lowest, each.highest) for key, each in of_its_day.items() if key != 4
        }


@pytest.mark.requirement("A-02", "K455-12")
async def test_a_released_request_is_no_request_of_the_draft() -> None:
    async with six(NEW) as mock, connect(mock) as wire:
        wire.send(released(request_of("ListPartitionReassignments", topics=None), 1))
        assert await wire.closed() == b""
        assert [entry.event for entry in mock.journal.select(api=46)] == ["malformed"]


def released(body: Any | Any, number: int) -> bytes:
    return kproto.encode_request(body, api_version=0, correlation_id=number, client_id="acc")


@pytest.mark.parametrize("name", [OLD, NEW, "kafka-4.1"])
@pytest.mark.requirement("A-02", "C-07")
async def test_auto_answers_each_request_in_its_own_dialect(name: str) -> None:
    async with (
        MockCluster(6, topics=["foo=1,2,3"], profile=name, dialect="auto") as mock,
        connect(mock) as wire,
    ):
        wire.send(alter_request(1, [("foo", [(0, [4, 5, 6])])]))
        assert await wire.receive() == alter_response(1, (0, None))
        wire.send(released(request_of("ListPartitionReassignments", topics=None), 2))
        _, listed = kproto.decode_response(await wire.receive(), api_key=46, api_version=0)
        (row,) = listed.topics[0].partitions  # type: ignore[attr-defined]
        assert (row.adding_replicas, row.removing_replicas) == ([4, 5, 6], [1, 2, 3])
        change = request_of(
            "AlterPartitionReassignments", name="foo", partition_index=0, replicas=[5, 6]
        )
        wire.send(released(change, 3))
        _, answer = kproto.decode_response(await wire.receive(), api_key=45, api_version=0)
        assert answer.responses[0].partitions[0].error_code == 0  # type: ignore[attr-defined]
        current = {"kafka-4.1": [5, 6, 1, 2, 3, 4]}.get(name, [1, 2, 3])
        expected = list_response(4, [("foo", [(0, current, [5, 6])])])
        assert await say(wire, list_request(4, None)) == expected
        answers = mock.journal.select(direction="response")
        dialects = [entry.dialect for entry in answers if entry.api_key in (45, 46)]
        assert dialects == [NEW, "kafka", "kafka", NEW]


@pytest.mark.requirement("A-41")
async def test_cancelling_nothing_is_an_error_of_released_brokers_in_any_dialect() -> None:
    async with (
        MockCluster(6, topics=["foo=1,2,3"], profile="kafka-4.1", dialect="auto") as mock,
        connect(mock) as wire,
    ):
        asked = alter_request(1, [("foo", [(0, None)])])
        assert await say(wire, asked) == alter_response(1, (85, None))


@pytest.mark.requirement("A-02")
async def test_the_control_port_decodes_each_entry_in_its_dialect() -> None:
    async with six(NEW) as plain, connect(plain) as wire:
        await say(wire, alter_request(1, None))
        expected = [{"timeoutMs": 60000, "topics": None}, {"throttleTimeMs": 0, "responses": []}]
        assert await bodies_shown(plain) == expected
    async with MockCluster(profile=NEW, dialect="auto") as auto, connect(auto) as wire:
        await say(wire, alter_request(1, None))
        assert await bodies_shown(auto) == expected


async def bodies_shown(mock: MockCluster) -> list[object]:
    """What the control port's journal says the requests and responses of 45 hold."""
    control = ControlServer(mock)
    await control.start()
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
            session.get(control.url + "/journal?api=45") as response,
        ):
            return [row["body"] for row in await response.json()]
    finally:
        await control.stop()


async def test_known_answers_keep_their_dialect() -> None:
    async with MockCluster(dialect="auto") as mock, connect(mock) as wire:
        for _ in range(3):
            await wire.ask("ApiVersions", 2)
        noted = {entry.dialect for entry in mock.journal.select(api=18)}
        assert noted == {"kafka"}


def test_a_near_miss_of_a_drafts_name_names_the_drafts() -> None:
    with pytest.raises(kproto.KprotoError, match=r"; proposals: .*kip-455-old, kip-455-new"):
        MockCluster(profile="kip-455")


def test_the_profile_chooses_the_machine() -> None:
    for name in (OLD, NEW):
        mock = MockCluster(profile=name)
        assert (mock.profile.reassignment, mock.dialect.name) == (name, name)
    with pytest.raises(ClusterError, match="45"):
        MockCluster(profile=NEW, apis={45: kproto.schema.versions.Versions(0, 1)})
