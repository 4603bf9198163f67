"""Out of the buffers: pyarrow takes them as they are, and finds nothing wrong with them."""

import gc
import importlib
import json
import sys
import threading
import uuid
from typing import Any

import pyarrow
import pytest

import kproto
from kproto.codec.classes import make_message_class
from kproto.columns import select
from kproto.errors import MissingExtraError
from kproto.messages import HeartbeatRequest
from kproto.reference.random_trees import random_tree
from kproto.schema.load import parse_message
from tests.columns.exploded import lines
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.support.schemas import released

KINDS = ["bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid",
         "string", "bytes", "records"]  # fmt: skip
SAMPLES: dict[str, list[Any]] = {
    "bool": [True, False, True],
    "int8": [-128, 0, 127],
    "int16": [-(2**15), 1, 2**15 - 1],
    "uint16": [0, 1, 2**16 - 1],
    "int32": [-(2**31), 1, 2**31 - 1],
    "uint32": [0, 1, 2**32 - 1],
    "int64": [-(2**63), 1, 2**63 - 1],
    "float64": [-0.0, 1.5, float("inf")],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID(int=2**64 + 1)],
    "string": ["", "one", "żółć \U0001f600"],
    "bytes": [b"", b"\0\xff", b"three"],
    "records": [b"", b"\0\xff", b"three"],
}


@pytest.fixture(params=["pure", "native"])
def engine(request: pytest.FixtureRequest) -> Any:
    if request.param == "native":
        engines.require_native()
    with engines.running(request.param):
        yield request.param


def every_kind() -> Any:
    """A message with a field, and an array, of every kind there is."""
    fields = [
        {"name": kind.title(), "type": kind, "versions": "0+", "about": "."} for kind in KINDS
    ]
    fields += [
        {"name": f"{kind.title()}s", "type": f"[]{kind}", "versions": "0+", "about": ".",
         "nullableVersions": "0+"}
        for kind in KINDS if kind != "records"
    ]  # fmt: skip
    inner = {"name": "Rows", "type": "[]Row", "versions": "0+", "about": ".", "fields": fields}
    whole = {"name": "EveryKind", "type": "data", "validVersions": "0", "flexibleVersions": "0+"}
    return make_message_class(parse_message(json.dumps({**whole, "fields": [inner]})))


def test_every_kind(engine: str) -> None:
    cls = every_kind()
    row = cls.STRUCTS["Row"]
    values = [
        {kind: SAMPLES[kind][at] for kind in KINDS}
        | {f"{kind}s": [SAMPLES[kind], None, []][at] for kind in KINDS if kind != "records"}
        for at in range(3)
    ]
    body = cls(rows=[row(**each) for each in values]).encode(0)
    names = list(values[0])
    table = select(cls, 0, {name: f"rows.{name}" for name in names}).read([body])
    expected = {name: [each[name] for each in values] for name in names}
    assert table.to_pydict() == {"frame": [0, 0, 0], **expected}
    batch = table.to_arrow()
    batch.validate(full=True)
    found = batch.to_pydict()
    for name in names:
        if name in ("uuid", "uuids"):
            assert found[name] == _plain(expected[name])
        else:
            assert found[name] == expected[name]
    types = {field.name: (str(field.type), field.nullable) for field in batch.schema}
    assert types["records"] == ("binary", False)
    assert types["uuid"] == ("fixed_size_binary[16]", False)
    assert types["uint32s"] == ("list<item: uint32 not null>", True)
    assert types["frame"] == ("int32", False)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.bytes if isinstance(value, uuid.UUID) else value


def test_nothing_is_copied() -> None:
    bodies = [HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4)] * 5
    table = select(HeartbeatRequest, 4, ["group_id", "group_instance_id"]).read(bodies)
    batch = table.to_arrow()
    for column in (table.frame, *table):
        array = batch.column(column.name)
        assert array.null_count == column.null_count
        for given, taken in zip(column.buffers, array.buffers(), strict=True):
            assert (given is None) == (taken is None)
            assert given is None or taken.address == pyarrow.py_buffer(given).address


def test_every_message_is_valid_arrow() -> None:
    schemas = list(released().values())
    for schema in quickly_drawn("arrow", schemas, 60):
        version = max(schema.valid_versions)
        cls = kproto.dialect("kafka").message(schema.name)
        rng = seeds.generator(f"arrow:{schema.name}")
        trees = [random_tree(schema, version, rng, size=20) for _ in range(2)]
        bodies = [to_instance(cls, tree, schema).encode(version) for tree in trees]
        for paths in lines(schema):
            table = select(cls, version, paths).read(bodies)
            batch = table.to_arrow()
            batch.validate(full=True)
            assert batch.num_rows == table.rows
            assert batch.to_pydict() == {k: _plain(v) for k, v in table.to_pydict().items()}
            assert batch.schema == select(cls, version, paths).read([]).to_arrow().schema


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    table = select(HeartbeatRequest, 4, ["group_id"]).read([])
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'kproto\[wiredump\]'"):
        table.to_arrow()


def test_capsules_for_any_library(engine: str) -> None:
    """pyarrow reads them as anyone would: the same batch, over the same buffers, and they are
    given back when the last reader is done."""
    cls = every_kind()
    row = cls.STRUCTS["Row"]
    rows = [row(strings=["a", "bc"], uuid=uuid.UUID(int=7), records=b""), row(records=b"")]
    rows[1].strings = None
    body = cls(rows=rows).encode(0)
    paths = ["rows.strings", "rows.string", "rows.uuid", "rows.bool", "rows.float64s"]
    table = select(cls, 0, paths).read([body] * 3)
    offsets = table["rows.strings"].offsets
    free = sys.getrefcount(offsets)
    batch = pyarrow.record_batch(table)
    assert sys.getrefcount(offsets) > free
    batch.validate(full=True)
    assert batch.equals(table.to_arrow(), check_metadata=True)
    assert batch.schema == table.to_arrow().schema
    address = batch.column("rows.strings").buffers()[1].address
    assert address == _address(offsets)
    del batch
    gc.collect()
    assert sys.getrefcount(offsets) == free
    # Capsules that nobody read.
    for _ in range(3):
        capsules = [repr(capsule) for capsule in table.__arrow_c_array__()]
        assert "arrow_schema" in capsules[0]
        assert "arrow_array" in capsules[1]
    gc.collect()
    assert sys.getrefcount(offsets) == free


def _address(raw: bytes | None) -> int:
    assert raw is not None
    address: int = pyarrow.py_buffer(raw).address
    return address


def test_a_column_outlives_its_table(engine: str) -> None:
    """A reader takes one child over, drops the rest, and gives it back on another thread."""
    body = HeartbeatRequest(group_id="group", generation_id=1, member_id="m").encode(4)
    column = pyarrow.record_batch(
        select(HeartbeatRequest, 4, ["generation_id", "group_id"]).read([body] * 100)
    ).column("group_id")
    gc.collect()
    kept = [column.slice(10)]
    del column
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(kept.pop().to_pylist()))
    thread.start()
    thread.join()
    assert seen == [["group"] * 90]
