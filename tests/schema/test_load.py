"""The loader: all of Kafka's schema language, exact refusals, and no other error on any text."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import SchemaError
from kproto.schema.check import check_text
from kproto.schema.facts import schema_text
from kproto.schema.jsontext import lines
from kproto.schema.layout import layout
from kproto.schema.load import load_directory, load_message, parse_message, schemas_directory
from kproto.schema.model import MessageSchema, NewStruct
from kproto.schema.parse import MAX_NESTING
from kproto.schema.versions import MAX_VERSION, Versions

SHIPPED = sorted(schemas_directory().glob("k*/*.json"))

EVERYTHING = """
// A comment before all else: "with quotes".
{
  "apiKey": 1000, "type": "request", "listeners": ["broker", "controller"],
  "name": "EverythingRequest", /* a
  comment over lines */
  "aliases": ["AllRequest"],
  "validVersions": "0-4", "deprecatedVersions": "0-1", "flexibleVersions": "2+",
  "latestVersionUnstable": true,
  "commonStructs": [
    { "name": "Pair", "versions": "0+", "fields": [
      { "name": "Left", "type": "int32", "versions": "0+", "mapKey": true },
      { "name": "Right", "type": "string", "versions": "0+" } ] }
  ],
  "fields": [
    { "name": "Flag", "type": "bool", "versions": "0+", "default": "true" },
    { "name": "Tiny", "type": "int8", "versions": "0+", "default": "-1" },
    { "name": "Short", "type": "int16", "versions": "0+", "default": 7 },
    { "name": "UShort", "type": "uint16", "versions": "0+", "default": "0xffff" },
    { "name": "Int", "type": "int32", "versions": "0+", "default": "0x7fffffff" },
    { "name": "UInt", "type": "uint32", "versions": "0+", "default": "4294967295" },
    { "name": "Long", "type": "int64", "versions": "1+", "ignorable": true, "default": "-1" },
    { "name": "Double", "type": "float64", "versions": "0+", "default": "1.5" },
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://x" }, // not a comment
    { "name": "Id", "type": "uuid", "versions": "0+", "default": "AAAAAAAAAAAAAAAAAAAAAQ" },
    { "name": "Text", "type": "string", "versions": "0-1", "nullableVersions": "0+",
      "default": "null", "flexibleVersions": "none", "entityType": "groupId" },
    { "name": "Data", "type": "bytes", "versions": "0+", "zeroCopy": true },
    { "name": "Batch", "type": "records", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "0+",
      "default": "null" },
    { "name": "Pairs", "type": "[]Pair", "versions": "0+" },
    { "name": "One", "type": "Pair", "versions": "0+" },
    { "name": "Nested", "type": "[]Outer", "versions": "0+", "fields": [
      { "name": "Inner", "type": "Inner", "versions": "0+", "nullableVersions": "0+",
        "default": "null", "fields": [
        { "name": "isKRaftController", "type": "bool", "versions": "0+", "aliases": ["IsKRaft"] }
      ] } ] },
    { "name": "Tagged", "type": "int32", "taggedVersions": "2+", "tag": 0, "about": "Ours." }
  ]
}
"""


@pytest.mark.requirement("C-03")
def test_the_whole_language() -> None:
    schema = parse_message(EVERYTHING, "Everything.json", with_lines=True)
    fields = {item.name: item for item in schema.root.fields}
    assert (schema.name, schema.type, schema.api_key) == ("EverythingRequest", "request", 1000)
    assert schema.aliases == ("AllRequest",)
    assert (schema.valid_versions, schema.flexible_versions) == (Versions(0, 4), Versions(2, 32767))
    assert schema.deprecated_versions == Versions(0, 1)
    assert schema.latest_version_unstable
    assert schema.listeners == ("broker", "controller")
    assert [item.name for item in schema.structs] == ["Pair", "Inner", "Outer", "EverythingRequest"]
    assert {name: item.default for name, item in fields.items()} == {
        "Flag": True, "Tiny": -1, "Short": 7, "UShort": 65535, "Int": 0x7FFFFFFF,
        "UInt": 4294967295, "Long": -1, "Double": 1.5, "Url": "http://x",
        "Id": uuid.UUID(int=1), "Text": None, "Data": b"", "Batch": None, "Names": None,
        "Pairs": (), "One": NewStruct(), "Nested": (), "Tagged": 0,
    }  # fmt: skip
    assert fields["Text"].flexible_versions == Versions.NONE
    assert not schema.is_flexible(3, fields["Text"])
    assert fields["Tagged"].versions == Versions(2, MAX_VERSION), "defaults to taggedVersions"
    assert fields["Tagged"].is_tagged(2)
    assert not fields["Tagged"].is_tagged(1)
    assert fields["Data"].zero_copy
    assert fields["Long"].ignorable
    assert fields["Pairs"].type.inner_struct is fields["One"].type.inner_struct
    inner = schema.struct("Inner").fields[0]
    assert (inner.python_name, inner.aliases) == ("is_kraft_controller", ("IsKRaft",))
    assert inner.line == EVERYTHING[: EVERYTHING.index('"isKRaft')].count("\n") + 1


@pytest.mark.requirement("K455-18", "A-03")
def test_a_draft_may_leave_out_flexible_versions() -> None:
    """K455-18: Kafka's own generator refuses KIP-455's schemas for that."""
    schema = parse_message(minimal(flexibleVersions=None))
    assert schema.flexible_versions == Versions.NONE


def test_a_message_may_have_no_versions() -> None:
    """So Kafka 4 keeps api keys 4 to 7."""
    text = json.dumps(
        {"apiKey": 4, "type": "request", "name": "GoneRequest", "validVersions": "none"}
    )
    assert not parse_message(text).valid_versions


def test_types_of_messages() -> None:
    for kind in ("header", "data", "metadata", "coordinator-key", "coordinator-value"):
        assert parse_message(minimal(type=kind, apiKey=None)).type == kind


def minimal(*fields: dict[str, Any], **properties: Any) -> str:
    """A small valid request with these fields; a property of None is left out."""
    message = {
        "apiKey": 7, "type": "request", "name": "SmallRequest", "validVersions": "0-3",
        "flexibleVersions": "2+", **properties,
        "fields": list(fields) or [{"name": "A", "type": "int8", "versions": "0+"}],
    }  # fmt: skip
    present = {key: value for key, value in message.items() if value is not None}
    return json.dumps(present, indent=1)


def one(**properties: Any) -> str:
    """``minimal`` with one field ``F``, an int32 unless told otherwise."""
    node = {"name": "F", "type": "int32", "versions": "0+", **properties}
    return minimal({key: value for key, value in node.items() if value is not None})


REFUSALS = [
    # text, field, part of the problem, part of the remedy, text on the line it points to
    (one(type="boolean"), "F", "'boolean' is not a type", "did you mean bool?", "boolean"),
    (one(type="long"), "F", "is not a type", "int64", "long"),
    (one(type="in32"), "F", "is not a type", "int32", "in32"),
    (one(type="[][]int32"), "F", "array cannot hold arrays", "structs", "[][]"),
    (one(type="[]records"), "F", "array cannot hold records", "structs", "[]records"),
    (one(type="Thing"), "F", "struct Thing is not specified", "commonStructs", "Thing"),
    (one(versions=None), "F", "versions is missing", '"versions": "0+"', "{"),
    (one(versions="3-1"), "F", "must rise", "2+", "3-1"),
    (one(versions="x"), "F", "not a version range", "2+", '"x"'),
    (one(versions="\uff11+"), "F", "not a version range", "2+", "versions"),
    (one(nullableVersions="0+"), "F", "int32 cannot be nullable", "remove", "nullableVersions"),
    (one(default="12x"), "F", "not an integer", "12", "12x"),
    (one(default="2147483648"), "F", "does not fit int32", "2147483647", "2147483648"),
    (one(type="bool", default="yes"), "F", "not a boolean", "true", "yes"),
    (one(type="uuid", default="abc"), "F", "not a uuid", "22 characters", "abc"),
    (one(type="[]int32", default="[1]"), "F", "not possible for array", "null", "[1]"),
    (one(type="float64", default="much"), "F", "not a number", "1.5", "much"),
    (one(type="string", default="\ud800"), "F", "not valid Unicode", "surrogate", "default"),
    (one(tag=0), "F", "tag 0 without taggedVersions", "taggedVersions", '"tag"'),
    (one(taggedVersions="2+"), "F", "without a tag", '"tag"', "taggedVersions"),
    (one(tag=0, taggedVersions="1+"), "F", "outside the message's flexibleVersions", "flexible",
     "taggedVersions"),
    (one(tag=0, taggedVersions="2+", versions="3+"), "F", "outside versions 3+", "tag only",
     "taggedVersions"),
    (one(tag=0, taggedVersions="2+", type="string", nullableVersions="3+"), "F", "nullable at 3+",
     "every tagged version", "taggedVersions"),
    (one(tag=-1, taggedVersions="2+"), "F", "not an integer", "plain number", '"tag"'),
    (one(zeroCopy=True), "F", "zeroCopy is for bytes", "remove", "zeroCopy"),
    (one(flexibleVersions="none"), "F", "only string and bytes", "remove", '"flexibleVersions"'),
    (one(ignorabel=True), "F", "no property 'ignorabel'", "ignorable", "ignorabel"),
    (one(name="a-b"), "", "cannot be named 'a-b'", "letter", "a-b"),
    (one(mapKey="maybe"), "F", "mapKey must be true or false", "true", "mapKey"),
    (minimal(apiKey=None), "", "needs an api key", "apiKey", "type"),
    (minimal(apiKey=70000), "", "not an integer from 0 to 32767", "number", "apiKey"),
    (minimal(type="question"), "", "not a message type", "request", "question"),
    (minimal(validVersions=None), "", "validVersions is missing", "validVersions", "{"),
    (minimal(validVersions="1+"), "", "validVersions must end", "1-N", "validVersions"),
    (minimal(name="small"), "", "'small' cannot name a struct", "capital", "small"),
    (minimal(name="None"), "", "reserved in Python", "another", "None"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "field", "problem", "remedy", "pointed_at"), REFUSALS)
def test_refusals_name_line_field_and_remedy(text, field, problem, remedy, pointed_at):
    with pytest.raises(SchemaError) as caught:
        parse_message(text, "Small.json")
    error = caught.value
    assert error.source == "Small.json"
    assert problem in error.problem
    assert remedy in error.remedy
    assert error.field == field
    assert error.line is not None
    assert pointed_at in text.splitlines()[error.line - 1]
    assert "\n" not in str(error)
    assert str(error).startswith(f"Small.json:{error.line}: ")


def test_nested_fields_are_named_by_their_path() -> None:
    deep = {"name": "Inner", "type": "[]In", "versions": "0+", "fields": [
        {"name": "Bad", "type": "int", "versions": "0+"}]}  # fmt: skip
    outer = {"name": "Outer", "type": "[]Out", "versions": "0+", "fields": [deep]}
    with pytest.raises(SchemaError, match=r"Outer\.Inner\.Bad") as caught:
        parse_message(minimal(outer))
    assert caught.value.field == "Outer.Inner.Bad"


def field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **more}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (minimal(field("A", "int8"), field("A", "int8")), "collides with the field A"),
        (minimal(field("fooBar", "int8"), field("FooBar", "int8")), "collides with"),
        (
            minimal(
                field("A", "int8", tag=0, taggedVersions="2+"),
                field("B", "int8", tag=0, taggedVersions="2+"),
            ),
            "tag 0 is taken by the field A",
        ),
        (
            minimal(field("A", "S", fields=[]), field("B", "S", fields=[])),
            "struct S is specified twice",
        ),
        (
            minimal(
                field("A", "S"),
                commonStructs=[{"name": "S", "versions": "0+", "fields": [field("Again", "S")]}],
            ),
            "contains itself",
        ),
        (
            minimal(
                field("A", "S", fields=[field("X", "int8")]),
                commonStructs=[{"name": "S", "versions": "0+", "fields": []}],
            ),
            "is a common struct",
        ),
        (
            minimal(commonStructs=[{"name": "S", "versions": "0+", "fields": []}] * 2),
            "struct S is specified twice",
        ),
        (minimal(field("A", "SmallRequest", fields=[])), "specified twice"),
        (minimal(field("A", "int8", fields=[field("B", "int8")])), "cannot have fields"),
    ],
)
def test_structs_and_names_that_cannot_be(text: str, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_message(text)


def test_nesting_is_bounded() -> None:
    node: dict[str, Any] = field("Leaf", "int8")
    for depth in range(MAX_NESTING - 1):
        node = field("F", f"S{depth}", fields=[node])
    parse_message(minimal(node))
    with pytest.raises(SchemaError, match="nest more than"):
        parse_message(minimal(field("F", "Top", fields=[node])))
    with pytest.raises(SchemaError, match="nested too deeply"):
        parse_message("[" * 100_000)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "not valid JSON"),
        ("{\n\n,}", 3, "not valid JSON"),
        ('{"a": 1,\n"b" 2\n}', 2, "not valid JSON"),
        ('{"type": "data",\n"type": "header"}', 2, "given twice"),
        ('{"apiKey": NaN}', None, "NaN"),
        ('{"apiKey": ' + "9" * 5000 + "}", None, "not valid JSON"),
        ("[]", 1, "must be a JSON object"),
        ("{} {}", 1, "extra data"),
    ],
)
def test_text_that_is_no_json(text: str, line: int | None, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        parse_message(text)
    assert caught.value.line == line


def test_a_key_twice_with_one_value_is_kafkas_own_habit() -> None:
    text = minimal().replace('"type": "int8"', '"type": "int8", "type": "int8"')
    assert parse_message(text).root.fields[0].type.kind == "int8"


@pytest.mark.requirement("A-35")
def test_boolean_is_taken_leniently() -> None:
    """A-35: KIP-860's page writes ``boolean``."""
    with pytest.raises(SchemaError, match="--lenient"):
        parse_message(one(type="boolean"))
    assert parse_message(one(type="boolean"), lenient=True).root.fields[0].type.kind == "bool"
    assert str(parse_message(one(type="[]boolean"), lenient=True).root.fields[0].type) == "[]bool"


def test_deep_nesting_costs_no_memory_to_locate() -> None:
    deep = "[" * 3000 + "]" * 3000
    found = lines(f'{{"a": {deep},\n"b": 1}}')
    assert max(map(len, found)) <= 80
    assert found[("b",)] == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        load_message(tmp_path / "Nowhere.json")
    (tmp_path / "Binary.json").write_bytes(b"{\n\xff}")
    with pytest.raises(SchemaError, match=r"Binary\.json:2: is not UTF-8"):
        load_message(tmp_path / "Binary.json")
    with pytest.raises(SchemaError, match="is not a folder"):
        load_directory(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SchemaError, match="contains no"):
        load_directory(tmp_path / "empty")


def test_a_byte_order_mark_is_stepped_over(tmp_path: Path) -> None:
    (tmp_path / "SmallRequest.json").write_bytes(b"\xef\xbb\xbf" + minimal().encode())
    assert list(load_directory(tmp_path)) == ["SmallRequest"]


def test_two_files_of_one_message(tmp_path: Path) -> None:
    (tmp_path / "A.json").write_text(minimal())
    (tmp_path / "B.json").write_text(minimal())
    with pytest.raises(SchemaError, match=r"B\.json:1: message SmallRequest is also in"):
        load_directory(tmp_path)


# -- any text ---------------------------------------------------------------------------------

TEXTS = [path.read_text("utf-8") for path in SHIPPED[:: max(1, len(SHIPPED) // 12)]] + [EVERYTHING]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["0+", "none", "1-2", "null", "[]int32", "[]Thing", "int8", "records"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["name", "type", "versions", "fields", "tag", "default"]), inner,
        max_size=4),
    max_leaves=6,
)  # fmt: skip


@st.composite
def damaged_texts(draw: st.DrawFn) -> str:
    """A real schema with spans cut, doubled or replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 40)))
        between = draw(st.sampled_from(["", text[start:stop] * 2]) | st.text(max_size=6))
        text = text[:start] + between + text[stop:]
    return text


@st.composite
def damaged_documents(draw: st.DrawFn) -> str:
    """A real schema, still JSON, with values anywhere in it replaced, removed or moved."""
    document = json.loads(draw(st.sampled_from(TEXTS[:-1])))
    for _ in range(draw(st.integers(1, 4))):
        holders = list(containers(document))
        holder = draw(st.sampled_from(holders))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            continue
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            holder[key] = draw(json_values | st.sampled_from(holders).map(copied))
        else:
            del holder[key]
    return json.dumps(document)


def containers(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(st.text() | damaged_texts() | damaged_documents())
def test_any_text_loads_or_raises_schema_error(text: str) -> None:
    try:
        schema = parse_message(text, with_lines=True)
    except SchemaError as raised:
        error = raised
    else:
        check_text(text, "x")
        assert_same(schema, parse_message(schema_text(schema)))
        return
    assert "\n" not in str(error)
    assert error.remedy
    assert error.line is None or 1 <= error.line <= text.count("\n") + 1
    assert {item.rule for item in check_text(text, "x")} == {"load"}


def assert_same(schema: MessageSchema, other: MessageSchema) -> None:
    """Equal in everything but lines and source."""
    assert flat(schema) == flat(other)
    for version in schema.valid_versions:
        if version > 40:
            break
        assert layout(schema, version) == layout(other, version)


def flat(schema: MessageSchema) -> Any:
    head = {
        name: getattr(schema, name)
        for name in (
            "name", "type", "valid_versions", "flexible_versions", "api_key", "listeners",
            "deprecated_versions", "latest_version_unstable", "aliases", "about",
        )
    }  # fmt: skip
    structs = {
        struct.name: (struct.aliases, [flat_field(item) for item in struct.fields])
        for struct in schema.structs
    }
    return head, structs


def flat_field(item: Any) -> Any:
    names = [name for name in item.__slots__ if name not in ("line", "type", "default")]
    values = {name: getattr(item, name) for name in names}
    return {**values, "type": str(item.type), "default": repr(item.default)}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_files_are_written_as_the_importer_writes(path: Path) -> None:
    schema = load_message(path)
    assert schema_text(schema) == path.read_text("utf-8")
    assert path.stem == schema.name
