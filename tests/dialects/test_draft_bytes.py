"""The drafts' messages, byte by byte. Written by hand from the field tables of the pages.

Drafts are not flexible: request header version 1, response header version 0, int32 counts and
int16 lengths. Spaces part the fields.
"""

import json
from typing import Any

import pytest

import kproto
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from mockbroker import MockCluster
from tests.mockbroker.wire import connect

BOTH = pytest.mark.parametrize("name", ["kip-455-old", "kip-455-new"])
NULL = "ffffffff"
CLIENT = "0003 616363"
FOO = "0003 666f6f"


def ints(*numbers: int) -> str:
    return " ".join(f"{each & 0xFFFFFFFF:08x}" for each in (len(numbers), *numbers))


def framed(text: str) -> bytes:
    data = bytes.fromhex(text)
    return len(data).to_bytes(4, "big") + data


def request(key: int, version: int, body: str) -> bytes:
    return framed(f"{key:04x} {version:04x} 00000007 {CLIENT} {body}")


def response(body: str) -> bytes:
    return framed(f"00000007 {body}")


def read(name: str, frame: bytes) -> Any:
    """The request's body, after writing it has given the same bytes."""
    dialect = kproto.dialect(name)
    header, body = dialect.decode_request(frame)
    assert (header.correlation_id, header.client_id) == (7, "acc")
    again = dialect.encode_request(
        body, api_version=header.request_api_version, correlation_id=7, client_id="acc"
    )
    assert again.hex() == frame.hex()
    return body


def answered(name: str, key: int, frame: bytes) -> Any:
    dialect = kproto.dialect(name)
    header, body = dialect.decode_response(frame, api_key=key, api_version=0)
    assert header.correlation_id == 7
    assert dialect.encode_response(body, api_version=0, correlation_id=7).hex() == frame.hex()
    return body


# ---- KIP-455: 45 and 46 --------------------------------------------------------------------------


def alter(topics: str, timeout: str = "0000ea60") -> bytes:
    return request(45, 0, f"{timeout} {topics}")


def alter_class(name: str) -> tuple[Any, Any, Any]:
    dialect = kproto.dialect(name)
    found = "Assignments" if name == "kip-455-old" else "Reassignments"
    message = f"AlterPartition{found}Request"
    return (
        dialect.message(message),
        dialect.message(f"{message}.ReassignableTopic"),
        dialect.message(f"{message}.ReassignablePartition"),
    )


@BOTH
@pytest.mark.requirement("K455-02", "K455-11", "A-01", "A-03")
def test_alter_request(name: str) -> None:
    asked, topic, partition = alter_class(name)
    rows = f"00000002 00000000 {ints(4, 5, 6)} 00000001 {NULL}"
    assert read(name, alter(f"00000001 {FOO} {rows}", "000004d2")) == asked(
        timeout_ms=1234,
        topics=[
            topic(
                name="foo",
                partitions=[
                    partition(partition_index=0, replicas=[4, 5, 6]),
                    partition(partition_index=1, replicas=None),
                ],
            )
        ],
    )


@BOTH
@pytest.mark.requirement("K455-12")
def test_null_and_empty_at_each_level(name: str) -> None:
    asked, topic, partition = alter_class(name)
    row = f"00000001 {FOO} 00000001 00000000"
    bodies = {
        alter(NULL): None,
        alter("00000000"): [],
        alter(f"00000001 {FOO} {NULL}"): [topic(name="foo", partitions=None)],
        alter(f"00000001 {FOO} 00000000"): [topic(name="foo", partitions=[])],
        alter(f"{row} {NULL}"): [topic(name="foo", partitions=[partition(replicas=None)])],
        alter(f"{row} 00000000"): [topic(name="foo", partitions=[partition(replicas=[])])],
    }
    for frame, topics in bodies.items():
        assert read(name, frame) == asked(topics=topics)
    assert len(bodies) == 6


@BOTH
@pytest.mark.requirement("K455-13")
def test_the_time_out_by_default(name: str) -> None:
    asked, _, _ = alter_class(name)
    assert asked().encode(0).hex().startswith("0000ea60")
    listing = kproto.dialect(name).message("ListPartitionReassignmentsRequest")
    assert listing().encode(0).hex().startswith("0000ea60")


@BOTH
@pytest.mark.requirement("K455-11", "A-04", "A-05")
def test_alter_response_is_a_flat_list(name: str) -> None:
    body = answered(name, 45, response("00000005 00000002 0000 ffff 0027 0003 626164"))
    assert json.loads(body.to_json(0)) == {
        "throttleTimeMs": 5,
        "responses": [
            {"errorCode": 0, "errorString": None},
            {"errorCode": 39, "errorString": "bad"},
        ],
    }


@BOTH
@pytest.mark.requirement("K455-07", "K455-14", "A-06")
def test_list_request_names_no_topic(name: str) -> None:
    assert read(name, request(46, 0, f"0000ea60 {NULL}")).topics is None
    body = read(name, request(46, 0, f"0000ea60 00000002 {ints(0, 7)} {ints()}"))
    assert [each.partition_ids for each in body.topics] == [[0, 7], []]


@pytest.mark.requirement("A-07")
def test_null_partition_ids_are_of_the_newer_revision() -> None:
    frame = request(46, 0, f"0000ea60 00000001 {NULL}")
    assert read("kip-455-new", frame).topics[0].partition_ids is None
    old = kproto.dialect("kip-455-old")
    with pytest.raises(DecodeError, match="partition_ids"):
        old.decode_request(frame)
    row = old.message("ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics")
    with pytest.raises(EncodeError, match="null"):
        old.message("ListPartitionReassignmentsRequest")(topics=[row(partition_ids=None)]).encode(0)


@BOTH
@pytest.mark.requirement("K455-10", "K455-14")
def test_list_response(name: str) -> None:
    rows = f"00000001 {FOO} 00000001 00000002 {ints(1, 2, 3, 4)} {ints(4, 5, 6)}"
    body = answered(name, 46, response(f"00000000 0000 ffff {rows}"))
    (row,) = body.topics[0].partitions
    assert (body.topics[0].name, row.partition_id) == ("foo", 2)
    assert (row.current_replicas, row.target_replicas) == ([1, 2, 3, 4], [4, 5, 6])


# ---- KIP-455: LeaderAndIsr -----------------------------------------------------------------------

STATE = f"00000002 00000001 00000001 00000005 {ints(1, 2)} 00000009 {ints(1, 2, 3)}"
"""Partition, controller epoch, leader, leader epoch, ISR, znode version, replicas."""
LIVE = "00000001 00000001 0001 68 00002384"
CONTROLLER = "00000001 00000003"


def by_topic(state: str) -> str:
    return f"{CONTROLLER} 000000000000000b 00000001 {FOO} 00000001 {state} {LIVE}"


def leader_and_isr(version: int, target: str = "") -> bytes:
    bodies = {
        0: f"{CONTROLLER} 00000001 {FOO} {STATE} {LIVE}",
        1: f"{CONTROLLER} 00000001 {FOO} {STATE} 01 {LIVE}",
        2: by_topic(f"{STATE} 01"),
        3: by_topic(f"{STATE} {target} 01"),
    }
    return request(4, version, bodies[version])


@BOTH
@pytest.mark.requirement("K455-15")
def test_target_replicas_stand_between_replicas_and_is_new(name: str) -> None:
    some, none = leader_and_isr(3, ints(4, 5, 6)), leader_and_isr(3, NULL)
    assert len(some) - len(none) == 12
    for frame, target in ((some, [4, 5, 6]), (none, None)):
        state = read(name, frame).topic_states[0].partition_states[0]
        assert (state.replicas, state.target_replicas, state.is_new) == ([1, 2, 3], target, True)


@BOTH
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.requirement("K455-16")
def test_versions_before_the_draft_keep_their_bytes(name: str, version: int) -> None:
    for dialect, ungrouped in (
        (name, "partition_states_v0"),
        ("kafka", "ungrouped_partition_states"),
    ):
        body = read(dialect, leader_and_isr(version))
        grouped = version == 2
        (state,) = body.topic_states[0].partition_states if grouped else getattr(body, ungrouped)
        assert (state.partition_index, state.leader_epoch) == (2, 5)
        assert (state.replicas, state.is_new) == ([1, 2, 3], version > 0)


@pytest.mark.requirement("K455-17", "A-02")
def test_what_shipped_has_two_lists_and_no_null() -> None:
    both = f"{ints(4, 5, 6)} {ints(1, 2, 3)}"
    state = read("kafka", leader_and_isr(3, both)).topic_states[0].partition_states[0]
    assert (state.adding_replicas, state.removing_replicas) == ([4, 5, 6], [1, 2, 3])
    for name, frame in (("kip-455-new", both), ("kafka", ints(4, 5, 6)), ("kafka", NULL)):
        with pytest.raises(DecodeError):
            kproto.dialect(name).decode_request(leader_and_isr(3, frame))


@BOTH
@pytest.mark.requirement("A-38")
def test_a_target_is_left_out_where_a_version_has_no_room_for_it(name: str) -> None:
    body = read(name, leader_and_isr(3, ints(4, 5, 6)))
    assert body.encode(2).hex() == leader_and_isr(2)[-len(body.encode(2)) :].hex()
    state = kproto.dialect(name).message("LeaderAndIsrRequest.LeaderAndIsrPartitionState")
    assert state().target_replicas is None


# ---- KIP-860 -------------------------------------------------------------------------------------

COMPACT_ROWS = "02 04666f6f 02 00000000 02 00000004 00 00"


def compact(version: int, body: str) -> bytes:
    return framed(f"002d {version:04x} 00000007 {CLIENT} 00 {body} 00")


@pytest.mark.parametrize("name", ["kip-860", "kafka"])
@pytest.mark.requirement("K860-05", "A-35", "A-36")
def test_version_1_carries_the_flag_and_version_0_its_old_bytes(name: str) -> None:
    asked = kproto.dialect(name).message("AlterPartitionReassignmentsRequest")
    assert asked().allow_replication_factor_change is True
    frames = {
        compact(0, f"0000ea60 {COMPACT_ROWS}"): True,
        compact(1, f"0000ea60 01 {COMPACT_ROWS}"): True,
        compact(1, f"0000ea60 00 {COMPACT_ROWS}"): False,
    }
    for frame, allowed in frames.items():
        body = read(name, frame)
        assert body.allow_replication_factor_change is allowed
        assert body.topics[0].partitions[0].replicas == [4]
    with pytest.raises(UnsupportedVersionError, match="allowReplicationFactorChange at version 0"):
        asked(allow_replication_factor_change=False).encode(0)


@pytest.mark.parametrize("name", ["kip-860", "kafka"])
@pytest.mark.requirement("K860-05", "A-36")
def test_the_response_carries_it_too_and_an_older_one_leaves_it_out(name: str) -> None:
    answer = kproto.dialect(name).message("AlterPartitionReassignmentsResponse")
    body = answer(error_code=41, error_message=None, allow_replication_factor_change=False)
    assert body.encode(1).hex() == "00000000000029000100"
    assert body.encode(0).hex() == "000000000029000100"
    assert answer.decode(body.encode(1), 1) == body
    assert answer.decode(body.encode(0), 0).allow_replication_factor_change is True


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.requirement("A-37")
async def test_the_mock_repeats_the_flag_of_the_request(allowed: bool) -> None:
    flag = "01" if allowed else "00"
    async with MockCluster(brokers=4, topics=["foo=1,2"]) as mock, connect(mock) as wire:
        for rows in (COMPACT_ROWS, COMPACT_ROWS.replace("02 00000004", "00")):
            wire.send(compact(1, f"0000ea60 {flag} {rows}"))
            _, body = kproto.decode_response(await wire.receive(), api_key=45, api_version=1)
            assert body.allow_replication_factor_change is allowed  # type: ignore[attr-defined]


# ---- KIP-183 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kip-183", "kafka"])
@pytest.mark.requirement("K183-01", "A-27")
def test_an_election_names_partitions_or_all_and_then_its_time_out(name: str) -> None:
    assert read(name, request(43, 0, f"00000001 {FOO} {ints(0, 1)} 000003e8")).timeout_ms == 1000
    assert read(name, request(43, 0, f"{NULL} 000003e8")).topic_partitions is None
    with pytest.raises(DecodeError, match="timeout_ms"):
        kproto.dialect(name).decode_request(request(43, 0, f"00000001 {FOO} {ints(0, 1)}"))


@pytest.mark.requirement("A-27")
async def test_an_election_without_a_time_out_closes_the_connection() -> None:
    async with MockCluster(topics=["foo=1"], profile="kafka-2.2") as mock, connect(mock) as wire:
        wire.send(request(43, 0, f"00000001 {FOO} {ints(0)}"))
        assert await wire.closed() == b""


# ---- KIP-240 -------------------------------------------------------------------------------------


@pytest.mark.requirement("K240-01", "A-22", "A-25")
def test_listing_by_kip_240() -> None:
    body = read("kip-240", request(32240, 0, f"000003e8 00000001 {FOO} {ints(0, 1)}"))
    assert type(body).__name__ == "ListReassignmentsRequest"
    assert (body.timeout_ms, body.topic_partitions[0].partition_ids) == (1000, [0, 1])
    assert read("kip-240", request(32240, 0, f"000003e8 {NULL}")).topic_partitions is None
    rows = f"00000001 {FOO} 00000001 00000002 0000000100000002"
    listed = answered("kip-240", 32240, response(f"00000000 0003 0001 78 {rows}"))
    (row,) = listed.reassignments[0].topic_reassignments
    assert (listed.error_code, listed.error_message) == (3, "x")
    assert (row.partition_id, row.reassignment_id) == (2, (1 << 32) + 2)


@pytest.mark.requirement("K240-07", "K240-09", "K240-13", "A-22", "A-23", "A-25")
def test_describing_by_kip_240() -> None:
    rows = f"00000001 {FOO} 00000001 00000002 0000000100000002"
    body = read("kip-240", request(32241, 0, f"{rows} 000003e8"))
    assert type(body).__name__ == "DescribeReassignmentsRequest"
    assert body.timeout_ms == 1000
    assert body.topic_reassignments[0].reassignments[0].reassignment_id == (1 << 32) + 2
    assert read("kip-240", request(32241, 0, f"{NULL} 000003e8")).topic_reassignments is None
    unthrottled = "7fffffffffffffff"
    one = (
        f"0000000100000002 0000018000000000 00000003 {unthrottled} "
        f"00000002 00000004 {unthrottled} 00000005 00000000000f4240"
    )
    (row,) = answered("kip-240", 32241, response(f"00000000 0000 ffff 00000001 {one}")).descriptions
    assert (row.reassignment_id, row.start_time) == ((1 << 32) + 2, 0x180 << 32)
    assert (row.leader_id, row.leader_throttle) == (3, 2**63 - 1)
    assert [(new.broker_id, new.follower_throttle) for new in row.new_assigned] == [
        (4, 2**63 - 1),
        (5, 1_000_000),
    ]
