"""Bring the messages of Kafka's jars into a folder of schemas: the union of every version.

The folder holds one file a message and, in ``provenance/``, where each version came from
(``sources.json``) and what the releases disagreed on (``conflicts.json``). A later import merges
with what is there: the recorded ranges stand in for releases that are not imported again, and our
own ``about`` lines stay. No prose of Kafka's is kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from kproto.errors import SchemaError
from kproto.schema.coordinator_keys import Renumbered, renumber_keys
from kproto.schema.facts import schema_text
from kproto.schema.jars import Release, SourceMessage, read_sources, release_order
from kproto.schema.load import load_directory
from kproto.schema.model import MessageSchema
from kproto.schema.union import Conflict, Edition, Merged, ValueChange, merge
from kproto.schema.versions import Versions

__all__ = ["PROVENANCE", "ImportReport", "collect_editions", "import_schemas", "merge_releases"]

PROVENANCE: Final = "provenance"
"""The folder, inside the schemas' folder, of the importer's notes. Loaders do not enter it."""

Identity: TypeAlias = tuple[str, int] | str
"""Requests and responses are one message by type and api key, others by name."""


@dataclass
class ImportReport:
    """What an import wrote. ``merged`` is by message name; versions are counted over all."""

    into: Path
    releases: list[Release] = field(default_factory=list)
    merged: dict[str, Merged] = field(default_factory=dict)
    editions: dict[str, list[Edition]] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], str] = field(default_factory=dict)
    renumbered: list[Renumbered] = field(default_factory=list)
    removed_files: list[str] = field(default_factory=list)

    @property
    def versions(self) -> int:
        return sum(len(item.schema.valid_versions) for item in self.merged.values())

    @property
    def conflicts(self) -> list[tuple[str, Conflict]]:
        return [(name, each) for name, item in self.merged.items() for each in item.conflicts]

    @property
    def value_changes(self) -> list[tuple[str, ValueChange]]:
        return [(name, each) for name, item in self.merged.items() for each in item.value_changes]


def identity(schema: MessageSchema) -> Identity:
    if schema.type in ("request", "response") and schema.api_key is not None:
        return schema.type, schema.api_key
    return schema.name


def import_schemas(paths: Sequence[Path], into: Path) -> ImportReport:
    """Import jars and folders into ``into``, merging with what an earlier import left there.

    Raises SchemaError, and then has written nothing, where a source cannot be read or where
    releases disagree on a version that none of them calls unstable.
    """
    report = merge_releases(read_sources(paths), into)
    _write(report)
    return report


def merge_releases(releases: list[Release], into: Path) -> ImportReport:
    """The import without the writing."""
    report = ImportReport(into, releases)
    before = _Before.read(into)
    editions, report.renumbered = collect_editions(releases)
    for release in releases:
        for message in release.messages:
            report.artifacts[release.name, message.schema.name] = message.artifact
    fresh = {release.name for release in releases}
    for key, found in before.editions(fresh):
        editions[key] = sorted(
            [*found, *editions.get(key, [])], key=lambda item: release_order(item.release)
        )
    for key in sorted(editions, key=str):
        merged = merge(editions[key])
        name = merged.schema.name
        merged.schema.about = before.about(name, key)
        merged.conflicts.extend(before.kept_conflicts(name, fresh))
        merged.value_changes.extend(before.kept_values(name, fresh))
        report.merged[name] = merged
        report.editions[name] = editions[key]
    report.merged = dict(sorted(report.merged.items()))
    report.removed_files = [name for name in before.schemas if name not in report.merged]
    return report


def collect_editions(
    releases: Sequence[Release],
) -> tuple[dict[Identity, list[Edition]], list[Renumbered]]:
    """Every message's editions, oldest first, coordinator keys renumbered as Kafka 4.0 did."""
    editions: dict[Identity, list[Edition]] = defaultdict(list)
    renumbered: list[Renumbered] = []
    newest = releases[-1].messages if releases else []
    for release in releases:
        messages, moved = renumber_keys(release.name, release.messages, newest)
        renumbered.extend(moved)
        unstable = _Unstable(release)
        for message in messages:
            key = identity(message.schema)
            if any(item.release == release.name for item in editions[key]):
                raise SchemaError(
                    f"Kafka {release.name} defines {message.schema.name} twice",
                    source=message.schema.source,
                    remedy="name each jar once",
                )
            editions[key].append(
                Edition(release.name, message.schema, unstable.versions(message.schema))
            )
    return dict(editions), renumbered


class _Unstable:
    """Which versions a release calls unstable.

    Only requests can say so (``latestVersionUnstable``), and mean their responses too. The
    records of a kind of group whose heartbeat request has no stable version cannot be written by
    a stable broker, so they are as unstable.
    """

    def __init__(self, release: Release) -> None:
        self.latest = {
            item.schema.api_key
            for item in release.messages
            if item.schema.type == "request" and item.schema.latest_version_unstable
        }
        heartbeat = "GroupHeartbeatRequest"
        self.groups = tuple(
            item.schema.name.removesuffix("HeartbeatRequest")
            for item in release.messages
            if item.schema.name.endswith(heartbeat)
            and item.schema.latest_version_unstable
            and len(item.schema.valid_versions) == 1
        )

    def versions(self, schema: MessageSchema) -> Versions:
        valid = schema.valid_versions
        if schema.type in ("request", "response"):
            if schema.api_key in self.latest and valid:
                return Versions(valid.highest, valid.highest)
        elif self.groups and schema.name.startswith(self.groups):
            return valid
        return Versions.NONE


# -- what an earlier import left --------------------------------------------------------------


@dataclass
class _Before:
    schemas: dict[str, MessageSchema] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    conflicts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> _Before:
        if not any(folder.glob("*.json")):
            return cls()
        notes = folder / PROVENANCE
        schemas = load_directory(folder)
        try:
            sources = json.loads((notes / "sources.json").read_text("utf-8"))
            conflicts = json.loads((notes / "conflicts.json").read_text("utf-8"))
            if sources["messages"].keys() != schemas.keys():
                raise KeyError("messages")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise SchemaError(
                f"holds schemas, but {PROVENANCE}/ does not tell where all of them came from",
                source=str(folder),
                remedy="import into an empty folder",
            ) from None
        return cls(schemas, sources["messages"], conflicts)

    def about(self, name: str, key: Identity) -> str:
        if (known := self.schemas.get(name)) is not None:
            return known.about
        return next((item.about for item in self.schemas.values() if identity(item) == key), "")

    def editions(self, fresh: set[str]) -> Iterable[tuple[Identity, list[Edition]]]:
        """What earlier releases said, as far as the union still shows it."""
        for name, schema in self.schemas.items():
            yield identity(schema), [
                Edition(
                    release,
                    replace(schema, valid_versions=Versions.parse(noted["versions"])),
                    Versions.parse(noted.get("unstable", "none")),
                )
                for release, noted in self.sources[name].items()
                if release not in fresh
            ]

    def kept_conflicts(self, name: str, fresh: set[str]) -> list[Conflict]:
        found = [
            *self.conflicts.get("layouts", {}).get(name, []),
            *self.conflicts.get("tagged_fields_added", {}).get(name, []),
        ]
        return [Conflict(**item) for item in found if item["rejected"] not in fresh]

    def kept_values(self, name: str, fresh: set[str]) -> list[ValueChange]:
        found = self.conflicts.get("values", {}).get(name, [])
        return [ValueChange(**item) for item in found if item["rejected"] not in fresh]


# -- writing ----------------------------------------------------------------------------------


def _write(report: ImportReport) -> None:
    notes = report.into / PROVENANCE
    notes.mkdir(parents=True, exist_ok=True)
    for name, merged in report.merged.items():
        (report.into / f"{name}.json").write_text(schema_text(merged.schema), "utf-8")
    for name in report.removed_files:
        (report.into / f"{name}.json").unlink(missing_ok=True)
    (notes / "sources.json").write_text(_sources_text(report), "utf-8")
    (notes / "conflicts.json").write_text(_conflicts_text(report), "utf-8")


def _sources_text(report: ImportReport) -> str:
    messages = {}
    for name, editions in report.editions.items():
        noted = {}
        for item in editions:
            entry = {"versions": str(item.schema.valid_versions)}
            if item.unstable:
                entry["unstable"] = str(item.unstable)
            if item.schema.name != name:
                entry["name"] = item.schema.name
            noted[item.release] = entry
        messages[name] = noted
    document = {
        "releases": _release_notes(report),
        "renumbered": [asdict(item) for item in report.renumbered],
        "messages": dict(sorted(messages.items())),
    }
    return _json_by_line(document)


def _release_notes(report: ImportReport) -> dict[str, Any]:
    notes = {}
    for release in report.releases:
        counts: dict[str, int] = defaultdict(int)
        for message in release.messages:
            counts[message.artifact] += 1
        notes[release.name] = {
            "messages": dict(sorted(counts.items())),
            "without_messages": sorted(release.without_json),
        }
    return notes


def _conflicts_text(report: ImportReport) -> str:
    layouts: dict[str, Any] = defaultdict(list)
    tags: dict[str, Any] = defaultdict(list)
    values: dict[str, Any] = defaultdict(list)
    for name, conflict in report.conflicts:
        (layouts if conflict.unstable_in else tags)[name].append(asdict(conflict))
    for name, change in report.value_changes:
        values[name].append(asdict(change))
    return _json_by_line(
        {"layouts": dict(layouts), "tagged_fields_added": dict(tags), "values": dict(values)}
    )


def _json_by_line(document: dict[str, Any]) -> str:
    """JSON with the two outer levels broken into lines, so that a change shows as one line."""
    blocks = []
    for key, value in document.items():
        if isinstance(value, dict):
            rows = [f"    {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items()]
            opening, closing = "{", "}"
        else:
            rows = [f"    {json.dumps(item)}" for item in value]
            opening, closing = "[", "]"
        inside = "\n" + ",\n".join(rows) + "\n  " if rows else ""
        blocks.append(f"  {json.dumps(key)}: {opening}{inside}{closing}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"
