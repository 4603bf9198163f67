"""Pieces merged by their runs are what sorting their rows makes of them."""

from __future__ import annotations

import random
from array import array
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.arrow import Column
from kproto.records.sink import bits, numbers
from tests.native.test_memory import LOOPS, least_growth
from wiredump import native
from wiredump.rows.pieces import Chosen, Piece, Whole
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import ordered
from wiredump.tables.deferred_rows import schema_of, unnamed
from wiredump.tables.merging import Part, merged
from wiredump.tables.writer import _size, _sized

pytestmark = pytest.mark.usefixtures("extension")

ORDER = TABLES["records"].order
TEXTS = [None, "", "a", "bär", "bar", "b" * 40]


def whole(values: list[int]) -> Whole:
    """Some of many, as pieces of records have them."""
    spread = [each for value in values for each in (value, -1)]
    return memoryview(bytes(array("q", spread))).cast("q")[::2]


def blobs(name: str, values: list[bytes | None]) -> Column:
    held = [value or b"" for value in values]
    nulls = values.count(None)
    return Column(
        name=name, format="z", nullable=True, length=len(values), null_count=nulls,
        validity=bits(bytes(value is not None for value in values)) if nulls else None,
        offsets=numbers("i", [0, *accumulate(map(len, held))]), data=b"".join(held),
    )  # fmt: skip


def fixed(name: str, format: str, values: list[int | None]) -> Column:
    nulls = values.count(None)
    return Column(
        name=name, format=format, nullable=True, length=len(values), null_count=nulls,
        validity=bits(bytes(value is not None for value in values)) if nulls else None,
        data=numbers("q" if format == "l" else "i", [value or 0 for value in values]),
    )  # fmt: skip


def piece(rng: random.Random, *, orderly: bool, great: bool) -> Piece:
    """``orderly``: offsets rise in a run, and no two runs are alike."""
    counts = [rng.choice((0, 1, 1, 2, 7)) for _ in range(rng.randint(0, 12))]
    runs, rows = len(counts), sum(counts)
    offsets: list[int] = []
    for count in counts:
        some = [rng.randint(-9, 9) for _ in range(count)]
        offsets += sorted(some) if orderly else some
    texts = rng.sample(TEXTS, rng.randint(1, len(TEXTS)))
    places = whole([rng.randrange(len(texts)) for _ in range(runs)])
    few = [-1, 0, 3] + [2**40] * great
    nullable = rng.random() < 0.5

    def some_bytes(size: int) -> list[bytes | None]:
        return [
            None if nullable and rng.random() < 0.3 else rng.randbytes(rng.randint(0, size))
            for _ in range(rows)
        ]

    own = [
        fixed("offset", "l", list(offsets)),
        fixed("timestamp_ms", "l", [rng.choice((None, 5)) if nullable else 5 for _ in range(rows)]),
        fixed("value_size", "i", [rng.choice((None, 5)) if nullable else 5 for _ in range(rows)]),
        fixed("headers", "i", [rng.randint(0, 3) for _ in range(rows)]),
        blobs("key", some_bytes(4)), blobs("value_hash", some_bytes(16)),
        blobs("value", some_bytes(30)),
    ]  # fmt: skip
    connections = [rng.choice((0, 1, 2**50)) for _ in range(runs)]
    if orderly:
        connections = [rng.getrandbits(60) for _ in range(runs)]
    shared: dict[str, Any] = {
        "connection": whole(connections),
        "frame_offset": whole([rng.choice((0, 7)) for _ in range(runs)]),
        "partition": whole([rng.choice(few) for _ in range(runs)]),
        "batch": whole([rng.choice((0, 1)) for _ in range(runs)]),
        "wanted_ns": whole([rng.getrandbits(62) for _ in range(runs)]),
        "direction": Chosen([rng.choice(("request", "response")) for _ in texts], places),
        "topic": Chosen(list(texts), places),
        "topic_id": Chosen(rng.sample(texts, len(texts)), places),
    }
    shared["wanted_id"] = shared["topic_id"]
    return Piece(counts=counts, shared=shared, own={column.name: column for column in own})


def parts(rng: random.Random, **options: bool) -> list[Part]:
    found = []
    for _ in range(rng.randint(1, 4)):
        made = piece(rng, **options)
        cuts = sorted(rng.randint(0, made.number) for _ in range(2))
        first, stop = rng.choice(((0, made.number), tuple(cuts)))
        found.append(Part(made, first, stop))
    return found


@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_any_pieces(seed: int, orderly: bool, great: bool):
    """In order or as they come; whatever is merged is what sorting makes, and what is usual is."""
    rng = random.Random(seed)
    given_parts = parts(rng, orderly=orderly, great=great)
    for name, order in (("records", ORDER), (unnamed("records"), ())):
        schema = schema_of(name)
        rows = pa.concat_tables([part.table(schema) for part in given_parts]).combine_chunks()
        expected = ordered("records", rows) if order else rows
        with native.using(native.built()):
            made = merged(schema, order, given_parts)
        if made is None:
            assert great or (order and not orderly)
            continue
        made.validate(full=True)
        assert made.equals(expected)


@given(st.integers(0, 2**32))
def test_how_much_there_is(seed: int):
    schema = schema_of("records")
    places = _sized(schema)
    for part in parts(random.Random(seed), orderly=True, great=False):
        names = [schema.names[place] for place in places]
        assert part.size(names) == _size(part.table(schema), places)


def test_what_it_does_not_know_is_left():
    rng = random.Random(3)
    schema = schema_of("records")
    usual = piece(rng, orderly=True, great=False)
    runs, rows = len(usual.counts), usual.number
    topics = usual.shared["topic"]
    assert isinstance(topics, Chosen)
    odd: list[dict[str, Any]] = [
        {**usual.shared, "partition": [5] * runs},  # a list
        {**usual.shared, "topic": Chosen(["\ud800"] * 6, topics.places)},
    ]
    timeless = fixed("offset", "l", [None] * rows)
    pieces = [Piece(counts=usual.counts, shared=shared, own=usual.own) for shared in odd]
    pieces.append(
        Piece(counts=usual.counts, shared=usual.shared, own={**usual.own, "offset": timeless})
    )
    with native.using(native.built()):
        assert merged(schema, ORDER, [Part(usual, 0, rows)]) is not None
        for each in pieces:
            assert merged(schema, ORDER, [Part(each, 0, rows)]) is None
    with native.using(None):
        assert merged(schema, ORDER, [Part(usual, 0, rows)]) is None


def ints(*values: int) -> array[int]:
    return array("q", values)


WRONG_PARTS: list[Any] = [
    None, (), [()], [None], [(1, (), None, 0, 0)], [(b"12345678", (), None, 0, 1)],
    [(ints(1), (), None, 0, 2)], [(ints(1), (), None, 1, 0)], [(ints(1), (), None, -1, 1)],
    [(ints(-1), (), None, 0, 0), (ints(-1), (), None, 0, 1)], [(ints(1 << 40), (), None, 0, 1)],
    [(ints(1 << 30), (), None, 0, 1 << 30)],
    [(ints(1), (ints(0),), None, 0, 1)], [(ints(1), (), ints(0), 0, 1)],
    [(ints(1), (ints(),), ints(0), 0, 1)], [(ints(1), (ints(0, 1),), ints(0), 0, 1)],
    [(ints(2), (ints(0),), ints(0), 0, 2)], [(ints(1), (ints(0),) * 9, ints(0), 0, 1)],
    [(ints(1), (array("i", [0]),), ints(0), 0, 1)], [(ints(1), (3.5,), ints(0), 0, 1)],
    [(ints(1), (), None, 0, 1), (ints(1), (ints(0),), ints(0), 0, 1)],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_PARTS, ids=range(len(WRONG_PARTS)))
def test_wrong_parts_are_refused(wrong: Any):
    module = native.built()
    assert module is not None
    with pytest.raises((TypeError, ValueError, BufferError)):
        module.order_runs(wrong)


def test_wrong_columns_are_refused():
    """Of two rows, one run each; a column that is shorter, or of other things."""
    module = native.built()
    assert module is not None
    spans = module.order_runs([(ints(1, 1), (), None, 0, 2)])
    assert spans is not None
    assert len(spans) == 2
    assert spans.spread(8, [ints(5, 6)]) == bytes(ints(5, 6))
    assert spans.spread(4, [ints(5, 1 << 31)]) is None
    ends = numbers("i", [0, 1, 2])
    assert spans.blobs([(None, ends, b"ab")]) == (0, None, ends, b"ab")
    for call, wrong in (
        (spans.spread, (2, [ints(5, 6)])), (spans.spread, (8, [])), (spans.spread, (8, [ints(5)])),
        (spans.spread, (8, [b""])), (spans.spread, (8, None)), (spans.spread, ("8", [ints(5, 6)])),
        (spans.fixed, (8, [(None, bytes(15))])), (spans.fixed, (0, [(None, b"")])),
        (spans.fixed, (4, [(b"", bytes(8))])), (spans.fixed, (4, [bytes(8)])),
        (spans.fixed, (4, [(None, None)])), (spans.fixed, (4, [(None, bytearray(8))])),
        (spans.blobs, ([(None, ends[:8], b"ab")],)), (spans.blobs, ([(None, ends, b"a")],)),
        (spans.blobs, ([(None, numbers("i", [0, 2, 1]), b"ab")],)),
        (spans.blobs, ([(None, numbers("i", [-5, 0, 1]), b"ab")],)),
        (spans.blobs, ([(None, ends)],)), (spans.blobs, ([],)), (spans.blobs, (None,)),
        (spans.texts, ([ints(0, 1)], [[b"a"]])), (spans.texts, ([ints(0, -1)], [[b"a"]])),
        (spans.texts, ([ints(0)], [[b"a"]])), (spans.texts, ([ints(0, 0)], [["a"]])),
        (spans.texts, ([ints(0, 0)], [None])), (spans.texts, ([], [])), (spans.texts, (1,)),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            call(*wrong)


@pytest.mark.slow
@pytest.mark.counts_memory
def test_nothing_is_left_behind():
    made = parts(random.Random(1), orderly=True, great=False)
    schema = schema_of("records")
    module = native.built()
    assert module is not None

    def once() -> None:
        with native.using(module):
            assert merged(schema, ORDER, made) is not None
        for wrong in WRONG_PARTS:
            with pytest.raises((TypeError, ValueError, BufferError)):
                module.order_runs(wrong)
        spans = module.order_runs([(ints(1, 1), (), None, 0, 2)])
        assert spans is not None
        for each in ([ints(0, 1)], [[b"a"]]), ([ints(0, 0)], [["a"]]):
            with pytest.raises((TypeError, ValueError)):
                spans.texts(*each)

    assert least_growth(once, 20) < LOOPS
