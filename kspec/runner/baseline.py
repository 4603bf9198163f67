"""The baseline: known failures as JSON, client to case ids. CI fails on all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kproto.outputs import write_output
from kspec.errors import KspecError
from kspec.results import Result

__all__ = ["read_baseline", "write_baseline"]


def read_baseline(path: Path) -> Mapping[str, list[str]]:
    """Read a baseline. Raises KspecError if the file is not one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, list[str]])
    except OSError as error:
        raise KspecError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KspecError(
            f"{path}: a baseline must map clients to lists of case ids: {error}"
        ) from None


def write_baseline(path: Path, results: Sequence[Result]) -> None:
    """Write the failures of this run, and the file's entries for what was not run or ended with
    an error.

    Raises KspecError if the file exists and is not a baseline.
    """
    known = read_baseline(path) if path.exists() else {}
    played = {(each.client, each.case.id) for each in results if each.judgement.verdict != "error"}
    found = {
        client: {case for case in cases if (client, case) not in played}
        for client, cases in known.items()
    }
    for each in results:
        if each.judgement.verdict == "fail":
            found.setdefault(each.client, set()).add(each.case.id)
    listed = {name: sorted(found[name]) for name in sorted(found) if found[name]}
    write_output(path, json.dumps(listed, indent=1) + "\n")
