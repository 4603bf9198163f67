"""Match our (message, version) pairs with a release's Java classes, apart from listed exceptions.

This module knows names and versions only. A pair that is neither matched nor listed is an error, so
that no message drops out of the comparison unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kproto.oracle.oracle import Oracle
from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema

__all__ = ["Counterpart", "counterparts", "exceptions", "java_only", "message_names", "schemas"]

EXCEPTIONS = Path(__file__).parent / "exceptions.json"


class Counterpart(NamedTuple):
    """The class's simple name and version that stand for one of our pairs in a release."""

    name: str
    version: int


@cache
def schemas() -> Mapping[str, MessageSchema]:
    return load_directory(schemas_directory() / "kafka")


def message_names() -> list[str]:
    return list(schemas())


@cache
def exceptions() -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, str]]]]:
    """Deliberate differences, by release and kind.

    ``not_compared`` and ``bytes_only`` map message -> version -> reason. ``renamed`` maps message
    -> our JSON name -> the name of the same field in the release's JSON.
    """
    document: dict[str, Any] = json.loads(EXCEPTIONS.read_text())
    return document


@cache
def _renumbered() -> Mapping[tuple[str, str], Counterpart]:
    """Map (release, our name) to the class there.

    Until 4.0 a coordinator's key used its record type as its version. Since then it is version 0 of
    the message with that API key (KAFKA-17593).
    """
    path = schemas_directory() / "kafka" / "provenance" / "sources.json"
    return {
        (entry["release"], entry["now"]): Counterpart(entry["message"], entry["version"])
        for entry in json.loads(path.read_text())["renumbered"]
    }


def counterparts(oracle: Oracle, schema: MessageSchema) -> dict[int, Counterpart]:
    """Return our versions of that message, each with the release's own pair if it has one."""
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
    """Return the release's pairs that none of our messages stands for."""
    ours = {pair for schema in schemas().values() for pair in counterparts(oracle, schema).values()}
    return sorted(
        Counterpart(message.name, version)
        for message in oracle.messages.values()
        for version in message.versions
        if Counterpart(message.name, version) not in ours
    )
