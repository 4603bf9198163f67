"""The file of known failures: client to case ids, as JSON or YAML. CI gates on what is not in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

from kspec.errors import KspecError
from kspec.results import Result

__all__ = ["read_baseline", "write_baseline"]


def read_baseline(path: Path) -> Mapping[str, list[str]]:
    """Raises KspecError for what is no baseline."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
        return msgspec.convert(document or {}, dict[str, list[str]])
    except (OSError, UnicodeDecodeError) as error:
        raise KspecError(f"{path}: cannot be read: {error}") from None
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        words = " ".join(str(error).split())
        raise KspecError(f"{path}: a baseline maps clients to lists of case ids: {words}") from None


def write_baseline(path: Path, results: Iterable[Result]) -> None:
    """The failures of this run, all of them."""
    found: dict[str, list[str]] = {}
    for each in results:
        if each.judgement.verdict == "fail":
            found.setdefault(each.client, []).append(each.case.id)
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
