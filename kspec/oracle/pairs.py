"""Which (message, version) of ours is which of a release's Java classes, and the listed exceptions.

Knows names and versions only. A pair that neither can be matched nor is listed is an error here,
so that no message can drop out of the comparison unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema
from kspec.oracle.oracle import Oracle

__all__ = ["Counterpart", "counterparts", "exceptions", "java_only", "message_names", "schemas"]

EXCEPTIONS = Path(__file__).parent / "exceptions.json"


class Counterpart(NamedTuple):
    """What a pair of ours is called in a release: the class's simple name and its version."""

    name: str
    version: int


@cache
def schemas() -> Mapping[str, MessageSchema]:
    return load_directory(schemas_directory() / "kafka")


def message_names() -> list[str]:
    return list(schemas())


@cache
def exceptions() -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, str]]]]:
    """What differs on purpose, by release and kind.

    ``not_compared`` and ``bytes_only``: message -> version -> reason. ``renamed``: message -> our
    JSON name -> the name that the release's JSON has for the same field.
    """
    document: dict[str, Any] = json.loads(EXCEPTIONS.read_text())
    return document


@cache
def _renumbered() -> Mapping[tuple[str, str], Counterpart]:
    """(release, our name) -> its class there. Until 4.0 a coordinator's key had its record type
    as its version; since, it is version 0 of the message of that api key (KAFKA-17593)."""
    path = schemas_directory() / "kafka" / "provenance" / "sources.json"
    return {
        (entry["release"], entry["now"]): Counterpart(entry["message"], entry["version"])
        for entry in json.loads(path.read_text())["renumbered"]
    }


def counterparts(oracle: Oracle, schema: MessageSchema) -> dict[int, Counterpart]:
    """Our versions of that message, each with the release's own pair; absent where it has none."""
    moved = _renumbered().get((oracle.release, schema.name))
    if moved is not None:
        return {0: moved}
    suffix = "Data" if schema.type in ("request", "response", "header") else ""
    for name in (schema.name, *schema.aliases):
        found = oracle.messages.get(name + suffix)
        if found is not None:
            versions = schema.valid_versions.intersect(found.versions)
            return {version: Counterpart(found.name, version) for version in versions}
    return {}


def java_only(oracle: Oracle) -> list[Counterpart]:
    """The release's pairs that no message of ours stands for."""
    ours = {pair for schema in schemas().values() for pair in counterparts(oracle, schema).values()}
    return sorted(
        Counterpart(message.name, version)
        for message in oracle.messages.values()
        for version in message.versions
        if Counterpart(message.name, version) not in ours
    )
