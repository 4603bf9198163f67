"""Random programs of the data plane without a real cluster: what is drawn, and how two sides are
compared.

That Kafka and the mock agree about them is ``test_data_plane``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from kproto.records import RecordBatches
from kproto.schema.versions import Versions
from tests.real.data.clusters import data_mock
from tests.real.data.side import Cluster
from tests.real.programs.model import Program
from tests.real.walks.arena import Lane
from tests.real.walks.batches import batch_of
from tests.real.walks.generator import walks

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
    }  # fmt: skip


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
            assert lane.fields > 10 * lane.played
            return []
        finally:
            await lane.tidy()


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
