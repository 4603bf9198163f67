"""Import the messages of Kafka's jars into a folder of schemas: the union of all versions.

The folder contains one file per message and the notes of ``provenance``. A later import merges with
the existing files: the notes replace releases that are not read again, and our own ``about`` lines
are kept. No prose of Kafka's is copied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kproto.errors import SchemaError
from kproto.outputs import open_folder_output
from kproto.schema.align import Edition
from kproto.schema.coordinator_keys import Renumbering, renumber_keys
from kproto.schema.facts import schema_text
from kproto.schema.jars import Release, SourceMessage, read_sources, release_order
from kproto.schema.model import MessageSchema
from kproto.schema.provenance import PROVENANCE, PreviousImports, conflicts_text, sources_text
from kproto.schema.union import Conflict, MessageUnion, ValueChange, merge
from kproto.schema.versions import Versions

__all__ = ["Identity", "ImportReport", "identity", "import_schemas", "merge_releases"]

Identity: TypeAlias = tuple[str, int] | str
"""Requests and responses are identified by type and api key, other messages by name."""


class ImportReport(msgspec.Struct):
    """What an import wrote, by message name. ``without_json`` is by release."""

    into: Path
    merged: dict[str, MessageUnion] = msgspec.field(default_factory=dict)
    editions: dict[str, list[Edition]] = msgspec.field(default_factory=dict)
    artifacts: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    without_json: dict[str, list[str]] = msgspec.field(default_factory=dict)
    renumbered: list[Renumbering] = msgspec.field(default_factory=list)
    removed_files: list[str] = msgspec.field(default_factory=list)

    @property
    def versions(self) -> int:
        """The number of (message, version) pairs in the union."""
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
    """Import jars and folders into ``into``, merged with earlier imports.

    Raises SchemaError, before anything is written, if a source cannot be read or if releases
    disagree on a version that none of them marks unstable, and OutputError or OSError if the
    folder cannot be written; then it is as before.
    """
    report = merge_releases(read_sources(paths), into)
    if not report.merged:
        raise SchemaError(
            "none of the sources contains message JSON",
            remedy="kafka-clients, kafka-metadata, kafka-raft, kafka-storage and the"
            " coordinators' jars do",
        )
    texts = {f"{name}.json": schema_text(item.schema) for name, item in report.merged.items()}
    texts[f"{PROVENANCE}/sources.json"] = sources_text(
        report.editions, report.artifacts, report.without_json, report.renumbered
    )
    texts[f"{PROVENANCE}/conflicts.json"] = conflicts_text(report.merged)
    with open_folder_output(into) as folder:
        for name, text in texts.items():
            folder.write(name, text)
        for name in report.removed_files:
            folder.remove(f"{name}.json")
    return report


def merge_releases(fresh: Sequence[Release], into: Path) -> ImportReport:
    """Merge without writing files."""
    earlier = PreviousImports.read(into)
    report = ImportReport(into)
    releases = _with_earlier(fresh, earlier)
    keys = {
        (item.artifact, item.schema.api_key): item.schema
        for release in releases
        for item in release.messages
        if item.schema.type == "coordinator-key"
    }
    editions: dict[Identity, list[Edition]] = defaultdict(list)
    report.renumbered = list(earlier.renumbered)
    for release in releases:
        report.without_json[release.name] = release.without_json
        messages, moved = renumber_keys(release.name, release.messages, keys)
        report.renumbered += [item for item in moved if item not in report.renumbered]
        for item in _editions(release, messages):
            editions[identity(item.schema)].append(item)
        for message in messages:
            report.artifacts[release.name, message.schema.name] = message.artifact
    read_again = {release.name for release in fresh}
    abouts = {identity(schema): schema.about for schema in earlier.schemas.values()}
    for key, found in sorted(editions.items(), key=lambda item: item[1][-1].schema.name):
        merged = merge(found)
        merged.schema.about = abouts.get(key, "")
        earlier.carry_over(merged, read_again)
        report.merged[merged.schema.name] = merged
        report.editions[merged.schema.name] = found
    report.renumbered.sort(key=lambda item: (release_order(item.release), item.message))
    report.removed_files = [name for name in earlier.schemas if name not in report.merged]
    return report


def _with_earlier(fresh: Sequence[Release], earlier: PreviousImports) -> list[Release]:
    """Return all releases, oldest first: those read now, and those that only the notes contain."""
    releases = {
        item.name: Release(item.name, list(item.messages), list(item.without_json))
        for item in fresh
    }
    read_now = {
        (item.name, identity(message.schema)) for item in fresh for message in item.messages
    }
    moved = {(item.release, item.message) for item in earlier.renumbered}
    read_again = {(item.name, message.schema.name) for item in fresh for message in item.messages}
    dropped = {
        (item.release, item.now)
        for item in earlier.renumbered
        if (item.release, item.message) in moved & read_again
    }
    for name, jars in earlier.without_json.items():
        release = releases.setdefault(name, Release(name))
        release.without_json = sorted({*release.without_json, *jars})
    for name, message in earlier.sources():
        key = (name, identity(message.schema))
        if key not in read_now and (name, message.schema.name) not in dropped:
            releases[name].messages.append(message)
    return sorted(releases.values(), key=lambda item: release_order(item.name))


def _editions(release: Release, messages: Iterable[SourceMessage]) -> list[Edition]:
    unstable = _UnstableVersions(release)
    seen: dict[Identity, SourceMessage] = {}
    found = []
    for message in messages:
        schema = message.schema
        if (other := seen.get(identity(schema))) is not None:
            raise SchemaError(
                f"Kafka {release.name} defines {schema.name} here and in {other.schema.source}",
                source=schema.source,
                remedy="name each jar once",
            )
        seen[identity(schema)] = message
        versions = message.unstable
        found.append(
            Edition(
                release.name, schema, unstable.versions(schema) if versions is None else versions
            )
        )
    return found


class _UnstableVersions:
    """The versions that a release marks unstable.

    Only requests have the mark (``latestVersionUnstable``), which applies to their responses too. A
    stable broker cannot write the records of a kind of group whose heartbeat request has no stable
    version, so those records are unstable as well.
    """

    def __init__(self, release: Release) -> None:
        requests = [
            item.schema
            for item in release.messages
            if item.schema.type == "request" and item.schema.latest_version_unstable
        ]
        self.latest = {item.api_key for item in requests}
        self.groups = tuple(
            item.name.removesuffix("HeartbeatRequest")
            for item in requests
            if item.name.endswith("GroupHeartbeatRequest") and len(item.valid_versions) == 1
        )

    def versions(self, schema: MessageSchema) -> Versions:
        valid = schema.valid_versions
        if schema.type in ("request", "response"):
            if schema.api_key in self.latest and valid:
                return Versions(valid.highest, valid.highest)
        elif self.groups and schema.name.startswith(self.groups):
            return valid
        return Versions.NONE
