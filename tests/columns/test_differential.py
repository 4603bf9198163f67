"""Any selection of any message: native against pure to the byte, both against decoded messages."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto import reference
from kproto.codec import registry
from kproto.columns import MOST_BYTES, Selection, select
from kproto.columns.layout import lay_out
from kproto.columns.pure import PureSelection
from kproto.errors import DecodeError
from kproto.reference.random_trees import random_tree
from kproto.schema.model import MessageSchema
from tests.columns.exploded import explode, lines, some_of
from tests.native.burn import damage
from tests.support import engines, seeds
from tests.support.schemas import released
from tests.support.strategies import messages_and_trees

RELEASED = [s for s in released().values() if lines(s)]


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """The native engine where there is one, for all selections: each start of an engine forgets
    the compiled plans."""
    native = "native" if "native" in engines.BUILT else "pure"
    with engines.running(native):
        yield


def selected(schema: MessageSchema, version: int, paths: list[str]) -> Selection:
    selection = select(kproto.dialect("kafka").message(schema.name), version, paths)
    assert (type(selection._compiled) is PureSelection) == ("native" not in engines.BUILT)
    return selection


def generated(selection: Selection) -> PureSelection:
    """Generated Python all the way, the decoder included."""
    cls, version = selection.message, selection.version
    layout = lay_out(registry.plan_of(cls, version), {f.name: f.path for f in selection.fields})
    return PureSelection(layout, registry.generated_decoder(cls, version))


def same(
    selection: Selection, schema: MessageSchema, bodies: list[bytes], pure: PureSelection
) -> None:
    """Both engines' buffers, and the values and errors that decoding each body alone gives."""
    arguments = tuple(bodies), MOST_BYTES, True
    assert selection._compiled.read(*arguments) == pure.read(*arguments)
    table = selection.read(bodies, errors="collect")
    names = [field.name for field in selection.fields]
    expected: dict[str, list[Any]] = {"frame": [], **{name: [] for name in names}}
    errors = []
    for index, body in enumerate(bodies):
        try:
            message = selection.message.decode(body, selection.version)
        except DecodeError as error:
            errors.append((index, error.offset, error.path, f"body {index}: {error}"))
            continue
        for row in explode(schema.root, message, names):
            expected["frame"].append(index)
            for name in names:
                expected[name].append(row[name])
    assert comparable(table.to_pydict()) == comparable(expected)
    assert [(e.index, e.offset, e.path, str(e)) for e in table.errors] == errors
    for column in table:
        field = next(each for each in selection.fields if each.name == column.name)
        nulls = expected[column.name].count(None)
        assert (column.null_count, column.validity is None) == (nulls, not nulls)
        assert nulls == 0 or field.nullable


def comparable(table: dict[str, list[Any]]) -> Any:
    """NaN equals nothing, not even itself."""
    return {
        name: ["NaN" if isinstance(v, float) and math.isnan(v) else v for v in values]
        for name, values in table.items()
    }


@given(messages_and_trees(RELEASED), st.randoms(use_true_random=False), st.data())
def test_any_selection_of_any_message(drawn: Any, rng: random.Random, data: st.DataObject) -> None:
    schema, version, tree = drawn
    selection = selected(schema, version, some_of(schema, rng))
    body = reference.encode(schema, version, tree)
    more = data.draw(st.lists(st.just(body) | st.builds(damage, st.just(body), st.randoms())))
    at = data.draw(st.integers(0, len(body)))
    bodies = [body, *more, body[:at], body, body + b"\0", b""]
    same(selection, schema, bodies, generated(selection))


@pytest.mark.slow
def test_every_message_and_version() -> None:
    """Each array of structs gone into, with every field that can be a column beside it: values
    richer than hypothesis draws, good and damaged."""
    for schema in RELEASED:
        for version in schema.valid_versions:
            rng = seeds.generator(f"columns:{schema.name}:{version}")
            trees = [random_tree(schema, version, rng, size=30, nan=True) for _ in range(2)]
            bodies = [reference.encode(schema, version, tree) for tree in trees]
            bodies += [damage(body, rng) for body in bodies]
            rng.shuffle(bodies)
            for paths in lines(schema):
                selection = selected(schema, version, paths)
                same(selection, schema, bodies, selection._pure)
