"""Fetch sessions against a model: what a broker would fetch is what the rows say."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import FetchRequest, FetchResponse
from kproto.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from tests.wiredump.rows.tabled import connection, exchange, tables_of
from wiredump.model import Exchange

PLACES = [("a", 0), ("a", 1), ("b", 0), ("c", 7)]
SESSION_GONE = 70


def fetch(
    wanted: dict[tuple[str, int], int],
    session: tuple[int, int],
    *,
    at: int,
    begun: int = 0,
    error: int = 0,
    forgotten: Sequence[tuple[str, int]] = (),
    answered: bool = True,
    version: int = 11,
    on: int = 0,
) -> Exchange:
    topics = [
        FetchTopic(topic=name, partitions=[FetchPartition(partition=number, fetch_offset=offset)])
        for (name, number), offset in wanted.items()
    ]
    request = FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=[
            ForgottenTopic(topic=name, partitions=[number]) for name, number in forgotten
        ],
    )
    answer = FetchResponse(session_id=begun, error_code=error) if answered else None
    return exchange(request, answer, version, at=at, on=connection(on))


def fetches(items: list[Exchange]) -> dict[int, dict[tuple[str, int], tuple[int, bool]]]:
    """By second of the request: the partitions in force, and whether each was remembered."""
    found: dict[int, dict[tuple[str, int], tuple[int, bool]]] = {}
    for row in tables_of(items, tables=["fetches"])["fetches"]:
        rows = found.setdefault(row["requested_ns"] // 10**9, {})
        if row["partition"] is not None:
            rows[row["topic"], row["partition"]] = (row["fetch_offset"], row["remembered"])
    return found


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_what_is_in_force_is_what_the_broker_has(rng: random.Random, steps: int) -> None:
    has = {place: rng.randint(0, 9) for place in rng.sample(PLACES, rng.randint(1, 4))}
    items = [fetch(has, (0, 0), at=1, begun=77)]
    expected = {1: {place: (offset, False) for place, offset in has.items()}}
    for epoch in range(1, steps):
        changed = {place: rng.randint(0, 99) for place in rng.sample(PLACES, rng.randint(0, 3))}
        gone = [place for place in has if place not in changed and rng.random() < 0.2]
        has = {place: offset for place, offset in {**has, **changed}.items() if place not in gone}
        at = 2 * epoch + 1
        # Its client may come back on another connection.
        items.append(
            fetch(changed, (77, epoch), at=at, begun=77, forgotten=gone, on=rng.randint(0, 1))
        )
        expected[at] = {place: (offset, place not in changed) for place, offset in has.items()}
    assert fetches(items) == expected
    assert all(row["complete"] for row in tables_of(items)["fetches"])
    rng.shuffle(items)  # known in another order than asked
    assert fetches(items) == expected


def test_a_session_that_began_before_the_capture_is_not_complete() -> None:
    rows = tables_of([fetch({("a", 0): 5}, (77, 9), at=1, begun=77)])["fetches"]
    assert [(row["topic"], row["complete"]) for row in rows] == [("a", False)]
    (nothing,) = tables_of([fetch({}, (77, 9), at=1, begun=77)])["fetches"]
    assert (nothing["topic"], nothing["partition"], nothing["complete"]) == (None, None, False)


def test_a_step_that_was_not_captured_makes_it_incomplete() -> None:
    items = [
        fetch({("a", 0): 5}, (0, 0), at=1, begun=77),
        fetch({}, (77, 1), at=3, begun=77),
        fetch({}, (77, 3), at=5, begun=77),
        fetch({}, (77, 4), at=7, begun=77),
    ]
    rows = tables_of(items)["fetches"]
    assert [row["complete"] for row in rows] == [True, True, False, False]
    assert {row["fetch_offset"] for row in rows} == {5}


def test_an_error_and_the_last_epoch_end_a_session() -> None:
    begin = fetch({("a", 0): 5}, (0, 0), at=1, begun=77)
    lost = fetch({}, (77, 1), at=3, error=SESSION_GONE)
    again = fetch({}, (77, 2), at=5, begun=77)
    rows = tables_of([begin, lost, again])["fetches"]
    assert [(row["topic"], row["complete"]) for row in rows] == [
        ("a", True), ("a", True), (None, False),
    ]  # fmt: skip
    last = fetch({("a", 1): 1}, (77, -1), at=3)
    rows = tables_of([begin, last, again])["fetches"]
    assert [(row["partition"], row["complete"]) for row in rows] == [
        (0, True), (1, True), (None, False),
    ]  # fmt: skip


def test_without_sessions_each_names_all() -> None:
    item = fetch({("a", 0): 5, ("b", 0): 6}, (0, -1), at=1, version=4)
    rows = tables_of([item])["fetches"]
    assert [(row["topic"], row["session_id"], row["complete"]) for row in rows] == [
        ("a", None, True), ("b", None, True),
    ]  # fmt: skip


def test_what_is_remembered_is_bounded() -> None:
    from wiredump.body_texts import texts_of
    from wiredump.knowledge.excerpts import excerpt_of
    from wiredump.knowledge.sessions import Fetches

    fetching = Fetches(lambda topic_id, at: None, most_partitions=3)
    for number in range(1, 50):
        item = fetch({("a", 0): 1, ("b", 0): 1}, (0, 0), at=number, begun=number)
        list(fetching.feed(excerpt_of(item, texts_of(item))))
    kept = fetch({}, (49, 1), at=50, begun=49)
    forgotten = fetch({}, (1, 1), at=51, begun=1)
    assert len(list(fetching.feed(excerpt_of(kept, texts_of(kept))))) == 2
    ((_, row),) = fetching.feed(excerpt_of(forgotten, texts_of(forgotten)))
    assert row[7] is False
