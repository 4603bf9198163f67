"""docs/faults.md is true: its rules load, its Python runs, and it tells of every member."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mockbroker.faults import Fault, read_faults

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/faults.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_rules_load():
    (text,) = blocks("yaml")
    assert len(read_faults(text, source="faults.yaml")) == 3


def test_the_python_runs():
    found = blocks("python")
    assert found
    for block in found:
        exec(compile(block, "docs/faults.md", "exec"), {"__name__": "page"})


def test_every_member_is_told_of_and_no_other():
    members = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.M))
    assert members | {"name"} == set(Fault.__struct_fields__)


@pytest.mark.slow
def test_the_commands_do_as_shown(tmp_path):
    (text,) = blocks("yaml")
    (tmp_path / "faults.yaml").write_text(text)
    (shell,) = blocks("sh")
    serve, *steps = [shlex.split(line) for line in shell.splitlines()]
    place = serve[serve.index("--control") + 1]
    command = [sys.executable, "-m", *(w if w != place else "127.0.0.1:0" for w in serve)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["control"]
        for step in steps:
            assert step[2] == f"http://{place}"
            done = subprocess.run(
                [sys.executable, "-m", "mockbroker", "ctl", url, *step[3:]],
                cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0  # all were cleared


@pytest.mark.parametrize(
    "step",
    sorted(set(re.findall(r"`((?:failover|[a-z]+-[a-z]+|advance) [^`]*?)`", PAGE))),
)
def test_the_steps_are_steps(step):
    Fault(steps_before=[step])
