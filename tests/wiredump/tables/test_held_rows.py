"""Rows that are held and turned into columns in C are what Python makes of them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.test_memory import LOOPS, least_growth
from wiredump import native
from wiredump.rows.pieces import Piece
from wiredump.tables import writer
from wiredump.tables.arrow import CODES_OF_TYPES, arrow_schema, of_rows
from wiredump.tables.held_rows import HeldRows, feed, held_rows, taken

pytestmark = pytest.mark.usefixtures("extension")

SCHEMA = pa.schema([(f"c{place}", type_) for place, type_ in enumerate(CODES_OF_TYPES)])
TEXTS = st.text(max_size=5) | st.sampled_from(["", "b\u00e4r", "\udcff"])
CELLS: list[st.SearchStrategy[Any]] = [
    st.booleans(),
    st.integers(-(2**15), 2**15 - 1) | st.sampled_from([2**15, -(2**63), 2**70]),
    st.integers(-(2**31), 2**31 - 1) | st.sampled_from([2**31, -(2**70)]),
    st.integers(-(2**63), 2**63 - 1) | st.just(2**63),
    TEXTS,
    st.binary(max_size=5),
    st.lists(TEXTS.filter(str.isascii), max_size=3),
    st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), max_size=3),
]
ROWS = st.lists(st.tuples(*(st.none() | each for each in CELLS)), max_size=20)
PIECE = Piece(counts=[1], shared={}, own={})


@given(ROWS)
def test_columns(rows: list[tuple[Any, ...]]) -> None:
    with native.using(native.built()):
        found = of_rows(SCHEMA, rows)
    found.validate(full=True)
    with native.using(None):
        assert found.equals(of_rows(SCHEMA, rows))


ORDERS = [
    (), ("c3",), ("c4", "c1"), ("c5", "c2"), ("c1", "c2", "c3", "c4", "c5"),
]  # fmt: skip


@given(ROWS, st.sampled_from(ORDERS))
def test_rows_are_taken_out_in_order(rows: list[tuple[Any, ...]], order: tuple[str, ...]) -> None:
    found = []
    for module in (native.built(), None):
        with native.using(module):
            held = held_rows(SCHEMA, 1000, 1000)
            for _ in range(2):  # the second time in the same store
                for row in rows:
                    held.add(row)
                assert len(held) == len(rows)
                found.append(taken(held, SCHEMA, order))
                assert len(held) == 0
    for each in found:
        each.validate(full=True)
        assert each.equals(found[0])


@pytest.mark.parametrize("rows", [[(1,)], [None], [tuple(range(9))]])
def test_rows_of_another_table(rows: list[Any]) -> None:
    with native.using(native.built()), pytest.raises(ValueError, match="columns of its table"):
        of_rows(SCHEMA, rows)


def test_values_of_another_type() -> None:
    module: Any = native.built()
    held = module.HeldRows(b"iU", 9, 9)
    held.add((1, ["a"]))
    wrongs: Any = (("1", []), (1, 2), (1, [3]))
    for wrong in wrongs:
        with pytest.raises(TypeError):
            held.add(wrong)
        assert len(held) == 0  # columns of different lengths are no rows
    held.add((2, ["b", None]))
    assert [each[0] for each in held.take(())] == [0, 0]


def test_wrong_orders() -> None:
    module: Any = native.built()
    for order, kind in ((None, TypeError), ((0,) * 9, TypeError), ((2,), ValueError),
                        ((-1,), ValueError), ((1,), ValueError), (("x",), TypeError)):  # fmt: skip
        with pytest.raises(kind):
            module.HeldRows(b"i?", 9, 9).take(order)


SMALL = pa.schema([("n", pa.int32()), ("text", pa.string())])


@pytest.mark.parametrize("in_c", [True, False])
def test_feeding(in_c: bool) -> None:
    def rows_of(held: HeldRows) -> list[tuple[Any, ...]]:
        return [tuple(each.values()) for each in taken(held, SMALL).to_pylist()]

    with native.using(native.built() if in_c else None):
        held = {"a": held_rows(SMALL, 3, 10), "b": held_rows(SMALL, 2, 10)}
        rows: Any = iter(
            [
                ("a", (1, "xyz")), ("z", (1,)), ("a", (2, None)), ("b", (1, None)), ("a", PIECE),
                ("a", (3, "")), ("a", (4, "x" * 7)), ("b", (2, "\u00e4")),
            ]
        )  # fmt: skip
        assert feed(rows, held) == ("a", PIECE)
        assert (len(held["a"]), held["a"].size) == (2, 3)
        assert feed(rows, held) == ("a", None)
        held["a"].number += len(held["a"])
        assert rows_of(held["a"]) == [(1, "xyz"), (2, None), (3, "")]
        assert feed(rows, held) == ("a", None)
        assert (held["a"].number, held["a"].size) == (3, 10)
        assert rows_of(held["a"]) == [(4, "x" * 7)]
        assert feed(rows, held) == ("b", None)
        assert held["b"].size == 1
        assert feed(rows, held) is None


@pytest.mark.parametrize("in_c", [True, False])
def test_errors_of_rows_pass(in_c: bool) -> None:
    def failing() -> Any:
        yield "a", (1, None)
        raise KeyError("here")

    with native.using(native.built() if in_c else None):
        held = {"a": held_rows(SMALL, 3, 10)}
        with pytest.raises(KeyError, match="here"):
            feed(failing(), held)
        assert len(held["a"]) == 1


def test_wrong_arguments() -> None:
    module: Any = native.built()
    wrongs: Any = (([], {}), (iter([]), []), (iter([()]), {}), (iter([1]), {}))
    for wrong in wrongs:
        with pytest.raises(TypeError):
            module.feed_rows(*wrong)
    with pytest.raises(ValueError, match="unknown column type"):
        module.HeldRows(b"ix", 1, 1)
    with pytest.raises(TypeError):
        module.HeldRows("i", 1, 1)


def test_a_row_group_is_not_held_twice_to_be_written() -> None:
    module: Any = native.built()
    schema = arrow_schema("frames")
    codes = b"".join(CODES_OF_TYPES[field.type] for field in schema)
    tracemalloc.start()
    try:
        held = module.HeldRows(codes, writer.ROW_GROUP, writer.ROW_GROUP_BYTES)
        for number in range(writer.ROW_GROUP):
            held.add((-number, "request", number, 10, 0, 1, 2, 0, number, 3, 9, number, False))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        columns = held.take((0, 1, 2))
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(columns) == 13
    assert 69 * writer.ROW_GROUP < now <= before < peak < 1.5 * before


@pytest.mark.slow
@pytest.mark.counts_memory
def test_nothing_leaks() -> None:
    module: Any = native.built()
    good: Any = (True, 1, 2, 3, "t\u00e9", b"b", ["x", "y"], [1, None])
    odd: Any = (True, 2**70, 2, 3, "\udcff", b"b", ["x"], (1,))
    wrong: Any = (True, 1, 2, 3, "a", b"b", ["x", 1], [1])
    codes = b"".join(CODES_OF_TYPES.values())

    def once() -> None:
        held = {"a": module.HeldRows(codes, 2, 100)}
        module.feed_rows(iter([("a", good), ("a", odd)]), held)
        held["a"].take((3, 4))
        module.feed_rows(iter([("a", good), ("a", PIECE), ("b", good)]), held)
        with pytest.raises(TypeError):
            held["a"].add(wrong)
        with pytest.raises(TypeError):
            module.feed_rows(iter([()]), held)

    assert least_growth(once) < LOOPS
