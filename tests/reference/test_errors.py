"""The table of decode errors in ``kproto.reference``, row by row: offset, path and text."""

import re
from typing import Any

import pytest

from kproto import reference
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.schema.load import parse_message

# Version 0 is not flexible; tag 4 came with version 2.
SCHEMA = parse_message("""
{ "apiKey": 900, "type": "request", "name": "SampleRequest",
  "validVersions": "0-2", "flexibleVersions": "1+", "fields": [
  { "name": "Id", "type": "int32", "versions": "0+" },
  { "name": "Names", "type": "[]string", "versions": "0+" },
  { "name": "Items", "type": "[]Item", "versions": "0+", "nullableVersions": "0+", "fields": [
    { "name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "1+" },
    { "name": "Data", "type": "bytes", "versions": "0+" },
    { "name": "Epochs", "type": "[]int32", "versions": "0+" } ] },
  { "name": "Cursor", "type": "Cursor", "versions": "0+", "nullableVersions": "0+",
    "default": "null", "fields": [ { "name": "At", "type": "int64", "versions": "0+" } ] },
  { "name": "Note", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 1 },
  { "name": "Last", "type": "Last", "versions": "1+", "taggedVersions": "1+", "tag": 3,
    "nullableVersions": "1+", "default": "null",
    "fields": [ { "name": "At", "type": "int16", "versions": "1+" } ] },
  { "name": "Extra", "type": "int8", "versions": "2+", "taggedVersions": "2+", "tag": 4 } ] }
""")

START = "00000007 01 01 ff"  # Id 7, no names, no items, a null cursor: the tags begin at byte 7
ITEM = "00000007 01 02"  # ... one item: its RackId begins at byte 6

ROWS = [
    # (version, body, offset, path, text)
    pytest.param(1, "000000", 0, "id", "bytes needed: 4, left: 3", id="SHORT number"),
    pytest.param(1, "", 0, "id", "bytes needed: 4, left: 0", id="SHORT nothing at all"),
    pytest.param(0, "00000007 0000", 4, "names", "bytes needed: 4, left: 2", id="SHORT count"),
    pytest.param(
        0,
        "00000007 00000001 0005 6162 0000",
        8,
        "names[0]",
        "bytes needed: 5, left: 4",
        id="SHORT content",
    ),
    pytest.param(
        1, ITEM + "026104 0102", 8, "items[0].data", "bytes needed: 3, left: 2", id="SHORT bytes"
    ),
    pytest.param(
        1, "00000007 0101 01 00", 7, "cursor.at", "bytes needed: 8, left: 1", id="SHORT in struct"
    ),
    pytest.param(1, "00000007", 4, "names", "unsigned varint is cut off", id="VARCUT F"),
    pytest.param(1, "00000007 80", 4, "names", "unsigned varint is cut off", id="VARCUT F 2"),
    pytest.param(1, START, 7, "", "unsigned varint is cut off", id="VARCUT S"),
    pytest.param(
        1, START + "01 8080", 8, "", "unsigned varint is cut off", id="VARCUT T in the number"
    ),
    pytest.param(
        1, START + "01 05 80", 8, "", "unsigned varint is cut off", id="VARCUT T in the size"
    ),
    pytest.param(
        1,
        "00000007 808080808001",
        4,
        "names",
        "unsigned varint is longer than 5 bytes or above 4294967295",
        id="VARBIG six bytes",
    ),
    pytest.param(
        1,
        "00000007 8080808010",
        4,
        "names",
        "unsigned varint is longer than 5 bytes or above 4294967295",
        id="VARBIG 2^32",
    ),
    pytest.param(
        1,
        START + "ffffffff1f",
        7,
        "",
        "unsigned varint is longer than 5 bytes or above 4294967295",
        id="VARBIG S",
    ),
    pytest.param(
        1, "00000007 8180808008", 4, "names", "length 2147483648 is above 2147483647", id="LONG"
    ),
    pytest.param(
        0,
        "00000007 fffffffe",
        4,
        "names",
        "length -2 is negative, and only -1 means null",
        id="NEG",
    ),
    pytest.param(
        0,
        "00000007 00000000 80000000",
        8,
        "items",
        "length -2147483648 is negative, and only -1 means null",
        id="NEG of a nullable field",
    ),
    pytest.param(
        1, "00000007 00", 4, "names", "non-nullable field names was serialized as null", id="NULL"
    ),
    pytest.param(
        1,
        "00000007 03 0261 00",
        7,
        "names[1]",
        "non-nullable field names element was serialized as null",
        id="NULL element",
    ),
    pytest.param(
        0,
        "00000007 00000000 00000001 ffff 00000000 00000000",
        12,
        "items[0].rack_id",
        "non-nullable field rackId was serialized as null",
        id="NULL at this version only",
    ),
    pytest.param(
        1,
        "00000007 02 818002",
        5,
        "names[0]",
        "string field names element had invalid length 32768",
        id="STRLEN before SHORT",
    ),
    pytest.param(
        1,
        ITEM + "03c328 01 01 00 ff 00",
        6,
        "items[0].rack_id",
        "string field rackId is not valid UTF-8",
        id="UTF8",
    ),
    pytest.param(1, "00000007 01 01", 6, "cursor", "bytes needed: 1, left: 0", id="SHORT presence"),
    pytest.param(
        1,
        "00000007 03 01",
        4,
        "names",
        "Tried to allocate a collection of size 2, but there are only 1 bytes remaining.",
        id="ALLOC",
    ),
    pytest.param(
        1,
        "00000007 01 02 0000 00",
        5,
        "items",
        "Tried to allocate a collection of size 1, but there are only 3 bytes remaining.",
        id="ALLOC structs: an item takes 4",
    ),
    pytest.param(
        1,
        ITEM + "00 01 8080808008 00",
        8,
        "items[0].epochs",
        "Tried to allocate a collection of size 2147483647, but there are only 1 bytes remaining.",
        id="ALLOC the largest count",
    ),
    pytest.param(
        1, "00000007 01 01 02", 6, "cursor", "presence marker 2 is neither -1 nor 1", id="MARK"
    ),
    pytest.param(
        1,
        START + "01 03 01 02",
        10,
        "last",
        "presence marker 2 is neither 0 nor 1",
        id="MARK in a tag",
    ),
    pytest.param(
        1,
        START + "02 05 00 06",
        7,
        "",
        "Tried to read 2 tagged fields, but there are only 3 bytes remaining.",
        id="TAGS",
    ),
    pytest.param(
        1, START + "01 8080808008 00", 8, "", "tag 2147483648 is above 2147483647", id="TAGBIG"
    ),
    pytest.param(
        1,
        START + "02 05 00 05 00",
        10,
        "",
        "tag 5 comes after tag 5, but is not higher than it",
        id="ORDER twice",
    ),
    pytest.param(
        1,
        START + "02 05 00 01 02 01",
        10,
        "",
        "tag 1 comes after tag 5, but is not higher than it",
        id="ORDER a known tag after an unknown one",
    ),
    pytest.param(
        1,
        ITEM + "00 01 01 02 05 00 05 00",
        12,
        "items[0]",
        "tag 5 comes after tag 5, but is not higher than it",
        id="ORDER in a struct",
    ),
    pytest.param(
        1, START + "01 05 8080808008", 8, "", "length 2147483648 is above 2147483647", id="TAGLEN"
    ),
    pytest.param(
        1, START + "01 04 01 00", 8, "extra", "Tag 4 is not valid for version 1", id="TAGVER"
    ),
    pytest.param(1, START + "01 01 09 0161", 8, "note", "bytes needed: 9, left: 2", id="TAGCUT"),
    pytest.param(
        1,
        START + "01 05 09 01",
        8,
        "unknown_tags[5]",
        "bytes needed: 9, left: 1",
        id="TAGCUT unknown",
    ),
    pytest.param(
        1,
        ITEM + "00 01 01 01 05 09 01",
        10,
        "items[0].unknown_tags[5]",
        "bytes needed: 9, left: 1",
        id="TAGCUT unknown in a struct",
    ),
    pytest.param(
        1,
        START + "01 01 03 0261",
        8,
        "note",
        "bytes needed: 3, left: 2",
        id="TAGCUT before the value is read",
    ),
    pytest.param(
        1,
        START + "01 01 01 0261",
        8,
        "note",
        "tagged field note has size 1, but its value took 2 bytes",
        id="TAGFIT too small",
    ),
    pytest.param(
        1,
        START + "01 01 03 026162",
        8,
        "note",
        "tagged field note has size 3, but its value took 2 bytes",
        id="TAGFIT too large",
    ),
    pytest.param(
        1,
        START + "01 01 01 0961",
        10,
        "note",
        "bytes needed: 8, left: 1",
        id="SHORT in a tag, at its value",
    ),
    pytest.param(
        1,
        START + "01 03 01 01",
        11,
        "last.at",
        "bytes needed: 2, left: 0",
        id="SHORT in a tag's struct",
    ),
    pytest.param(1, START + "00 0102", 8, "", "bytes left over after the message: 2", id="TRAIL"),
]


@pytest.mark.parametrize(("version", "body", "offset", "path", "text"), ROWS)
def test_decode_errors(version: int, body: str, offset: int, path: str, text: str) -> None:
    data = bytes.fromhex(body)
    with pytest.raises(DecodeError) as refused:
        reference.decode(SCHEMA, version, data)
    error = refused.value
    assert (error.offset, error.path, error.problem) == (offset, path, text)
    with pytest.raises(DecodeError) as spans_refused:
        reference.fields(SCHEMA, version, data)
    assert str(spans_refused.value) == str(error)


def test_every_row_of_the_table_is_shown() -> None:
    documented = re.findall(r"^([A-Z]+\d*) {2,}\S", reference.__doc__ or "", re.MULTILINE)
    shown = {str(row.id).split()[0] for row in ROWS}
    assert set(documented) == shown


def test_trailing_bytes_may_be_left_alone() -> None:
    data = bytes.fromhex(START + "00 0102")
    tree = reference.decode(SCHEMA, 1, data, allow_trailing=True)
    assert tree == reference.decode(SCHEMA, 1, data[:-2])
    assert reference.fields(SCHEMA, 1, data, allow_trailing=True) == reference.fields(
        SCHEMA, 1, data[:-2]
    )


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"id": 2**31}, "id: 2147483648 is out of range for int32"),
        ({"id": "1"}, "id: str is not a value for int32"),
        ({"id": None}, "id: NoneType is not a value for int32"),
        ({"names": None}, "names: non-nullable field names is null"),
        ({"names": ["a", None]}, "names[1]: non-nullable field names element is null"),
        ({"names": ["x" * 32768]}, "names[0]: 'namesElement' field is too long to be serialized"),
        ({"note": "\u00e9" * 16384}, "note: 'note' field is too long to be serialized"),
        ({"note": "\ud800"}, "note: a string with a lone surrogate has no UTF-8"),
        ({"items": [{"data": "x"}]}, "items[0].data: str is not a value for bytes"),
        ({"items": [None]}, "items[0]: NoneType is not a value for Item"),
        ({"items": 5}, "items: int is not a value for an array"),
        ({"items": [{"rack": ""}]}, "items[0]: Item has no field 'rack'"),
        ({"unknown_tags": {1: b""}}, "Attempted to use tag 1 as an undefined tag."),
        ({"unknown_tags": {-1: b""}}, "tag -1 is not between 0 and 2147483647"),
    ],
)
def test_encode_errors(tree: dict[str, Any], text: str) -> None:
    with pytest.raises(EncodeError) as refused:
        reference.encode(SCHEMA, 1, tree)
    assert str(refused.value) == text


@pytest.mark.parametrize("version", [-1, 3])
def test_a_version_the_schema_lacks(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="SampleRequest has no version"):
        reference.encode(SCHEMA, version, {})
    with pytest.raises(UnsupportedVersionError, match="SampleRequest has no version"):
        reference.decode(SCHEMA, version, b"")


def test_spans() -> None:
    tree = {"id": 7, "names": ["ab"], "cursor": {"at": 1}, "note": "x", "unknown_tags": {9: b"yz"}}
    data = reference.encode(SCHEMA, 1, {**tree, "items": [{"epochs": [5]}]})
    spans = [(s.offset, s.length, s.path, s.type) for s in reference.fields(SCHEMA, 1, data)]
    assert spans == [
        (0, 4, "id", "int32"),
        (4, 4, "names", "[]string"),
        (4, 1, "names", "count"),
        (5, 3, "names[0]", "string"),
        (8, 9, "items", "[]Item"),
        (8, 1, "items", "count"),
        (9, 8, "items[0]", "Item"),
        (9, 1, "items[0].rack_id", "string"),
        (10, 1, "items[0].data", "bytes"),
        (11, 5, "items[0].epochs", "[]int32"),
        (11, 1, "items[0].epochs", "count"),
        (12, 4, "items[0].epochs[0]", "int32"),
        (16, 1, "items[0]", "tagged fields"),
        (16, 1, "items[0]", "tag count"),
        (17, 10, "cursor", "Cursor"),
        (17, 1, "cursor", "presence"),
        (18, 8, "cursor.at", "int64"),
        (26, 1, "cursor", "tagged fields"),
        (26, 1, "cursor", "tag count"),
        (27, 9, "", "tagged fields"),
        (27, 1, "", "tag count"),
        (28, 2, "note", "tag"),
        (30, 2, "note", "string"),
        (32, 2, "unknown_tags[9]", "tag"),
        (34, 2, "unknown_tags[9]", "unknown tag"),
    ]
