"""Write a reproducer for a maintainer: the case, its fault rules for ``mockbroker serve``, and
instructions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import kproto
from kproto.outputs import FolderOutput
from kproto.safe_text import printable
from kspec.clientfuzz.clients.campaign import CauseReport
from kspec.clientfuzz.clients.case import (
    BROKERS,
    FORMAT,
    REASSIGNED,
    TELEMETRY,
    TOPICS,
    Case,
    CaseError,
)
from kspec.errors import KspecError

__all__ = ["Replay", "read_replay", "write_reproducer"]

_MOST_BYTES: Final = 8 << 20


class Replay:
    """A case from a file, with what was recorded about it."""

    def __init__(self, case: Case, client: str, cause: str, verdict: str) -> None:
        self.case = case
        self.client = client
        self.cause = cause
        self.verdict = verdict


def read_replay(path: Path) -> Replay:
    """Read a case. Raises KspecError if the file does not contain one."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise KspecError(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise KspecError(f"{path}: more than {_MOST_BYTES} bytes")
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise CaseError(f"its format is not {FORMAT}")
        case = Case.from_dict(document)
    except CaseError as error:
        raise KspecError(f"{path}: {error}") from None
    except ValueError as error:
        raise KspecError(f"{path}: not JSON: {error}") from None
    finding: dict[str, Any] = document.get("found") or {}
    return Replay(
        case,
        str(finding.get("client", "")),
        str(finding.get("cause", "")),
        str(finding.get("verdict", "")),
    )


def write_reproducer(found: CauseReport, client: str, version: str, out: FolderOutput) -> str:
    """Write ``case.json``, ``faults.json`` and ``README.md`` into a folder in ``out``; returns its
    name."""
    case, outcome = found.small, found.outcome
    name = "-".join([f"{found.number:05}", outcome.verdict, case.op.replace("_", "-")])
    place = re.sub(r"[^\w.-]+", "-", name)
    document = case.to_dict()
    document["found"] = {
        "client": client,
        "version": version,
        "verdict": outcome.verdict,
        "message": printable(outcome.message),
        "at": outcome.at,
        "cause": found.cause,
        "steady": found.steady,
        "unconfirmed": found.unconfirmed,
    }
    _write(out, f"{place}/case.json", json.dumps(document, indent=1, sort_keys=True))
    _write(out, f"{place}/faults.json", json.dumps({"faults": [case.rule()]}, indent=1))
    _write(out, f"{place}/README.md", _readme(found, client, version))
    return place


def _write(out: FolderOutput, name: str, text: str) -> None:
    out.write(name, text.rstrip() + "\n")


def _readme(found: CauseReport, client: str, version: str) -> str:
    case, outcome = found.small, found.outcome
    api = kproto.dialect("kafka").api(case.api_key).name
    topics = " ".join(f"--topic {topic}" for topic in TOPICS)
    topic, partition, replicas = REASSIGNED
    frame = ""
    if case.mutation is not None and not case.delivery:
        frame = (
            "\nThe frame as it was sent, apart from its correlation "
            f"id:\n\n```\n{_hex(case)}\n```\n"
        )
    parts = [f"# {client} {version}: {outcome.verdict}", printable(outcome.message)]
    if outcome.at:
        parts.append(f"Innermost function: `{outcome.at}`.")
    which = f"the {_nth(case.nth)} answer of" + (" and all after it" * case.persistent)
    parts.append(
        f"The client is asked for `{case.op}`, and {which} {api} (API key {case.api_key}, "
        f"version {case.version}) is altered: {printable(case.detail)}."
    )
    if found.unconfirmed:
        parts.append(
            "Unconfirmed: the run ended before the case was played in a new process and minimised."
        )
    elif not found.steady:
        parts.append("Unsteady: a new process did not reproduce it.")
    parts.append(f"```sh\nmockbroker fuzz --client {client} --replay case.json\n```")
    parts.append(
        "To reproduce it by hand, start a cluster that sends this answer, and a client that "
        f"makes the same call. In the run, a reassignment of {topic}-{partition} to "
        f"{list(replicas)} was in progress as well"
        + ("; telemetry was served." if case.api_key in TELEMETRY else ".")
    )
    serve = f"mockbroker serve --brokers {BROKERS} {topics} --faults faults.json"
    parts.append(f"```sh\n{serve}\n```")
    return "\n\n".join(parts) + "\n" + frame


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def _hex(case: Case) -> str:
    assert case.mutation is not None
    text = case.mutation.frame.hex()
    return "\n".join(text[at : at + 96] for at in range(0, min(len(text), 4096), 96))
