"""``schemas/kafka`` against the jars it was imported from: every version's wire layout."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.schema.coordinator_keys import at_version_zero
from kproto.schema.importer import import_schemas
from kproto.schema.jars import Release, SourceMessage, read_sources
from kproto.schema.layout import FieldLayout, layout, without_values
from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema
from kproto.schema.provenance import PROVENANCE
from tests.support import maven

pytestmark = pytest.mark.java

KAFKA = schemas_directory() / "kafka"


def notes(name: str) -> Any:
    return json.loads((KAFKA / PROVENANCE / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    """Every jar the committed import read, also those it found no message in."""
    releases = notes("sources.json")["releases"]
    return maven.artifacts(
        (f"org.apache.kafka:{name}", release)
        for release, noted in releases.items()
        for name in [*noted["messages"], *noted["without_messages"]]
    )


@pytest.fixture(scope="module")
def releases(jars: list[Path]) -> list[Release]:
    return read_sources(jars)


@pytest.fixture(scope="module")
def union() -> dict[str, MessageSchema]:
    return load_directory(KAFKA)


def find(union: dict[str, MessageSchema], wanted: MessageSchema) -> MessageSchema:
    for schema in union.values():
        if wanted.name in (schema.name, *schema.aliases):
            assert wanted.type in (schema.type, "data")
            assert wanted.api_key in (schema.api_key, None)
            return schema
    raise AssertionError(f"{wanted.name} is not in the union")


def versions_of(
    release: Release, message: SourceMessage, union: dict[str, MessageSchema]
) -> Iterator[tuple[MessageSchema, int, MessageSchema, int]]:
    """Pairs ``(its schema, version, our schema, our version)``, renumbered keys included."""
    moved = {
        item["version"]: item["now"]
        for item in notes("sources.json")["renumbered"]
        if (item["release"], item["message"]) == (release.name, message.schema.name)
    }
    for version in message.schema.valid_versions:
        if version in moved:
            ours = union[moved[version]]
            assert ours.api_key == version
            yield at_version_zero(message.schema, version, ours), 0, ours, 0
        else:
            yield message.schema, version, find(union, message.schema), version


def listed(kind: str) -> set[tuple[str, int, str]]:
    """``(message, version, release)`` whose layout is noted to have lost."""
    return {
        (name, item["version"], item["rejected"])
        for name, items in notes("conflicts.json")[kind].items()
        for item in items
    }


def test_each_version_of_each_source_has_its_layout(releases, union):
    lost, tagged = listed("layouts"), listed("tagged_fields_added")
    seen: set[tuple[str, int, str]] = set()
    counts: Counter[str] = Counter()
    for release in releases:
        for message in release.messages:
            counts[f"messages of {release.name}"] += 1
            for theirs, version, ours, our_version in versions_of(release, message, union):
                key = (ours.name, our_version, release.name)
                expected = without_values(layout(theirs, version))
                actual = without_values(layout(ours, our_version))
                counts[f"versions of {release.name}"] += 1
                counts["fields"] += count_fields(expected.fields)
                if key in tagged:
                    seen.add(key)
                    assert actual.flexible == expected.flexible
                    assert without_new_tags(expected.fields, actual.fields) == expected.fields
                    assert actual != expected
                elif key in lost:
                    seen.add(key)
                    assert actual != expected, "listed as a conflict, yet there is none"
                else:
                    assert actual == expected, f"{theirs.name} {version} of {release.name}"
    assert seen == lost | tagged, "a listed conflict is no version of any source"
    print(f"\nlayouts compared: {dict(counts)}, conflicts listed: {len(seen)}")
    assert counts["fields"] > 5000


def count_fields(fields: tuple[FieldLayout, ...]) -> int:
    return sum(1 + count_fields(item.members or ()) for item in fields)


def without_new_tags(
    old: tuple[FieldLayout, ...], new: tuple[FieldLayout, ...]
) -> tuple[FieldLayout, ...]:
    """``new`` without tagged fields that ``old`` lacks, at every level."""
    tags = {item.tag for item in old}
    kept = [item for item in new if item.tag is None or item.tag in tags]
    before = {(item.tag, place): item for place, item in enumerate(old)}
    result = []
    for place, item in enumerate(kept):
        match = before.get((item.tag, place))
        members = item.members
        if match is not None and members is not None and match.members is not None:
            members = without_new_tags(match.members, members)
        result.append(
            FieldLayout(item.type, item.nullable, item.compact, item.tag, None, False, members)
        )
    return tuple(result)


def test_defaults_and_ignorable_are_the_sources(releases, union):
    """Where bytes agree, so do values, but for what conflicts.json lists."""
    lost = listed("layouts") | listed("tagged_fields_added")
    changed = {
        (name, item["rejected"])
        for name, items in notes("conflicts.json")["values"].items()
        for item in items
    }
    compared, differing = 0, set()
    for release in releases:
        for message in release.messages:
            for theirs, version, ours, our_version in versions_of(release, message, union):
                if (ours.name, our_version, release.name) in lost:
                    continue
                compared += 1
                if layout(ours, our_version) != layout(theirs, version):
                    differing.add((ours.name, release.name))
    print(f"\ndefaults and ignorable compared: {compared} versions; differing: {len(differing)}")
    assert compared > 1000
    assert differing == changed


def test_nothing_was_invented(releases: list[Release], union: dict[str, MessageSchema]) -> None:
    """Every version of the union is some release's, and sources.json says so."""
    known: set[tuple[str, int]] = set()
    for release in releases:
        for message in release.messages:
            for _, _, ours, version in versions_of(release, message, union):
                known.add((ours.name, version))
    assert known == {
        (schema.name, version) for schema in union.values() for version in schema.valid_versions
    }


def test_importing_again_gives_the_committed_files(jars: list[Path], tmp_path: Path) -> None:
    """Everything but our own ``about`` lines comes from the jars alone."""
    import_schemas(jars, tmp_path)
    committed = {path.name: path.read_text("utf-8") for path in KAFKA.glob("*.json")}
    made = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.json")}
    assert made == {name: without_about(text) for name, text in committed.items()}
    for path in (KAFKA / PROVENANCE).iterdir():
        assert path.read_text("utf-8") == (tmp_path / PROVENANCE / path.name).read_text("utf-8")


def without_about(text: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith('  "about"')
    )


@pytest.mark.parametrize("newest_first", [False, True])
def test_releases_may_come_one_at_a_time(jars, tmp_path, newest_first):
    import_schemas(jars, tmp_path / "at-once")
    by_release = sorted({path.stem.rpartition("-")[2] for path in jars}, reverse=newest_first)
    for release in by_release:
        import_schemas([path for path in jars if path.stem.endswith(release)], tmp_path / "each")
    at_once = {path.name: path.read_text() for path in (tmp_path / "at-once").rglob("*.json")}
    assert at_once == {path.name: path.read_text() for path in (tmp_path / "each").rglob("*.json")}
