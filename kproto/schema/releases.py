"""The versions that a broker of each Kafka release advertises: ``schemas/releases.json``, typed;
and those of a KRaft controller: ``schemas/controllers.json``.

This module knows names, modes and version ranges by api key. It knows neither message layouts nor
the behaviour of a mock broker under a profile. ``scripts/derive_releases.py`` writes the files and
explains how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kproto.errors import SchemaError, UnknownNameError
from kproto.near_names import with_suggestion
from kproto.schema.load import schemas_directory
from kproto.schema.versions import Versions

__all__ = ["Mode", "Release", "load_controllers", "load_releases", "parse_releases", "release"]

Mode: TypeAlias = Literal["zk", "kraft"]

FILE: Final = "releases.json"
CONTROLLERS: Final = "controllers.json"
FORMAT: Final = 1


class Release(msgspec.Struct, frozen=True):
    """One kind of broker of one release line.

    ``name`` is the profile's: ``kafka-2.4``. For a line with both modes (2.8 to 3.9) ``kafka-3.9``
    is KRaft and ``kafka-3.9-zk`` is ZooKeeper. ``release`` is the exact version that the ranges
    were taken from (``2.4.1``) and ``obtained`` says how. ``apis`` maps each advertised api key to
    its versions, in ascending order of key, as in an ApiVersions response of that broker.
    """

    name: str
    release: str
    mode: Mode
    obtained: str
    apis: Mapping[int, Versions]


@cache
def load_releases() -> Mapping[str, Release]:
    """Return all profiles by name, oldest release first. The file is read once; the mapping is
    read-only.

    Raises SchemaError if the file is missing or invalid.
    """
    return _loaded(FILE)


@cache
def load_controllers() -> Mapping[str, Release]:
    """Return what the KRaft controllers of each release advertise, by the name of the brokers'
    profile. As ``load_releases``."""
    return _loaded(CONTROLLERS)


def _loaded(name: str) -> Mapping[str, Release]:
    path = schemas_directory() / name
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError(
            f"cannot be read: {error.strerror}", source=str(path), remedy="reinstall kproto"
        ) from None
    return MappingProxyType(parse_releases(text, source=str(path)))


def release(name: str) -> Release:
    """Return the profile with that name. Raises UnknownNameError with the nearest names, or all of
    them."""
    releases = load_releases()
    found = releases.get(name)
    if found is not None:
        return found
    known = [f"kafka-{name}"] if f"kafka-{name}" in releases else releases
    profiles = f"the profiles are {', '.join(releases)}"
    problem = f"no release profile named {name!r}"
    raise UnknownNameError(with_suggestion(problem, name, known, most=4, otherwise=profiles))


def parse_releases(text: str, *, source: str = FILE) -> dict[str, Release]:
    """Parse the JSON text of a releases file. Raises SchemaError with the profile and api key."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise SchemaError(error.msg, source=source, line=error.lineno) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SchemaError(
            f"not a releases file of format {FORMAT}",
            source=source,
            remedy="rewrite it with scripts/derive_releases.py",
        )
    profiles = document.get("profiles")
    if not isinstance(profiles, dict):
        raise SchemaError("must be an object of profiles", source=source, field="profiles")
    return {name: _release(name, entry, source) for name, entry in profiles.items()}


def _release(name: str, entry: Any, source: str) -> Release:
    where = f"profiles.{name}"
    if not isinstance(entry, dict):
        raise SchemaError("must be an object", source=source, field=where)
    for key in ("release", "mode", "obtained"):
        if not isinstance(entry.get(key), str):
            raise SchemaError("must be a string", source=source, field=f"{where}.{key}")
    if entry["mode"] not in ("zk", "kraft"):
        raise SchemaError("must be zk or kraft", source=source, field=f"{where}.mode")
    if not isinstance(entry.get("apis"), dict):
        raise SchemaError("must be an object of api keys", source=source, field=f"{where}.apis")
    apis = {}
    for key, span in entry["apis"].items():
        problem = _problem(key, span)
        if problem is not None:
            raise SchemaError(problem, source=source, field=f"{where}.apis.{key}")
        apis[int(key)] = Versions(*span)
    return Release(
        name=name,
        release=entry["release"],
        mode=entry["mode"],
        obtained=entry["obtained"],
        apis=MappingProxyType(dict(sorted(apis.items()))),
    )


def _problem(key: str, span: Any) -> str | None:
    """Return what is wrong with the versions of an api key, or None. The file has over 2,000, so
    the error's path is built by the caller, and only for a wrong one."""
    if not key.isdecimal():
        return "an api key must be a number"
    if isinstance(span, list) and len(span) == 2:
        lowest, highest = span
        if type(lowest) is int and type(highest) is int and 0 <= lowest <= highest:
            return None
    return "must be [lowest, highest] of versions"
