"""The importer on small jars of our own: what it merges, what it lists, what it refuses."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kproto.errors import SchemaError
from kproto.schema.importer import ImportReport, import_schemas
from kproto.schema.jars import release_order
from kproto.schema.load import load_directory
from kproto.schema.model import MessageSchema
from kproto.schema.versions import Versions

Jar: TypeAlias = Callable[..., Path]
LICENCE = "// Licensed to somebody under some licence.\n"


@pytest.fixture
def jar(tmp_path: Path) -> Jar:
    """Make a jar: ``jar("kafka-clients", "3.9.0", message, ...)``."""

    def make(
        artifact: str, release: str, *messages: dict[str, Any], folder: str = "common/message"
    ) -> Path:
        path = tmp_path / f"{artifact}-{release}.jar"
        with zipfile.ZipFile(path, "w") as out:
            out.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
            out.writestr("elsewhere/Other.json", "not a schema")
            for message in messages:
                out.writestr(f"{folder}/{message['name']}.json", LICENCE + json.dumps(message))
        return path

    return make


def request(*fields: dict[str, Any], versions: str, **more: Any) -> dict[str, Any]:
    return {
        "apiKey": 9, "type": "request", "name": "NineRequest", "validVersions": versions,
        "flexibleVersions": "3+", "fields": list(fields), **more,
    }  # fmt: skip


def field(name: str, kind: str = "int32", versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, "about": "Theirs.", **more}


def imported(report: ImportReport) -> dict[str, MessageSchema]:
    return load_directory(report.into)


def merge_two(
    jar: Jar, tmp_path: Path, old: dict[str, Any], new: dict[str, Any]
) -> tuple[MessageSchema, ImportReport]:
    report = import_schemas(
        [jar("kafka-clients", "3.9.0", old), jar("kafka-clients", "4.0.0", new)], tmp_path / "out"
    )
    (schema,) = imported(report).values()
    return schema, report


def test_versions_dropped_by_the_newer_release_come_back(jar: Jar, tmp_path: Path) -> None:
    old = request(
        field("Gone", versions="0-1"),
        field("Kept"),
        field("Before", "string", "0-2", nullableVersions="0+", ignorable=True),
        versions="0-4",
        deprecatedVersions="0-2",
        listeners=["zkBroker"],
    )
    new = request(field("Kept"), field("Fresh", versions="5+", default="7"), versions="3-5",
                  listeners=["broker"])  # fmt: skip
    schema, _ = merge_two(jar, tmp_path, old, new)
    assert schema.valid_versions == Versions(0, 5)
    assert schema.deprecated_versions == Versions(0, 2)
    assert schema.listeners == ("broker",)
    ranges = {item.name: str(item.versions) for item in schema.root.fields}
    assert ranges == {"Gone": "0-1", "Kept": "0+", "Before": "0-2", "Fresh": "5+"}
    assert [item.name for item in schema.root.fields] == ["Gone", "Kept", "Before", "Fresh"]
    before = schema.root.field("Before")
    assert before.ignorable
    assert before.is_nullable(2)
    assert schema.root.field("Fresh").default == 7
    assert "Theirs" not in (tmp_path / "out" / "NineRequest.json").read_text()
    assert "Licensed" not in (tmp_path / "out" / "NineRequest.json").read_text()


def test_a_range_cut_by_the_newer_release_is_fitted_again(jar: Jar, tmp_path: Path) -> None:
    old = request(field("A", "string", nullableVersions="2+"), versions="0-3")
    new = request(field("A", "string", versions="3+", nullableVersions="3+"), versions="3-4")
    schema, _ = merge_two(jar, tmp_path, old, new)
    item = schema.root.field("A")
    assert (str(item.versions), str(item.nullable_versions)) == ("0+", "2+")


def test_renames_leave_aliases(jar: Jar, tmp_path: Path) -> None:
    old = request(
        field("Count"), field("OldItems", "[]OldItem", fields=[field("Id")]), versions="0",
        name="OldNineRequest",
    )  # fmt: skip
    new = request(field("Count"), field("Items", "[]Item", fields=[field("Key")]), versions="0-1")
    schema, report = merge_two(jar, tmp_path, old, new)
    assert (schema.name, schema.aliases) == ("NineRequest", ("OldNineRequest",))
    items = schema.root.field("OldItems")
    assert items.name == "Items"
    inner = items.type.inner_struct
    assert inner is not None
    assert (inner.name, inner.aliases) == ("Item", ("OldItem",))
    assert inner.field("Id").name == "Key"
    assert list(imported(report)) == ["NineRequest"]


def test_a_stable_layout_wins_over_an_unstable_one(jar: Jar, tmp_path: Path) -> None:
    old = request(field("A"), field("Draft"), versions="0-1", latestVersionUnstable=True)
    new = request(field("A"), field("Final", "int64", "1+"), versions="0-1")
    old["fields"][1]["versions"] = "1+"
    schema, report = merge_two(jar, tmp_path, old, new)
    assert [item.name for item in schema.root.fields if 1 in item.versions] == ["A", "Final"]
    ((name, conflict),) = report.conflicts
    assert (name, conflict.version, conflict.chosen, conflict.unstable_in) == (
        "NineRequest", 1, "4.0.0", "3.9.0",
    )  # fmt: skip
    notes = json.loads((tmp_path / "out" / "provenance" / "conflicts.json").read_text())
    assert notes["layouts"]["NineRequest"][0]["rejected"] == "3.9.0"


def test_an_older_stable_layout_wins_over_a_newer_unstable_one(jar: Jar, tmp_path: Path) -> None:
    old = request(field("A"), field("B", versions="1+"), versions="0-1")
    new = request(field("A"), versions="0-1", latestVersionUnstable=True)
    schema, report = merge_two(jar, tmp_path, old, new)
    assert [item.name for item in schema.root.fields] == ["A", "B"]
    assert [item.chosen for _, item in report.conflicts] == ["3.9.0"]


def test_the_response_of_an_unstable_request_is_unstable(jar: Jar, tmp_path: Path) -> None:
    def answer(*fields: dict[str, Any]) -> dict[str, Any]:
        return {**request(*fields, versions="0"), "type": "response", "name": "NineResponse"}

    asked = request(field("A"), versions="0", latestVersionUnstable=True)
    report = import_schemas(
        [
            jar("kafka-clients", "3.9.0", asked, answer(field("A"))),
            jar("kafka-clients", "4.0.0", request(field("A"), versions="0"),
                answer(field("A"), field("B"))),
        ],
        tmp_path / "out",
    )  # fmt: skip
    assert [name for name, _ in report.conflicts] == ["NineResponse"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([field("A")], [field("A"), field("B")]),
        ([field("A"), field("B")], [field("A")]),
        ([field("A"), field("B", "int64")], [field("B", "int64"), field("A")]),
        ([field("A", "string")], [field("A", "string", nullableVersions="0+")]),
        ([field("A")], [field("A", "int64")]),
    ],
    ids=["added", "removed", "reordered", "nullable", "retyped"],
)
def test_stable_releases_that_disagree_are_refused(jar, tmp_path, old, new):
    with pytest.raises(SchemaError, match="NineRequest"):
        merge_two(jar, tmp_path, request(*old, versions="0"), request(*new, versions="0"))
    assert not (tmp_path / "out").exists(), "a refused import writes nothing"


def test_tagged_fields_may_be_added_to_a_version(jar: Jar, tmp_path: Path) -> None:
    old = request(field("A"), versions="0-3")
    new = request(field("A"), field("B", versions="3+", taggedVersions="3+", tag=0),
                  versions="0-3")  # fmt: skip
    schema, report = merge_two(jar, tmp_path, old, new)
    assert schema.root.field("B").is_tagged(3)
    assert [(item.version, item.unstable_in) for _, item in report.conflicts] == [(3, "")]


def test_ignorable_comes_from_a_release_where_it_means_something(jar: Jar, tmp_path: Path) -> None:
    """As with the header's ClientId: absent at version 0 only, which the newer has no more."""
    old = request(field("A", versions="1+", ignorable=True), versions="0-2")
    new = request(field("A", versions="1+", default="5"), versions="1-2")
    schema, report = merge_two(jar, tmp_path, old, new)
    assert schema.root.field("A").ignorable
    assert schema.root.field("A").default == 5
    assert {item.property: item.chosen for _, item in report.value_changes} == {
        "ignorable": "3.9.0",
        "default": "4.0.0",
    }


def test_holes_between_versions_are_refused(jar: Jar, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="hole at 1"):
        merge_two(
            jar, tmp_path, request(field("A"), versions="0"), request(field("A"), versions="2")
        )


def test_a_message_that_lost_all_versions_keeps_the_older_ones(jar: Jar, tmp_path: Path) -> None:
    gone = {"apiKey": 9, "type": "request", "name": "NineRequest", "validVersions": "none"}
    schema, _ = merge_two(jar, tmp_path, request(field("A"), versions="0-3"), gone)
    assert schema.valid_versions == Versions(0, 3)
    assert schema.flexible_versions == Versions(3, 32767)


def test_coordinator_keys_are_renumbered(jar: Jar, tmp_path: Path) -> None:
    old = {"type": "data", "name": "ThingKey", "validVersions": "2-3", "flexibleVersions": "none",
           "fields": [field("group", "string", "2+")]}  # fmt: skip

    def key(name: str, number: int) -> dict[str, Any]:
        return {"apiKey": number, "type": "coordinator-key", "name": name, "validVersions": "0",
                "flexibleVersions": "none", "fields": [field("group", "string", "0")]}  # fmt: skip

    report = import_schemas(
        [
            jar("kafka-thing-coordinator", "3.9.0", old),
            jar("kafka-thing-coordinator", "4.0.0", key("ThingKey", 3), key("LegacyThingKey", 2)),
        ],
        tmp_path / "out",
    )
    found = imported(report)
    assert {name: str(item.valid_versions) for name, item in found.items()} == {
        "ThingKey": "0",
        "LegacyThingKey": "0",
    }
    assert {(item.version, item.now) for item in report.renumbered} == {
        (2, "LegacyThingKey"),
        (3, "ThingKey"),
    }


def test_about_is_ours_and_stays(jar: Jar, tmp_path: Path) -> None:
    sources = [jar("kafka-clients", "4.0.0", request(field("A"), versions="0"))]
    out = tmp_path / "out"
    import_schemas(sources, out)
    path = out / "NineRequest.json"
    path.write_text(path.read_text().replace('"name": "Nine', '"about": "Ours.",\n  "name": "Nine'))
    import_schemas(sources, out)
    assert load_directory(out)["NineRequest"].about == "Ours."


def test_folders_and_other_places_in_jars(jar: Jar, tmp_path: Path) -> None:
    folder = tmp_path / "messages-4.0.0"
    folder.mkdir()
    (folder / "NineRequest.json").write_text(json.dumps(request(field("A"), versions="0")))
    record = {**request(field("A"), versions="0"), "type": "metadata", "name": "NineRecord"}
    other = {**record, "type": "data", "name": "NineData"}
    sources = [
        folder,
        jar("kafka-metadata", "4.0.0", record, folder="common/metadata"),
        jar("kafka-storage", "4.0.0", {**other, "apiKey": None}, folder="message"),
        jar("kafka-server", "4.0.0"),
    ]
    report = import_schemas(sources, tmp_path / "out")
    assert set(imported(report)) == {"NineRequest", "NineRecord", "NineData"}
    assert report.without_json == {"4.0.0": ["kafka-server"]}


def test_sources_that_cannot_be_read(jar: Jar, tmp_path: Path) -> None:
    out = tmp_path / "out"
    broken = tmp_path / "kafka-clients-4.0.0.jar"
    broken.write_bytes(b"PK\x03\x04 no more")
    with pytest.raises(SchemaError, match="cannot be read as a jar"):
        import_schemas([broken], out)
    with pytest.raises(SchemaError, match="does not contain a Kafka release"):
        import_schemas([tmp_path / "clients.jar"], out)
    with pytest.raises(SchemaError, match="none of the sources"):
        import_schemas([jar("kafka-server", "4.0.0")], out)
    bad = jar("kafka-clients", "4.1.0", request(field("A", "boolean"), versions="0"))
    with pytest.raises(SchemaError, match=r"kafka-clients-4\.1\.0\.jar!common/message/Nine.*:2:"):
        import_schemas([bad], out)
    twice = jar("kafka-clients", "4.2.0", request(field("A"), versions="0"))
    again = jar("kafka-more", "4.2.0", request(field("A"), versions="0"))
    with pytest.raises(SchemaError, match=r"defines NineRequest here and in"):
        import_schemas([twice, again], out)
    assert not out.exists()


def test_schemas_of_unknown_origin_are_not_overwritten(jar: Jar, tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = jar("kafka-clients", "4.0.0", request(field("A"), versions="0"))
    import_schemas([source], out)
    (out / "TenRequest.json").write_text(
        json.dumps({**request(field("A"), versions="0"), "name": "TenRequest", "apiKey": 10})
    )
    with pytest.raises(SchemaError, match="whose source"):
        import_schemas([source], out)


def test_releases_in_order() -> None:
    names = ["4.0.0", "3.10.0", "3.9.2", "4.0.0-rc1", "3.9.10", "2.4.0"]
    assert sorted(names, key=release_order) == [
        "2.4.0", "3.9.2", "3.9.10", "3.10.0", "4.0.0-rc1", "4.0.0",
    ]  # fmt: skip
