"""Another language's decoder over the file: franz-go's kmsg. What it does otherwise than the
verdicts say is listed in docs/reference/vectors.md; a change in it fails here."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import kproto
from kproto.builds import run
from kspec.vectors import file_lines, vectors
from tests.support.toolchain import require

pytestmark = [pytest.mark.go, pytest.mark.slow]

SOURCE = Path(__file__).parent / "go"
SECONDS = 300

SLOW_KIND = "tag-count"
"""kmsg 1.15 counts to 2147483647 for each of these, half a minute of processor time: one is enough
to see that it refuses in the end, and none is run here."""

TAKES = {"unexpected-null", "negative-length"}
"""Kinds of invalid bytes some of which kmsg takes: it reads null, and any negative count, as an
empty or absent value."""

WRITES_OTHERWISE = {"StopReplicaRequest/4"}
"""Valid values that kmsg writes as other bytes."""


def test_kmsg(tmp_path: Path):
    require("go")
    program = tmp_path / "vectors"
    build = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(program), "."]
    run(build, cwd=SOURCE)  # again where the download of a module fails
    kafka = kproto.dialect("kafka")
    chosen = (vector for vector in vectors(kafka) if vector.kind != SLOW_KIND)
    lines = "\n".join(file_lines(kafka, chosen))
    done = subprocess.run(
        [str(program)], input=lines, capture_output=True, text=True, check=True, timeout=SECONDS
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    counts = Counter((each["verdict"], each["got"]) for each in answers)
    print(f"kmsg: {len(answers)} vectors, {dict(counts)}")
    assert len(answers) > 30_000
    assert not [each["id"] for each in answers if each["got"] == "panic"]
    for each in answers:
        if each["verdict"] == "invalid" and each["got"] != "refused":
            assert each["kind"] in TAKES, each
        if each["verdict"] == "valid" and each["got"] != "taken":
            assert each["id"].rsplit("/")[0] + "/4" in WRITES_OTHERWISE, each
            assert each["got"] == "other bytes"
