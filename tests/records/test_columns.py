"""Columns of records: what ``RecordBatches`` reads, in Arrow's layout, the same on each engine."""

from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto import DecodeError, extension
from kproto.arrow import Column
from kproto.errors import BodyError, LimitError, SelectionError, UnknownNameError
from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from kproto.records.columns import COLUMNS, DEFAULT_COLUMNS, RecordColumns, read_columns
from tests.records.mutations import with_right_checksums
from tests.records.strategies import batches
from tests.support.toolchain import require_module

GOOD = build_batch([Record(7, 1, b"k", b"vv"), Record(9, 2, None, b"", (("h", None),))])

inputs = st.lists(
    st.none() | st.lists(batches(), max_size=3).map(lambda given: b"".join(map(built, given))),
    max_size=4,
)


def built(batch: tuple[list[Record], dict[str, Any]]) -> bytes:
    return build_batch(batch[0], **batch[1])


def digest(value: bytes | None) -> bytes | None:
    return None if value is None else blake2b(value, digest_size=16).digest()


def rows_of(given: list[bytes | None], **options: Any) -> list[tuple[Any, ...]]:
    """A row a record, in the order of ``COLUMNS`` with the input before: by way of objects."""
    return [
        (
            index, number, record.offset, record.timestamp, record.key, record.value,
            len(record.headers), list(record.headers),
            None if record.value is None else len(record.value), digest(record.value),
            batch.magic, int(batch.compression), int(batch.timestamp_type),
            batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch,
            batch.base_sequence, batch.is_transactional, batch.is_control,
        )
        for index, data in enumerate(given)
        for number, batch in enumerate(RecordBatches(data, **options))
        for record in batch
    ]  # fmt: skip


def shown(table: RecordColumns) -> list[tuple[Any, ...]]:
    columns = table.to_pydict()
    assert all(len(values) == table.rows for values in columns.values())
    return list(zip(*columns.values(), strict=True))


def laid_out(column: Column) -> Any:
    return (
        column.name, column.format, column.nullable, column.length, column.null_count,
        column.buffers, column.child is not None and laid_out(column.child),
        [laid_out(field) for field in column.fields],
    )  # fmt: skip


def same_everywhere(given: list[bytes | None], *columns: Any, **options: Any) -> RecordColumns:
    """The table, or what is raised: by the engine of this test as by Python alone."""
    found = attempt(given, *columns, **options)
    module = extension.use(None)
    try:
        expected = found if module is None else attempt(given, *columns, **options)
    finally:
        extension.use(module)
    if isinstance(expected, Exception):
        assert (type(found), str(found)) == (type(expected), str(expected))
        raise expected
    assert isinstance(found, RecordColumns)
    assert found.rows == expected.rows
    assert [*map(laid_out, (found.input, *found))] == [*map(laid_out, (expected.input, *expected))]
    assert [str(error) for error in found.errors] == [str(error) for error in expected.errors]
    return expected


def attempt(*arguments: Any, **options: Any) -> RecordColumns | Exception:
    try:
        return read_columns(*arguments, **options)
    except Exception as error:
        return error


@given(inputs, st.lists(st.sampled_from(COLUMNS), unique=True))
def test_what_the_batches_hold(given_inputs, chosen):
    expected = rows_of(given_inputs)
    assert shown(same_everywhere(given_inputs, COLUMNS)) == expected
    found = same_everywhere(given_inputs, chosen)
    assert [column.name for column in found] == chosen
    places = [0, *(COLUMNS.index(name) + 1 for name in chosen)]
    assert shown(found) == [tuple(row[place] for place in places) for row in expected]


@given(st.lists(st.none() | st.integers(0, 700), max_size=40), st.randoms())
def test_digests_of_values_of_any_size(sizes, rng):
    """Several are on their way at a time in C, each as long as it takes."""
    values = [None if size is None else rng.randbytes(size) for size in sizes]
    data = build_batch([Record(value=value) for value in values])
    table = same_everywhere([data], ["value_size", "value_hash"])
    assert table["value_size"].to_list() == sizes
    assert table["value_hash"].to_list() == [digest(value) for value in values]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(inputs, st.data())
def test_bad_inputs(given_inputs, data):
    """Each raises what reading it as batches raises, and says which it is; or is left out whole."""
    changed: list[bytes | None] = []
    for each in given_inputs:
        whole = bytearray(each or b"")
        if whole and data.draw(st.booleans()):
            for _ in range(data.draw(st.integers(1, 3))):
                whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        changed.append(with_right_checksums(whole))
    options = {"max_decompressed": 1 << 20}
    good: list[bytes | None] = []
    bad = []
    for index, each in enumerate(changed):
        try:
            rows_of([each], **options)
            good.append(each)
        except DecodeError as error:
            good.append(None)
            bad.append((index, error.problem, error.offset, error.path))
    found = same_everywhere(changed, COLUMNS, errors="collect", **options)
    assert shown(found) == rows_of(good, **options)
    assert [(e.index, e.problem, e.offset, e.path) for e in found.errors] == bad
    if bad:
        with pytest.raises(BodyError) as caught:
            same_everywhere(changed, **options)
        first = caught.value
        assert (first.index, first.problem, first.offset, first.path) == bad[0]
        assert str(first).startswith(f"body {first.index}: batches[")


def test_the_layout_spelt_out():
    table = read_columns([None, GOOD], ["offset", "key", "value", "headers", "is_control"])
    offset, key, value, headers, is_control = table
    assert (table.rows, len(table), table.errors) == (2, 2, ())
    assert memoryview(table.input.data).cast("i").tolist() == [1, 1]
    assert (offset.format, memoryview(offset.data).cast("q").tolist()) == ("l", [7, 9])
    assert (key.format, key.null_count, key.validity, key.data) == ("z", 1, b"\x01", b"k")
    assert memoryview(key.offsets).cast("i").tolist() == [0, 1, 1]
    assert (value.null_count, value.validity, value.data) == (0, None, b"vv")
    assert (is_control.format, is_control.data) == ("b", b"\x00")
    assert (headers.format, headers.data, len(headers)) == ("+l", None, 2)
    assert memoryview(headers.offsets).cast("i").tolist() == [0, 0, 1]
    assert headers.child is not None
    assert (headers.child.format, headers.child.length) == ("+s", 1)
    assert [(f.name, f.format, f.to_list()) for f in headers.child.fields] == [
        ("key", "u", ["h"]),
        ("value", "z", [None]),
    ]
    assert [column.name for column in read_columns([])] == list(DEFAULT_COLUMNS)
    with pytest.raises(UnknownNameError, match="the columns are input, offset, key"):
        table["topic"]
    assert table["input"] is table.input


def test_bits_go_on_from_batch_to_batch():
    settings = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    given_inputs = [
        build_batch([Record(value=None if n % 3 else b"v") for n in range(count)],
                    is_transactional=bool(count % 2), **settings)
        for count in (1, 2, 5, 8, 13, 40)
    ]  # fmt: skip
    table = same_everywhere(given_inputs, ["value", "is_transactional"])
    assert shown(table) == [(r[0], r[5], r[-2]) for r in rows_of(given_inputs)]


@pytest.mark.parametrize(
    "codec", [Compression.NONE, pytest.param(Compression.LZ4, marks=pytest.mark.slow)]
)
def test_many_records(codec):
    """More than room is made for on trust, and buffers that grow."""
    records = [Record(n, n % 5, b"%d" % n, bytes(n % 50), (("h", b"x"),)) for n in range(17_000)]
    data = build_batch(records, compression=codec)
    arguments = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": 99}
    given_inputs = [data, None, build_batch(records[:5], **arguments)]
    assert shown(same_everywhere(given_inputs, COLUMNS)) == rows_of(given_inputs)


def test_options_are_those_of_batches():
    cut = GOOD + GOOD[:-1]
    assert read_columns([cut], allow_partial=True).rows == 2
    with pytest.raises(BodyError, match="cut off"):
        read_columns([cut])
    wrong = GOOD[:17] + b"\x00" * 4 + GOOD[21:]
    assert read_columns([wrong], check_crc=False).rows == 2
    with pytest.raises(BodyError, match=r"body 1: batches\[0\]\.crc: checksum is"):
        read_columns([GOOD, wrong])
    packed = build_batch([Record(value=bytes(5000))], compression=Compression.GZIP)
    with pytest.raises(BodyError, match="decompresses to more than 1000 bytes"):
        read_columns([packed], max_decompressed=1000)
    for buffer in (bytearray(GOOD), memoryview(GOOD)):
        assert shown(read_columns([buffer])) == shown(read_columns([GOOD]))


def test_columns_there_are_not():
    with pytest.raises(UnknownNameError, match="no column 'topic'; the columns are batch, offset"):
        read_columns([], ["topic"])
    with pytest.raises(SelectionError, match="key was selected twice"):
        read_columns([], ["key", "key"])
    with pytest.raises(SelectionError, match="always a column"):
        read_columns([], ["input"])
    with pytest.raises(TypeError, match="a list of names"):
        read_columns([], "key")
    with pytest.raises(ValueError, match="errors='ignore'"):
        read_columns([], errors="ignore")
    for limit in (7, 1 << 31):
        with pytest.raises(ValueError, match="must be from 8"):
            read_columns([], limit=limit)


@given(st.lists(batches().map(built), min_size=1, max_size=4), st.integers(8, 2000))
def test_the_limit(given_inputs, limit):
    """No buffer is larger; and it is where it would be that the reading ends."""
    held: list[bytes | None] = [*given_inputs]
    error = attempt(held, COLUMNS, limit=limit)
    if isinstance(error, LimitError):
        with pytest.raises(LimitError, match=f"body {error.index}: .* more than {limit} "):
            same_everywhere(held, COLUMNS, limit=limit)
        held = held[: error.index]  # these are within it
    table = same_everywhere(held, COLUMNS, limit=limit)
    assert table.rows == len(rows_of(held))

    def check(column: Column) -> None:
        assert all(len(raw) <= limit for raw in column.buffers if raw is not None)
        for inner in (column.child, *column.fields):
            if inner is not None:
                check(inner)

    for column in (table.input, *table):
        check(column)


def test_the_limit_is_exact():
    data = build_batch([Record(value=bytes(100), key=bytes(99))])
    assert same_everywhere([data], limit=100).rows == 1
    with pytest.raises(LimitError, match="body 0: a column would take more than 99 bytes"):
        same_everywhere([data], limit=99)
    assert same_everywhere([data], ["key"], limit=99).rows == 1
    many = [build_batch([Record()]) for _ in range(4)]
    assert same_everywhere(many, ["key"], limit=32).rows == 4
    with pytest.raises(LimitError, match="body 3"):
        same_everywhere(many, ["key"], limit=31)


def test_in_arrow():
    pyarrow = require_module("pyarrow")
    old = build_batch([Record(n, 5, None, b"%d" % n) for n in range(9)], magic=1)
    given_inputs = [GOOD, None, old, GOOD * 5]
    for each in (given_inputs, []):
        table = read_columns(each, COLUMNS)
        batch = table.to_arrow()
        batch.validate(full=True)
        assert batch.num_rows == table.rows
        expected = {
            name: [[{"key": k, "value": v} for k, v in row] for row in values]
            if name == "headers"
            else values
            for name, values in table.to_pydict().items()
        }
        assert batch.to_pydict() == expected
    assert batch.schema.field("headers").type == pyarrow.list_(
        pyarrow.field(
            "item",
            pyarrow.struct(
                [
                    pyarrow.field("key", pyarrow.string(), nullable=False),
                    pyarrow.field("value", pyarrow.binary()),
                ]
            ),
            nullable=False,
        )
    )
