"""The driver opens each file once, and small files share tasks."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.spark import made_up
from wiredump.spark.planning import packed, plan
from wiredump.spark.splits import Split
from wiredump.spark.survey import survey
from wiredump.tables.run import RunDigest, derived_run


@pytest.fixture
def paths(tmp_path: Path) -> dict[int, str]:
    data = made_up.capture(1, kind="pcap")
    contents = {
        "a.pcap": data,
        "b.pcapng": made_up.capture(2, kind="pcapng"),
        "c.pcap.gz": gzip.compress(data),
        "d.jsonl": b'{"sequence": 1}\n',
        "e.pcap": data[:10],
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {number: str(tmp_path / name) for number, name in enumerate(contents)}


def test_each_file_is_opened_once(paths: dict[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For its kind, its size, its parts and the id of the run together."""
    opened, looked = Counter[str](), Counter[str]()
    really_open, really_stat = os.open, os.stat

    def count_open(path: str, *how: int) -> int:
        opened[path] += 1
        return really_open(path, *how)

    def count_stat(path: str, **how: object) -> os.stat_result:
        looked[str(path)] += 1
        return really_stat(path, **how)  # type: ignore[arg-type]

    expected = derived_run(paths.values())
    monkeypatch.setattr(os, "open", count_open)
    monkeypatch.setattr(os, "stat", count_stat)
    digest = RunDigest()
    files = survey(paths, digest)
    splits = plan([(number, paths[number]) for number in (0, 1, 2, 4)], 1000, surveyed=files)
    assert opened == dict.fromkeys(paths.values(), 1)
    assert not {*looked} & {*paths.values()}
    assert digest.run == expected
    assert [each.kind for each in files.values()] == [
        "capture", "capture", "capture", "journal", "capture",
    ]  # fmt: skip
    assert {split.capture for split in splits if split.whole} == {2, 4}


@given(st.lists(st.tuples(st.integers(0, 1 << 22), st.booleans())), st.integers(1, 1 << 22))
def test_parts_are_packed_in_their_order(parts: list[tuple[int, bool]], most: int) -> None:
    splits = [
        Split("", number, 0, size, size, whole=whole) for number, (size, whole) in enumerate(parts)
    ]
    tasks = packed(splits, most)
    assert [each for task in tasks for each in task] == splits
    for task, following in pairwise(tasks):
        assert sum(each.end for each in task) <= most or len(task) == 1
        together = sum((each.end * 4 if each.whole else each.end) for each in task)
        assert together + 4 * following[0].end + (len(task) + 1) * (128 << 10) > most
