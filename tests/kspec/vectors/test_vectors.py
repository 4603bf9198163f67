"""The vectors hold together: what they say of their bytes is what the reference codec says, which
shares no code with the engine that made them. That Kafka's own classes agree is in
``tests/oracle/test_vectors.py``."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kproto
from kproto import reference
from kproto.codec.registry import schema_of
from kproto.errors import DecodeError
from kspec.cli.vectors import vectors_command
from kspec.vectors import Vector, file_lines, vectors
from kspec.vectors.damage import KINDS
from kspec.vectors.values import PATTERNS
from tests.support.full import QUICK, quick, quickly_drawn

KAFKA = kproto.dialect("kafka")
SOME = quick(40, 10)
"""Messages drawn for the slower checks, by the run's seed."""


@cache
def messages() -> list[str]:
    """All, or in a quick run some; a message has one name here, its own."""
    names = [name for name in KAFKA.message_names() if name == _class(name).MESSAGE_NAME]
    return quickly_drawn("vectors", names, 30)


@cache
def all_vectors() -> list[Vector]:
    return list(vectors(KAFKA, messages()))


@pytest.fixture
def some(rng: random.Random) -> list[Vector]:
    names = set(rng.sample(messages(), SOME))
    return [vector for vector in all_vectors() if vector.message in names]


def _class(name: str) -> Any:
    return KAFKA.message(name)


@pytest.mark.slow
def test_every_message_and_version_has_some_of_each_verdict():
    pairs = {
        (cls.MESSAGE_NAME, version)
        for cls in map(_class, messages())
        for version in cls.VALID_VERSIONS
    }
    for verdict in ("valid", "acceptable"):
        found = {(v.message, v.version) for v in all_vectors() if v.verdict == verdict}
        assert found == pairs
    # A body that has no bytes cannot be cut short, nor end in tags.
    empty = {(v.message, v.version) for v in all_vectors() if v.kind == "default" and not v.body}
    refused = {(v.message, v.version) for v in all_vectors() if v.verdict == "invalid"}
    assert refused | empty == pairs


@pytest.mark.slow
def test_names_are_unique_and_kinds_are_documented():
    counts = Counter(vector.name for vector in all_vectors())
    assert counts.most_common(1)[0][1] == 1
    documented = set(KINDS) | {pattern.name for pattern in PATTERNS}
    found = {vector.kind for vector in all_vectors()}
    assert found <= documented if QUICK else found == documented
    text = Path("docs/reference/vectors.md").read_text()
    for kind in documented:
        assert f"`{kind}`" in text, kind


def test_valid_ones_mean_what_they_say(some: list[Vector]):
    for vector in some:
        if vector.verdict != "valid":
            continue
        cls = _class(vector.message)
        tree = reference.decode(schema_of(cls), vector.version, vector.body)
        again = reference.encode(schema_of(cls), vector.version, tree)
        whole = vector.data if vector.canonical is None else vector.canonical
        assert again == whole[vector.body_at :], vector.name
        assert vector.json is not None
        told = cls.from_json(vector.json, vector.version).to_json_value(vector.version)
        assert told == vector.json, vector.name
        leaves = [field for field in vector.fields if field.leaf]
        ends = [field.offset + field.length for field in leaves]
        assert [field.offset for field in leaves] == [0, *ends[:-1]] if leaves else not vector.data
        assert not leaves or ends[-1] == len(vector.data)


def test_the_others_are_refused_where_they_say(some: list[Vector]):
    for vector in some:
        if vector.verdict == "valid":
            continue
        assert vector.error is not None
        with pytest.raises(DecodeError) as caught:
            reference.decode(schema_of(_class(vector.message)), vector.version, vector.body)
        error = vector.error
        assert caught.value.offset + vector.body_at == error.offset, vector.name
        assert (caught.value.path, caught.value.problem) == (error.path, error.problem)


def test_frames_are_whole_ones(some: list[Vector]):
    for vector in some:
        if vector.header_version is None or vector.verdict != "valid":
            continue
        if vector.type == "request":
            header: Any = KAFKA.decode_request(vector.data)[0]
        else:
            assert vector.api_key is not None
            header = KAFKA.decode_response(
                vector.data, api_key=vector.api_key, api_version=vector.version
            )[0]
        assert header.to_json_value(vector.header_version) == vector.header


@pytest.mark.slow
def test_the_file(tmp_path: Path):
    plain, packed = tmp_path / "v.jsonl", tmp_path / "v.jsonl.gz"
    chosen = ["--message", "MetadataResponse", "--message", "RequestHeader"]
    for path in (plain, packed):
        result = CliRunner().invoke(vectors_command, ["--out", str(path), *chosen])
        assert result.exit_code == 0, result.output
    text = plain.read_text()
    assert gzip.decompress(packed.read_bytes()).decode() == text
    first, *rest = map(json.loads, text.splitlines())
    assert (first["format"], first["format_version"]) == ("kproto-vectors", 1)
    assert {each["message"] for each in rest} == {"MetadataResponse", "RequestHeader"}
    for each in rest:
        assert set(each) >= {"id", "message", "type", "api_key", "version", "kind", "verdict"}
        assert ("error" in each) == (each["verdict"] != "valid")
        assert ("json" in each) == ("fields" in each) == (each["verdict"] == "valid")


def test_drafts_have_vectors():
    draft = kproto.dialect("kip-455-new")
    lines = list(file_lines(draft, vectors(draft, ["LeaderAndIsrRequest"])))
    assert any('"targetReplicas"' in line for line in lines)
