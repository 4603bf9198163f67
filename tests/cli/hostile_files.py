"""Schemas, cases, results, plans and frames whose texts and names are hostile."""

import json
from pathlib import Path
from typing import Any

import kproto
from kproto.messages import MetadataRequest
from kproto.messages.metadata_request import MetadataRequestTopic
from kspec.report import as_json
from kspec.results import Greeting, Report
from kspec.runner.files import load_cases
from tests.cli.hostile import FILE_NAME, JSON, WIRE
from tests.kspec.made_report import made

__all__ = ["write_cases", "write_draft", "write_results"]

_CLIENT = "[red]R3D"
"""The name of a client in a run; its version and all else of it is hostile."""


def write_draft(folder: Path) -> Path:
    """Write a folder of schemas, ``changed`` with changes to them, ``bad`` with mistakes, and small
    files for other commands."""
    draft = folder / f"{FILE_NAME}-1.0.0"
    _schemas(draft, versions="0", default=WIRE)
    _schemas(folder / "changed", versions="0-1", default=f"{WIRE}2")
    bad = folder / "bad"
    bad.mkdir()
    schema = {**_schema("request", "0", JSON), "name": JSON, "fields": [{"name": JSON, JSON: JSON}]}
    (bad / f"{FILE_NAME}.json").write_text(json.dumps(schema))
    (bad / "More.json").write_text(json.dumps({**_schema("request", JSON, JSON), JSON: JSON}))
    kafka = kproto.dialect("kafka")
    body = MetadataRequest(topics=[MetadataRequestTopic(name=WIRE)])
    frame = kafka.encode_request(body, api_version=1, correlation_id=1, client_id=WIRE)
    (folder / "frame.bin").write_bytes(frame)
    (folder / "cut.bin").write_bytes(frame[:-3])
    rows = [{"topic": "foo", "partition": 0, "replicas": [1]}]
    (folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": rows}))
    (folder / "move.json").write_text(
        json.dumps({"version": 1, "topics": [{"topic": "foo"}, {"topic": WIRE}]})
    )
    (folder / "client.conf").write_text("default.api.timeout.ms=2000\n")
    (folder / "faults.yaml").write_text(json.dumps([{"api": 3, "name": WIRE, "client_id": WIRE,
                                                     "error": WIRE}]))  # fmt: skip
    return draft


def _schemas(folder: Path, *, versions: str, default: str) -> None:
    folder.mkdir()
    for kind in ("request", "response"):
        text = json.dumps(_schema(kind, versions, WIRE, default))
        (folder / f"Frob{kind.title()}.json").write_text(text)


def _schema(kind: str, versions: str, about: str, default: str = WIRE) -> dict[str, Any]:
    field = {"name": "Name", "type": "string", "versions": "0+", "about": about, "default": default}
    return {
        "apiKey": 31000, "type": kind, "name": f"Frob{kind.title()}", "about": about,
        "validVersions": versions, "flexibleVersions": "none", "fields": [field],
    }  # fmt: skip


def write_cases(folder: Path) -> Path:
    """Write a folder with one case."""
    cases = folder / "cases"
    (cases / "admin").mkdir(parents=True)
    document = {
        "title": WIRE,
        "source": f"KIP-35, {WIRE}",
        "since": 1,
        "about": WIRE,
        "cluster": {"topics": ["foo=1,2,3"]},
        "steps": [{"call": "describe_cluster"}],
        "must": [{"says": WIRE, "result": "describe_cluster", "success": True}],
        "wrong": {"by": "speaks-its-newest-version"},
    }
    (cases / "admin" / "001-hostile.yaml").write_text(json.dumps(document))
    return cases


def write_results(cases: Path) -> Path:
    """Write a run's folder beside the cases, and ``later``, in which what had passed fails."""
    folder = cases.parent
    (case,) = load_cases(cases)
    for name, verdict in (("results", "pass"), ("later", "fail")):
        out = folder / name
        out.mkdir()
        report = Report(
            clients=[_CLIENT],
            cases=[case],
            results=[made(_CLIENT, case, verdict, WIRE, entries=2)],
            greetings={_CLIENT: Greeting(_CLIENT, WIRE, WIRE, options={WIRE: WIRE})},
            absent={WIRE: WIRE},
            stale=[(WIRE, WIRE)],
            date="2026-01-31",
        )
        (out / "results.json").write_text(as_json(report), "utf-8")
    return folder / "results"
