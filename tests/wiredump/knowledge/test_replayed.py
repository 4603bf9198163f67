"""What is remembered of a capture at hand, and of its tables of requests and bodies, is the same:
whoever has only those can make the rest."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.journal import ClientSoftware
from tests.wiredump import talk
from tests.wiredump.knowledge.test_groups import first_generation
from tests.wiredump.knowledge.test_sessions import PLACES, fetch
from tests.wiredump.knowledge.test_transactions import add, end, produce
from tests.wiredump.rows.tabled import Tables, connection, named, tables_of
from wiredump.knowledge.excerpts import NEEDED, TABLE_OF, Excerpt, excerpt_of_texts
from wiredump.knowledge.following import FOLLOWED, follower_of
from wiredump.knowledge.topics import TopicNames
from wiredump.rows.exchanges import Row

REPLAYED = ("topics", *FOLLOWED)


def excerpt_of_row(
    row: dict[str, Any], request: str | None, response: str | None
) -> Excerpt | None:
    if row["request_offset"] is None or row["api_key"] not in NEEDED:
        return None
    name = row["software_name"]
    return excerpt_of_texts(
        row["dialect"], connection(broker=row["broker"]), row["connection"], row["request_offset"],
        row["requested_ns"], row["responded_ns"], row["client_id"],
        None if name is None else ClientSoftware(name, row["software_version"]), row["api_key"],
        row["api_version"], request, response,
    )  # fmt: skip


def excerpts_of(tables: Tables) -> list[Excerpt]:
    """Made of ``requests`` and ``bodies`` alone."""
    texts = {
        (row["connection"], row["direction"], row["offset"]): row["body"]
        for row in tables["bodies"]
    }
    excerpts = []
    for row in tables["requests"]:
        request, response = (
            texts.get((row["connection"], direction, row[f"{direction}_offset"]))
            for direction in ("request", "response")
        )
        found = excerpt_of_row(row, request, response)
        if found is not None:
            excerpts.append(found)
    return excerpts


def replayed(tables: Tables) -> Tables:
    """Return the tables that the excerpts make."""
    excerpts = excerpts_of(tables)
    names = TopicNames()
    for each in excerpts:
        names.learn(each)
    followers = {table: follower_of(table, names.name) for table in FOLLOWED}
    rows: list[Row] = []
    for each in sorted(excerpts, key=lambda one: one.order):
        if each.api_key in TABLE_OF:
            rows += followers[TABLE_OF[each.api_key]].feed(each)
    for follower in followers.values():
        rows += follower.end()
    return named([*rows, *names.rows()])


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "KEYS", sorted(NEEDED))


@given(st.integers(0, 2**40), st.integers(1, 6), st.sampled_from([0, 0.2]))
def test_of_any_traffic(seed: int, most: int, share: float) -> None:
    rng = random.Random(seed)
    pieces = talk.delivered([talk.say(rng, number) for number in range(most)])
    whole = tables_of(talk.listen(talk.torn(talk.chopped(pieces, rng, 99), rng, share)))
    again = replayed(whole)
    for name in REPLAYED:
        assert again[name] == whole[name]


@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_of_sessions(rng: random.Random, steps: int) -> None:
    items = [fetch(dict.fromkeys(PLACES, 1), (0, 0), at=1, begun=77)]
    for epoch in range(1, steps):
        changed = dict.fromkeys(rng.sample(PLACES, 2), epoch)
        items.append(fetch(changed, (77, epoch), at=2 * epoch + 1, begun=77))
    rng.shuffle(items)
    whole = tables_of(items)
    assert whole["fetches"]
    assert replayed(whole)["fetches"] == whole["fetches"]


def test_of_groups_and_transactions() -> None:
    items = [*first_generation(), add(30), produce(32), end(34)]
    whole = tables_of(items)
    again = replayed(whole)
    for name in ("groups", "transactions"):
        assert again[name] == whole[name] != []
