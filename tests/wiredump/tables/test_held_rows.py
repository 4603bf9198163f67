"""Rows that are held and turned into columns in C are what Python makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.test_memory import LOOPS, least_growth
from wiredump import native
from wiredump.rows.pieces import Piece
from wiredump.tables.arrow import _CELLS, of_rows
from wiredump.tables.held_rows import feed, held_rows

pytestmark = pytest.mark.usefixtures("extension")

SCHEMA = pa.schema([(f"c{place}", type_) for place, type_ in enumerate(_CELLS)])
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


@pytest.mark.parametrize("rows", [[(1,)], [None], [tuple(range(9))]])
def test_rows_of_another_table(rows: list[Any]) -> None:
    with (
        native.using(native.built()),
        pytest.raises(ValueError, match="columns of its table"),
    ):
        of_rows(SCHEMA, rows)


def test_an_unknown_type() -> None:
    module: Any = native.built()
    with pytest.raises(ValueError, match="unknown type"):
        module.columns_of([(1,)], b"x")


@pytest.mark.parametrize("in_c", [True, False])
def test_feeding(in_c: bool) -> None:
    with native.using(native.built() if in_c else None):
        held = {"a": held_rows((1,), 3, 10), "b": held_rows((), 2, 10)}
        stores: dict[str, Any] = {**held, "c": []}
        rows: Any = iter(
            [
                ("a", (1, "xyz")), ("z", (1,)), ("a", (2, None)), ("b", (1,)), ("a", PIECE),
                ("a", (3, b"")), ("c", (1,)), ("a", (4, "x" * 7)), ("b", (2,)),
            ]
        )  # fmt: skip
        assert feed(rows, stores) == ("a", PIECE)
        assert (held["a"].rows, held["a"].size) == ([(1, "xyz"), (2, None)], 3)
        assert feed(rows, stores) == ("a", None)
        held["a"].number += len(held["a"].rows)
        held["a"].rows.clear()
        assert feed(rows, stores) == ("c", (1,))
        assert feed(rows, stores) == ("a", None)
        assert (held["a"].rows, held["a"].number, held["a"].size) == ([(4, "x" * 7)], 3, 10)
        assert feed(rows, stores) == ("b", None)
        assert feed(rows, stores) is None


@pytest.mark.parametrize("in_c", [True, False])
def test_errors_of_rows_pass(in_c: bool) -> None:
    def failing() -> Any:
        yield "a", (1,)
        raise KeyError("here")

    with native.using(native.built() if in_c else None):
        held = {"a": held_rows((), 3, 10)}
        with pytest.raises(KeyError, match="here"):
            feed(failing(), held)
        assert held["a"].rows == [(1,)]
        with pytest.raises(IndexError):
            feed(iter([("b", (1,))]), {"b": held_rows((1,), 3, 10)})


def test_wrong_arguments() -> None:
    module: Any = native.built()
    wrongs: Any = (([], {}), (iter([]), []), (iter([()]), {}), (iter([1]), {}))
    for wrong in wrongs:
        with pytest.raises(TypeError):
            module.feed_rows(*wrong)
    for places, kind in (((-1,), ValueError), (("x",), TypeError), ((0,) * 33, ValueError)):
        with pytest.raises(kind):
            module.HeldRows(places, 1, 1)


@pytest.mark.counts_memory
def test_nothing_leaks() -> None:
    module: Any = native.built()
    good: Any = (True, 1, 2, 3, "t\u00e9", b"b", ["x", "y"], [1, None])
    odd: Any = (True, 2**70, 2, 3, "\udcff", b"b", ["x", 1], (1,))
    codes = b"".join(_CELLS.values())

    def once() -> None:
        module.columns_of([good, odd, good], codes)
        module.columns_of([good, good], codes)
        held = {"a": module.HeldRows((4,), 2, 100)}
        module.feed_rows(iter([("a", good), ("a", good)]), held)
        module.feed_rows(iter([("a", good), ("a", PIECE), ("b", good)]), held)
        with pytest.raises(TypeError):
            module.feed_rows(iter([()]), held)

    assert least_growth(once) < LOOPS
