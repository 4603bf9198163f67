"""Find message JSON in Kafka's jars and in folders, and the release that each came from.

Kafka's modules store it in different places: kafka-clients, raft and the coordinators in
``common/message``, kafka-metadata in ``common/metadata``, kafka-storage in ``message``. Other
modules (kafka-server, kafka-server-common, the ``-api`` jars) contain none.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kproto.errors import SchemaError
from kproto.schema.load import load_message, parse_message
from kproto.schema.model import MessageSchema
from kproto.schema.versions import Versions

__all__ = ["Release", "SourceMessage", "read_sources", "release_order"]

_FOLDERS: Final = ("common/message/", "common/metadata/", "message/")
_NOT_ON_THE_WIRE: Final = frozenset({"SubscriptionInfoData"})
"""Kafka Streams stores this in a consumer's user data, in an encoding of its own."""

_NAME: Final = re.compile(r"(?P<artifact>.+?)-(?P<release>\d+\.\d+(?:\.\d+)*(?:-\w+)?)")
_LARGEST_JSON: Final = 4 * 1024 * 1024


class SourceMessage(msgspec.Struct, frozen=True):
    """One message as one release defines it. ``artifact`` is the name of the jar or folder.

    ``unstable`` is set if an earlier import noted which versions the release marks unstable; with
    None they are determined from the release's messages.
    """

    schema: MessageSchema
    artifact: str
    unstable: Versions | None = None


class Release(msgspec.Struct):
    """All messages of one Kafka release, and the jars that contained none."""

    name: str
    messages: list[SourceMessage] = msgspec.field(default_factory=list)
    without_json: list[str] = msgspec.field(default_factory=list)


def release_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key: ``3.9.2`` before ``3.10.0``, ``4.0.0-rc1`` before ``4.0.0``."""
    parts = [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"[.\-]", name)
    ]
    return (*parts, (1, -1, ""))


def read_sources(paths: Iterable[Path]) -> list[Release]:
    """Read jars and folders, oldest release first. Raises SchemaError with the name of a bad
    source.

    The release is taken from the name of the jar or folder, as Maven writes it.
    """
    releases: dict[str, Release] = {}
    for path in paths:
        artifact, name = _split_name(path)
        release = releases.setdefault(name, Release(name))
        found = list(_from_folder(path) if path.is_dir() else _from_jar(path))
        kept = [item for item in found if item.name not in _NOT_ON_THE_WIRE]
        release.messages.extend(SourceMessage(item, artifact) for item in kept)
        if not kept:
            release.without_json.append(artifact)
    return sorted(releases.values(), key=lambda item: release_order(item.name))


def _split_name(path: Path) -> tuple[str, str]:
    if (match := _NAME.fullmatch(path.name.removesuffix(".jar"))) is None:
        raise SchemaError(
            "its name does not contain a Kafka release",
            source=str(path),
            remedy="name it as Maven does, such as kafka-clients-4.4.0.jar or messages-4.4.0/",
        )
    return match["artifact"], match["release"]


def _from_folder(path: Path) -> Iterator[MessageSchema]:
    for file in sorted(path.rglob("*.json")):
        yield load_message(file)


def _from_jar(path: Path) -> Iterator[MessageSchema]:
    try:
        with zipfile.ZipFile(path) as jar:
            for entry in sorted(jar.infolist(), key=lambda item: item.filename):
                folder, _, file = entry.filename.rpartition("/")
                if f"{folder}/" in _FOLDERS and file.endswith(".json"):
                    source = f"{path}!{entry.filename}"
                    if entry.file_size > _LARGEST_JSON:
                        raise SchemaError("too large for a schema", source=source)
                    yield parse_message(jar.read(entry).decode("utf-8-sig"), source)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise SchemaError(
            f"cannot be read as a jar: {error}", source=str(path), remedy="fetch it again"
        ) from None
