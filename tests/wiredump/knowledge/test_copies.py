"""What several exchanges say together, where each was captured before and after a translation of
addresses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.wiredump.knowledge.test_replayed import excerpts_of
from tests.wiredump.questions.operations import tables_of_operations
from wiredump.knowledge.copies import LONGEST_HOP_NS
from wiredump.knowledge.excerpts import TABLE_OF, Excerpt
from wiredump.knowledge.following import FOLLOWED, follower_of
from wiredump.rows.exchanges import Row

COUNTED_ONCE = [name for name in FOLLOWED if name != "fetches"]


def read(folder: str, table: str) -> list[dict[str, Any]]:
    files = sorted(Path(folder, table).rglob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def rows_of(excerpts: list[Excerpt]) -> dict[str, list[Any]]:
    followers = {name: follower_of(name, lambda *_: None) for name in COUNTED_ONCE}
    rows: list[Row] = []
    for each in sorted(excerpts, key=lambda one: one.order):
        rows += followers[TABLE_OF[each.api_key]].feed(each)
    for follower in followers.values():
        rows += follower.end()
    return {name: [row for table, row in rows if table == name] for name in COUNTED_ONCE}


def later(excerpt: Excerpt, delay_ns: int) -> Excerpt:
    responded = excerpt.responded_ns
    return msgspec.structs.replace(
        excerpt, connection=excerpt.connection + 1000, client="10.9.0.1:7",
        requested_ns=excerpt.requested_ns + delay_ns,
        responded_ns=None if responded is None else responded + delay_ns,
    )  # fmt: skip


@pytest.fixture(scope="module")
def excerpts(tmp_path_factory: pytest.TempPathFactory) -> list[Excerpt]:
    folder = tables_of_operations(tmp_path_factory.mktemp("operations"))
    found = excerpts_of({name: read(folder, name) for name in ("requests", "bodies")})
    return [each for each in found if TABLE_OF.get(each.api_key) in COUNTED_ONCE]


def test_copies_change_no_row(excerpts: list[Excerpt], rng: random.Random) -> None:
    """Of the second point of capture, exchanges may be missing."""
    once = rows_of(excerpts)
    assert once["groups"]
    assert once["transactions"]
    for share in (1, 0.7):
        copies = [
            later(each, rng.randint(0, LONGEST_HOP_NS))
            for each in excerpts
            if rng.random() <= share
        ]
        assert rows_of([*excerpts, *copies]) == once


def test_what_is_no_copy(excerpts: list[Excerpt]) -> None:
    """A transaction's requests count again if they come too late, at another place, or between the
    same addresses, as in a journal that is read twice."""
    once = rows_of(excerpts)["transactions"]
    slow = [later(each, LONGEST_HOP_NS + 1) for each in excerpts]
    elsewhere = [
        msgspec.structs.replace(later(each, 1), request_offset=each.request_offset + 1)
        for each in excerpts
    ]
    same = [
        msgspec.structs.replace(later(each, 1), client=each.client, broker=each.broker)
        for each in excerpts
    ]
    for others in (slow, elsewhere, same):
        assert rows_of([*excerpts, *others])["transactions"] != once
