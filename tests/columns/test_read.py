"""Bad bodies, what is left of them, the limit, and what bodies may be; on either engine."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.workloads import WORKLOADS
from kproto.codec.classes import make_message_class
from kproto.columns import Selection, select
from kproto.errors import BodyError, DecodeError, LimitError
from kproto.messages import ApiVersionsResponse, HeartbeatRequest, MetadataResponse
from kproto.schema.load import parse_message
from tests.support import engines

METADATA = next(each for each in WORKLOADS if each.key == "b").body()
GOOD = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4)


@pytest.fixture(autouse=True, params=["pure", "native"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "native":
        engines.require_native()
    with engines.running(request.param):
        yield request.param


def metadata() -> Selection:
    return select(
        MetadataResponse,
        9,
        ["topics.name", "topics.is_internal", "topics.partitions.leader_id",
         "topics.partitions.replica_nodes", "cluster_id"],
    )  # fmt: skip


def test_the_buffers_are_arrows():
    table = metadata().read([METADATA, METADATA])
    assert (table.rows, len(table)) == (2000, 2000)
    assert memoryview(table.frame.data).cast("i").tolist() == [0] * 1000 + [1] * 1000
    name, internal, leader, replicas, cluster = table
    assert (name.format, len(name.offsets), len(name.data)) == ("u", 8004, 27 * 2000)
    assert (internal.format, internal.data) == ("b", bytes(250))
    assert (leader.format, len(leader.data)) == ("i", 8000)
    assert replicas.data is None
    assert replicas.child is not None
    assert replicas.child.data is not None
    assert (replicas.child.length, len(replicas.child.data)) == (6000, 24000)
    assert memoryview(replicas.offsets).cast("i").tolist() == list(range(0, 6001, 3))
    assert cluster.to_list() == ["Mk3OEYBSD34fcwNTJENDM2Qk"] * 2000
    assert all(column.validity is None for column in table)


def test_a_bad_body_is_named():
    selection = metadata()
    bad = METADATA[:-3]
    with pytest.raises(DecodeError) as alone:
        MetadataResponse.decode(bad, 9)
    with pytest.raises(BodyError) as caught:
        selection.read([METADATA, bad, METADATA[:5]])
    error = caught.value
    assert (error.index, error.offset, error.path) == (1, alone.value.offset, alone.value.path)
    assert error.problem == alone.value.problem
    assert str(error) == f"body 1: {alone.value}"


def test_bad_bodies_leave_nothing():
    """Cut off late: nearly all of its rows had been put into columns."""
    selection = metadata()
    whole = selection.read([METADATA])
    table = selection.read([METADATA[:-3], METADATA, METADATA + b"\0", b""], errors="collect")
    assert [error.index for error in table.errors] == [0, 2, 3]
    assert "bytes left over after the message: 1" in str(table.errors[1])
    assert table.frame.to_list() == [1] * 1000
    for one, other in zip(table, whole, strict=True):
        assert (one.validity, one.offsets, one.data) == (other.validity, other.offsets, other.data)


def test_nulls_of_a_bad_body_are_taken_back():
    selection = select(HeartbeatRequest, 4, ["group_instance_id", "group_id"])
    given = HeartbeatRequest(group_id="g", group_instance_id="i").encode(4)
    table = selection.read([given, GOOD + b"\0", given], errors="collect")
    assert (table["group_instance_id"].validity, table.rows) == (None, 2)
    table = selection.read([given, GOOD, GOOD + b"\0", given] * 3, errors="collect")
    assert table["group_instance_id"].to_list() == ["i", None, "i"] * 3
    assert table["group_instance_id"].validity == bytes([0b01101101, 0b1])
    assert table["group_instance_id"].null_count == 3


def test_no_bodies():
    table = metadata().read([])
    assert (table.rows, table.errors) == (0, ())
    assert [column.to_list() for column in table] == [[]] * 5
    assert table["topics.name"].offsets == bytes(4)


def test_the_limit_is_met_before_memory_is():
    """A name that repeats on each row: a body can ask for far more than its own size."""
    topic = MetadataResponse.STRUCTS["MetadataResponseTopic"]
    partition = MetadataResponse.STRUCTS["MetadataResponsePartition"]
    body = MetadataResponse(
        topics=[topic(name="n" * 30000, partitions=[partition()] * 100)]
    ).encode(9)
    selection = select(MetadataResponse, 9, ["topics.name", "topics.partitions.leader_id"])
    assert selection.read([body] * 2, limit=6_000_000).rows == 200
    with pytest.raises(LimitError, match="larger than 5999999 bytes") as caught:
        selection.read([body] * 2, limit=5_999_999)
    assert caught.value.index == 1
    # Bad bytes are bad, whatever they would have taken.
    table = selection.read([body, body[:-1], body[:50]], limit=4_000_000, errors="collect")
    assert [error.index for error in table.errors] == [1, 2]
    with pytest.raises(LimitError):
        selection.read([body[:-1], body], limit=2_000_000, errors="collect")


@pytest.mark.parametrize("path", ["api_keys.api_key", "error_code", "throttle_time_ms"])
def test_the_limit_to_the_byte(path):
    body = next(each for each in WORKLOADS if each.key == "a").body()
    selection = select(ApiVersionsResponse, 3, ["api_keys.max_version", path])
    assert selection.read([body], limit=240).rows == 60  # frame takes four bytes a row
    with pytest.raises(LimitError):
        selection.read([body], limit=239)


def test_flags_that_are_none():
    selection = metadata()
    with pytest.raises(ValueError, match="'raise' or 'collect'"):
        selection.read([], errors="ignore")
    for limit in (3, 2**31):
        with pytest.raises(ValueError, match="limit="):
            selection.read([], limit=limit)


def test_bodies_are_any_contiguous_buffer():
    selection = select(HeartbeatRequest, 4, ["group_id"])
    bodies = [bytearray(GOOD), memoryview(b"." + GOOD)[1:], GOOD]
    assert selection.read(iter(bodies)).to_pydict()["group_id"] == ["g"] * 3
    with pytest.raises(BufferError):
        selection.read([memoryview(GOOD + GOOD)[::2]])
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            selection.read([GOOD, wrong])
    with pytest.raises(TypeError):
        selection.read(5)
    with pytest.raises(BodyError, match="body 1"):
        selection.read([GOOD, bytearray(GOOD[:-1])])


def test_several_threads_share_a_selection():
    selection = metadata()
    expected = selection.read([METADATA]).to_pydict()
    found: list[Any] = []

    def read() -> None:
        found.extend(selection.read([METADATA]).to_pydict() == expected for _ in range(5))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_a_subclass_that_native_leaves_to_python():
    """Its own __post_init__ runs for each message, and what it does is in the columns."""

    class Louder(HeartbeatRequest):
        def __post_init__(self) -> None:
            self.group_id = self.group_id.upper()

    assert select(Louder, 4, ["group_id"]).read([GOOD])["group_id"].to_list() == ["G"]


def test_defaults_within_structs_that_may_be_missing():
    """What a missing value is depends on what is missing: the field, or a struct around it."""
    tagged = {"versions": "0+", "taggedVersions": "0+", "about": "."}
    inner = {"name": "Epoch", "type": "int32", "default": "5", "tag": 0, **tagged}
    outer = {"name": "Leader", "type": "Leader", "nullableVersions": "0+", "default": "null",
             "tag": 0, **tagged, "fields": [inner]}  # fmt: skip
    rows = {"name": "Rows", "type": "[]Row", "versions": "0+", "about": ".", "fields": [outer]}
    whole = {"name": "Nested", "type": "data", "validVersions": "0", "flexibleVersions": "0+"}
    cls = make_message_class(parse_message(json.dumps({**whole, "fields": [rows]})))
    row, leader = cls.STRUCTS["Row"], cls.STRUCTS["Leader"]
    values = [leader(epoch=7), None, leader(), None, leader(epoch=8), leader()]
    body = cls(rows=[row(leader=each) for each in values]).encode(0)
    table = select(cls, 0, ["rows.leader.epoch"]).read([body])
    assert table.columns[0].to_list() == [7, None, 5, None, 8, 5]
    assert table.columns[0].validity == bytes([0b110101])
