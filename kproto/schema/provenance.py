"""The importer's notes beside a folder of schemas: the source of each version, and conflicts.

From ``provenance/sources.json`` a later import rebuilds what each earlier release defined, as far
as the union shows it; ``provenance/conflicts.json`` is for people. Each fact is one line, so that a
change shows as one line.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from kproto.errors import SchemaError
from kproto.schema.align import Edition
from kproto.schema.coordinator_keys import Renumbering
from kproto.schema.jars import SourceMessage
from kproto.schema.load import load_directory
from kproto.schema.model import MessageSchema
from kproto.schema.union import Conflict, MessageUnion, ValueChange
from kproto.schema.versions import Versions

__all__ = ["PROVENANCE", "PreviousImports", "conflicts_text", "sources_text"]

PROVENANCE: Final = "provenance"
"""The folder of these notes, inside the schemas' folder. Loaders do not enter it."""


class PreviousImports(msgspec.Struct):
    """The notes of earlier imports into a folder; empty for a new folder."""

    schemas: dict[str, MessageSchema] = msgspec.field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    without_json: dict[str, list[str]] = msgspec.field(default_factory=dict)
    renumbered: list[Renumbering] = msgspec.field(default_factory=list)
    conflicts: dict[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> PreviousImports:
        """Read the notes. Raises SchemaError if the folder contains a schema that the notes do not
        cover."""
        if not any(folder.glob("*.json")):
            return cls()
        notes = folder / PROVENANCE
        schemas = load_directory(folder)
        try:
            sources = json.loads((notes / "sources.json").read_text("utf-8"))
            conflicts = json.loads((notes / "conflicts.json").read_text("utf-8"))
            if sources["messages"].keys() != schemas.keys():
                raise KeyError("messages")
            return cls(
                schemas,
                sources["messages"],
                {name: item["without_messages"] for name, item in sources["releases"].items()},
                [Renumbering(**item) for item in sources["renumbered"]],
                {
                    kind: {
                        name: [cls._conflict(kind, item) for item in found]
                        for name, found in by_name.items()
                    }
                    for kind, by_name in conflicts.items()
                },
            )
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise SchemaError(
                f"contains schemas whose source {PROVENANCE}/ does not state",
                source=str(folder),
                remedy="import into an empty folder",
            ) from None

    @staticmethod
    def _conflict(kind: str, item: dict[str, Any]) -> Conflict | ValueChange:
        return ValueChange(**item) if kind == "values" else Conflict(**item)

    def sources(self) -> Iterator[tuple[str, SourceMessage]]:
        """Yield ``(release, message)`` for each noted message of each noted release."""
        for name, schema in self.schemas.items():
            for release, noted in self.messages[name].items():
                old_name = noted.get("name", name)
                valid = Versions.parse(noted["versions"])
                unstable = Versions.parse(noted.get("unstable", "none"))
                restricted = replace(
                    schema,
                    name=old_name,
                    aliases=tuple(item for item in schema.aliases if item != old_name),
                    valid_versions=valid,
                    latest_version_unstable=schema.type == "request" and bool(unstable),
                )
                yield release, SourceMessage(restricted, noted["from"], unstable)

    def carry_over(self, merged: MessageUnion, fresh: set[str]) -> None:
        """Add to ``merged`` the noted conflicts of releases that were not read again."""
        name = merged.schema.name
        for kind in ("layouts", "tagged_fields_added"):
            known = self.conflicts.get(kind, {}).get(name, [])
            merged.conflicts += [item for item in known if item.rejected not in fresh]
        values = self.conflicts.get("values", {}).get(name, [])
        merged.value_changes += [item for item in values if item.rejected not in fresh]


def sources_text(
    editions: Mapping[str, Sequence[Edition]],
    artifacts: Mapping[tuple[str, str], str],
    without_json: Mapping[str, Sequence[str]],
    renumbered: Sequence[Renumbering],
) -> str:
    """``editions`` is by message name, ``artifacts`` by release and the message's name in it."""
    names_then = {(item.release, item.now): item.message for item in renumbered}
    found_in: dict[str, dict[str, set[str]]] = {
        release: defaultdict(set) for release in without_json
    }
    messages = {}
    for name, found in sorted(editions.items()):
        noted = {}
        for item in found:
            artifact = artifacts[item.release, item.schema.name]
            then = names_then.get((item.release, item.schema.name), item.schema.name)
            found_in[item.release][artifact].add(then)
            entry = {"from": artifact, "versions": str(item.schema.valid_versions)}
            if item.unstable:
                entry["unstable"] = str(item.unstable)
            if item.schema.name != name:
                entry["name"] = item.schema.name
            noted[item.release] = entry
        messages[name] = noted
    releases = {
        release: {
            "messages": {jar: len(names) for jar, names in sorted(found_in[release].items())},
            "without_messages": sorted(jars),
        }
        for release, jars in without_json.items()
    }
    return _by_line(
        {
            "releases": releases,
            "renumbered": [asdict(item) for item in renumbered],
            "messages": messages,
        }
    )


def conflicts_text(merged: Mapping[str, MessageUnion]) -> str:
    layouts: dict[str, Any] = defaultdict(list)
    tags: dict[str, Any] = defaultdict(list)
    values: dict[str, Any] = defaultdict(list)
    for name, item in merged.items():
        for conflict in item.conflicts:
            (layouts if conflict.unstable_in else tags)[name].append(asdict(conflict))
        for change in item.value_changes:
            values[name].append(asdict(change))
    return _by_line({"layouts": layouts, "tagged_fields_added": tags, "values": values})


def _by_line(document: Mapping[str, Any]) -> str:
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
