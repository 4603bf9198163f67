"""The file of known failures, client to case ids, as JSON: CI gates on all others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from kspec.errors import KspecError
from kspec.results import Result

__all__ = ["read_baseline", "write_baseline"]


def read_baseline(path: Path) -> Mapping[str, list[str]]:
    """Raises KspecError for what is no baseline."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, list[str]])
    except OSError as error:
        raise KspecError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KspecError(f"{path}: a baseline maps clients to lists of case ids: {error}") from None


def write_baseline(path: Path, results: Iterable[Result]) -> None:
    """The failures of this run, all of them."""
    found: dict[str, list[str]] = {}
    for each in results:
        if each.judgement.verdict == "fail":
            found.setdefault(each.client, []).append(each.case.id)
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
