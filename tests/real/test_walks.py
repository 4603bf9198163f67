"""Random programs of the data plane without a real cluster: what is drawn, and how two sides are
compared.

That Kafka and the mock agree about them is ``test_data_plane``'s.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kproto.records import Compression, RecordBatches, TimestampType
from kproto.records.record_batch import HEADER_SIZE
from kproto.schema.versions import Versions
from tests.real.data.batches import batch, changed
from tests.real.data.clusters import data_mock
from tests.real.data.side import Cluster
from tests.real.programs.model import Program
from tests.real.walks.arena import Lane
from tests.real.walks.batches import batch_of
from tests.real.walks.generator import CONSUMER_GROUPS, walks
from tests.real.walks.stored import StoredLog, differing_batches, kafka_log

COUNT = 30


def drawn(seed: str = "a seed", count: int = COUNT) -> list[Program]:
    return walks(seed, 0, count, 40)


def test_a_seed_reproduces_its_programs_as_text_does() -> None:
    first = drawn()
    assert first == drawn()
    assert first != drawn("another")
    assert [Program.from_json(program.to_json()) for program in first] == first


def test_every_kind_of_step_is_drawn() -> None:
    kinds = Counter(step["do"] for program in drawn(count=100) for step in program.steps)
    assert kinds.keys() == {
        "create", "configs", "move", "produce", "init-producer", "producers", "fetch",
        "list-offsets", "delete-records", "epoch-ends", "join", "sync", "heartbeat", "leave",
        "commit", "committed", "delete-offsets", "delete-groups", "list-groups",
        "txn-init", "txn-add", "txn-produce", "txn-offsets", "txn-end", "txn-describe",
        "beat",
    }  # fmt: skip


def test_members_of_consumer_groups_join_stay_and_leave() -> None:
    steps = [step for each in drawn(count=100) for step in each.steps if step["do"] == "beat"]
    assert {step["how"] for step in steps} == {"join", "stay", "leave", "away"}
    assert {step.get("owned") for step in steps} == {
        "given", "owned", "less", "more", "nothing", None,
    }  # fmt: skip
    assert any("regex" in step for step in steps)
    assert any(step.get("instance") == "one" for step in steps)
    assert all(step["assignor"] != "uniform" for step in steps if step["how"] == "join")


def _batches() -> list[dict[str, Any]]:
    return [
        row[2]
        for program in drawn(count=100)
        for step in program.steps
        if step["do"] == "produce"
        for row in step["rows"]
    ]


def test_batches_are_whole_unless_they_are_damaged() -> None:
    damages: Counter[str] = Counter()
    for spec in _batches():
        damages[spec.get("damage", "none")] += 1
        data = batch_of(spec)
        assert data == batch_of(spec), "both sides get the same bytes"
        if "damage" not in spec:
            (batch,) = RecordBatches(data)
            assert len(batch.records()) == spec["records"]
    assert len(damages) == 12


@pytest.mark.parametrize("topic", ["b", "c"])
def test_topics_with_uncertain_sizes_or_watermarks_have_no_limits_there(topic: str) -> None:
    for program in drawn(count=100):
        for step in program.steps:
            if step["do"] != "fetch" or all(row[0] != topic for row in step["rows"]):
                continue
            assert "session" not in step
            if topic == "b":
                assert not step["broker"], "only the leader is asked"
            else:
                assert step["max_bytes"] == 50 << 20


# ---- two mocks -----------------------------------------------------------------------------------


async def _differences(first: str, second: str, program: Program) -> Sequence[Any]:
    """What two mocks of these profiles answer differently, up to the first step that shows one."""
    async with data_mock(first, walks=True) as left, data_mock(second, walks=True) as right:
        sides: list[Cluster] = []
        for mock in (left, right):
            addresses = {}
            for broker_id, address in mock.addresses.items():
                host, port = address.rsplit(":", 1)
                addresses[broker_id] = (host, int(port))
            sides.append(Cluster(addresses))
            await sides[-1].find_coordinator()
        served: dict[int, Versions] = {
            key: both
            for key, versions in left.served.items()
            if key in right.served and (both := versions.intersect(right.served[key]))
        }
        lane = Lane("walk", sides[0], sides[1], served, 5.0)
        try:
            await lane.prepare(program.steps)
            for step in program.steps:
                found = await lane.play(step)
                if found is not None:
                    return [found.step, *found.fields]
            assert lane.fields > 5 * lane.played
            return []
        finally:
            await lane.tidy()


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["kafka-3.9", "kafka-4.4"])
async def test_transactions_of_two_mocks_agree(profile: str) -> None:
    """Their producers have other ids on the other side."""
    (program,) = walks("two mocks", 0, 1, 600)
    steps = [step for step in program.steps if step["do"].startswith("txn-")]
    assert len(steps) > 20
    assert await _differences(profile, profile, Program("transactions", steps)) == []


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["kafka-3.9", "kafka-4.4"])
async def test_consumer_groups_of_two_mocks_agree(profile: str) -> None:
    (program,) = walks("two mocks", 0, 1, 300)
    steps = [step for step in program.steps if step.get("group") in CONSUMER_GROUPS]
    assert len(steps) > 30
    assert await _differences(profile, profile, Program("consumer groups", steps)) == []


@pytest.mark.slow
async def test_two_mocks_of_a_release_agree() -> None:
    (program,) = walks("two mocks", 0, 1, 60)
    assert await _differences("kafka-4.4", "kafka-4.4", program) == []


async def test_a_difference_ends_a_program_and_names_its_fields() -> None:
    """An empty group ends with its last offset up to 3.9."""
    commit = {"do": "commit", "group": "g", "member": None, "topic": "a", "rows": [[0, 1, 1]],
              "epoch": -1, "at": 0}  # fmt: skip
    delete = {"do": "delete-offsets", "group": "g", "topic": "a", "rows": [[0]], "at": 0}
    program = Program("differs", [commit, delete, commit])
    step, *fields = await _differences("kafka-4.4", "kafka-3.9", program)
    assert step == 2
    assert any(field.startswith("1.answer.groups") for field in fields)


# ---- stored logs ---------------------------------------------------------------------------------


def _stored(*batches: bytes, segments: Sequence[int] = (0,)) -> StoredLog:
    return StoredLog(list(segments), list(batches))


def test_stored_batches_are_compared_byte_for_byte() -> None:
    whole = batch(b"a", b"b")
    moved = changed(whole, base_offset=2, crc_right=False)
    assert differing_batches(_stored(whole), _stored(whole), recompressed=False) == []
    assert len(differing_batches(_stored(whole), _stored(moved), recompressed=False)) == 1
    (found,) = differing_batches(_stored(whole, moved), _stored(whole), recompressed=False)
    assert found == "batches: 2 / 1"
    segments = _stored(whole, segments=(0, 2))
    (found,) = differing_batches(segments, _stored(whole), recompressed=False)
    assert found == "segments: [0, 2] / [0]"


def test_of_batches_that_the_broker_stamped_the_time_is_left_out() -> None:
    stamped = {"timestamp_type": TimestampType.LOG_APPEND_TIME}
    first, second = (batch(b"a", log_append_time=each, **stamped) for each in (1, 2))
    other = batch(b"b", log_append_time=1, **stamped)
    assert differing_batches(_stored(first), _stored(second), recompressed=False) == []
    assert len(differing_batches(_stored(first), _stored(other), recompressed=False)) == 1


def test_of_batches_that_the_broker_compressed_the_records_are_compared() -> None:
    data = batch(bytes(500), compression=Compression.GZIP)
    header, compressed = data[:HEADER_SIZE], data[HEADER_SIZE:]
    slower = gzip.compress(gzip.decompress(compressed), compresslevel=1, mtime=7)
    assert slower != compressed
    again = changed(header + slower, batch_length=HEADER_SIZE - 12 + len(slower))
    other = batch(bytes(499), compression=Compression.GZIP)
    assert differing_batches(_stored(data), _stored(again), recompressed=True) == []
    assert len(differing_batches(_stored(data), _stored(again), recompressed=False)) == 1
    assert len(differing_batches(_stored(data), _stored(other), recompressed=True)) == 1


def test_segment_files_are_read_in_order_and_from_an_offset_on(tmp_path: Path) -> None:
    first, second, third = (changed(batch(b"x"), base_offset=each) for each in range(3))
    folder = tmp_path / "foo-0"
    folder.mkdir()
    (folder / f"{2:020}.log").write_bytes(third + third[:-1])
    (folder / f"{0:020}.log").write_bytes(first + second)
    (folder / f"{0:020}.index").write_bytes(b"not a log")
    log = kafka_log(tmp_path, ("foo", 0))
    assert log == _stored(first, second, third, segments=(0, 2))
    assert log.since(1) == _stored(second, third, segments=(2,))
