"""What records say stays out of the tables unless asked for, but for their keys; the documents that
tell users so agree with each other and with the tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec.message import Message
from kproto.codec.registry import plan_of, structs_of
from kproto.codec.structs import MessageStruct
from kproto.codegen.plan import StructPlan
from kproto.dialects import Api
from kproto.records import Compression, Record, build_batch
from tests.wiredump.rows.tabled import KAFKA, Tables, exchange, named, tables_of
from wiredump.model import Exchange
from wiredump.rows.exchanges import rows_of

DOCS = Path(__file__).parents[3] / "docs"
SENTENCE = (
    "Tables leave out the values and headers of records unless `--values` is given: `records` has "
    "each record's key, and the size and hash of its value, and `bodies` has `recordsSizeInBytes` "
    "in place of `records`, as Kafka's JsonConverter writes it."
)

Structs: TypeAlias = Mapping[str, type[MessageStruct]]

KEY, VALUE, HEADER = b"the-key-0815", b"the-value-4711", b"the-header-1234"
BATCH = build_batch([Record(key=KEY, value=VALUE, headers=(("name", HEADER),))])


def _carrying() -> list[tuple[type[Message], int]]:
    """Every message of the released protocol with a field of records, at each version."""
    return [
        (cls, version)
        for api in KAFKA.apis.values()
        for cls in (api.request, api.response)
        for version in cls.VALID_VERSIONS
        if _names(plan_of(cls, version).root)
    ]


def _names(plan: StructPlan) -> list[str]:
    """JSON names of the fields of records."""
    found = []
    for item in plan.order:
        if item in plan.absent:
            continue
        if item.is_records:
            found.append(item.json_name)
        elif item.struct is not None:
            found += _names(item.struct)
    return found


def _filled(cls: type[MessageStruct], plan: StructPlan, data: bytes, structs: Structs) -> Any:
    """``data`` in its field of records, one element in each array on the way there."""
    values: dict[str, Any] = {}
    for item in plan.order:
        if item.is_records:
            values[item.name] = data
        elif item.struct is not None and _names(item.struct):
            inner = _filled(structs[item.struct.name], item.struct, data, structs)
            values[item.name] = [inner] if item.kind == "array" else inner
    return cls(**values)


def _api(cls: type[Message]) -> Api:
    assert cls.API_KEY is not None
    return KAFKA.apis[cls.API_KEY]


def carried(cls: type[Message], version: int, data: bytes) -> Exchange:
    """An exchange of whose two bodies ``cls`` is the one with records."""
    api = _api(cls)
    made = _filled(cls, plan_of(cls, version).root, data, structs_of(cls))
    if cls is api.request:
        return exchange(made, api.response(), version, at=1)
    return exchange(api.request(), made, version, at=1)


def texts(value: object) -> Iterator[bytes]:
    """Every text and all bytes in a value, and what those stand for that are base64."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode()
        with suppress(ValueError):
            yield base64.b64decode(value, validate=True)
        if value[:1] in ("{", "["):
            yield from texts(json.loads(value))
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def places(tables: Tables, what: bytes) -> set[tuple[str, str]]:
    """Tables and columns that have it."""
    return {
        (table, column)
        for table, rows in tables.items()
        for row in rows
        for column, value in row.items()
        if any(what in each for each in texts(value))
    }


@pytest.mark.parametrize(("cls", "version"), _carrying())
def test_bodies_have_the_size_of_records_and_tables_none_of_their_values(cls, version) -> None:
    item = carried(cls, version, BATCH)
    tables = tables_of([item])
    (name,) = _names(plan_of(cls, version).root)
    side = "request" if cls is _api(cls).request else "response"
    (body,) = [row["body"] for row in tables["bodies"] if row["direction"] == side]
    assert f'"{name}SizeInBytes":{len(BATCH)}' in body
    assert f'"{name}":' not in body
    assert places(tables, VALUE) == set()
    assert places(tables, HEADER) == set()
    assert places(tables, KEY) <= {("records", "key")}
    assert tables["bodies"] == named(rows_of(item))["bodies"]


@pytest.mark.parametrize(("cls", "version"), _carrying())
def test_values_that_are_asked_for_are_there(cls, version) -> None:
    tables = tables_of([carried(cls, version, BATCH)], values=True)
    expected = {("bodies", "body")}
    if "records" in tables:
        expected |= {("records", "value")}
    assert places(tables, VALUE) == expected
    assert places(tables, HEADER) == {("bodies", "body")}


@given(st.randoms(use_true_random=False), st.sampled_from(_carrying()))
def test_nor_do_tables_of_damaged_or_cut_records(rng, carrying) -> None:
    cls, version = carrying
    damaged = bytearray(BATCH)
    for _ in range(rng.randint(0, 3)):
        damaged[rng.randrange(len(BATCH) - len(KEY + VALUE + HEADER) - 20)] = rng.randrange(256)
    item = carried(cls, version, bytes(damaged[: rng.randint(1, len(damaged))]))
    tables = tables_of([item])
    assert places(tables, VALUE) == set()
    assert places(tables, HEADER) == set()
    assert places(tables, KEY) <= {("records", "key")}


def test_null_records_stay_null_and_compressed_ones_count_as_they_were_sent() -> None:
    from tests.wiredump.rows.test_batches import produce

    batch = build_batch([Record(value=bytes(1000))], compression=Compression.GZIP)
    for data, told in ((None, '"records":null'), (batch, f'"recordsSizeInBytes":{len(batch)}')):
        (row, _) = tables_of([produce(data)])["bodies"]
        assert told in row["body"]


@pytest.mark.parametrize("page", ["reference/wiredump.md", "explanation/security.md"])
def test_both_documents_say_the_same_of_what_records_say(page: str) -> None:
    assert SENTENCE in " ".join((DOCS / page).read_text(encoding="utf-8").split())
