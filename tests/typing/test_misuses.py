"""The public API as type checkers see it: misuses are reported, and correct uses are not.

``samples/misuses.py`` names the expected error of each line; ``samples/uses.py`` asserts types.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from kproto.builds import built, run
from kproto.errors import AbsentError
from tests.support.toolchain import absent, require

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SAMPLES = ("misuses.py", "uses.py")
PYRIGHT = "1.1.414"
FEWEST_MISUSES = 17

Found = dict[tuple[str, int], set[str]]
"""(file, line) -> the codes of the errors reported there."""


def expected(checker: int) -> dict[tuple[str, int], str]:
    """The code that mypy (0) or pyright (1) must report on each line of the samples."""
    lines = (HERE / "samples" / "misuses.py").read_text().splitlines()
    marks = [(at, re.search(r"# error: (\S+) (\S+)$", line)) for at, line in enumerate(lines, 1)]
    return {("misuses.py", at): mark.groups()[checker] for at, mark in marks if mark is not None}


def compare(found: Found, checker: int) -> None:
    wanted = expected(checker)
    assert len(wanted) >= FEWEST_MISUSES
    assert set(found) == set(wanted)
    assert {at: codes for at, codes in found.items() if wanted[at] not in codes} == {}


def test_mypy() -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", str(HERE / "mypy.ini")]
    command += ["--cache-dir", str(ROOT / ".cache" / "mypy-typing"), "--output", "json"]
    done = subprocess.run(
        [*command, *(str(HERE / "samples" / name) for name in SAMPLES)],
        cwd=ROOT, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found: Found = defaultdict(set)
    for report in map(json.loads, done.stdout.splitlines()):
        if report["severity"] == "error":
            found[Path(report["file"]).name, report["line"]].add(report["code"])
    compare(found, 0)


@pytest.mark.node
def test_pyright() -> None:
    require("node", "npm")

    def build(folder: Path) -> None:
        command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
        run([*command, f"pyright@{PYRIGHT}"], cwd=folder)

    try:
        folder = built("pyright", [PYRIGHT], build)
    except AbsentError as error:
        absent("pyright", str(error))
    command = ["node", str(folder / "node_modules" / "pyright" / "index.js")]
    command += ["--project", str(HERE), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    found: Found = defaultdict(set)
    for report in json.loads(done.stdout)["generalDiagnostics"]:
        if report["severity"] == "error":
            place = Path(report["file"]).name, report["range"]["start"]["line"] + 1
            found[place].add(report["rule"].removeprefix("report"))
    compare(found, 1)
