"""A new case is one file: that of docs/how-to/writing-cases.md, put into an empty folder, is
listed, proved and played from the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "writing-cases.md"


def kspec(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kspec", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    blocks = re.findall(r"```yaml\n(title: .*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) == 1
    path = tmp_path / "cases" / "mine" / "007-the-controller-moves.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(blocks[0])
    return path.parents[1]


@pytest.mark.slow
def test_a_file_in_a_folder_is_a_case(folder: Path, tmp_path: Path) -> None:
    (listed,) = json.loads(kspec("list", "--cases", folder, "--json").stdout)
    assert listed["id"] == "mine/007-the-controller-moves"
    proved = kspec("prove", "mine/007", "--cases", folder)
    assert (proved.returncode, proved.stdout) == (0, "1 case, 0 flaws\n")
    clients = ("reference", "wrong:keeps-the-stale-controller")
    played = kspec("run", "--cases", folder, "--case", "mine", "--out", tmp_path / "out",
                   *(word for name in clients for word in ("--client", name)))  # fmt: skip
    assert played.returncode == 1, played.stdout + played.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert [(each["client"], each["verdict"]) for each in results] == [
        ("reference", "pass"),
        ("wrong:keeps-the-stale-controller", "fail"),
    ]


@pytest.mark.slow
def test_a_file_with_a_mistake_is_told_where(folder: Path) -> None:
    (path,) = folder.glob("*/*.yaml")
    text = path.read_text().replace("failover 3", "fail-over 3")
    path.write_text(text)
    line = text[: text.index("fail-over")].count("\n") + 1
    done = kspec("run", "--cases", folder, "--client", "reference")
    assert done.returncode == 2
    assert f"{path}:{line}: steps[1].cluster: 'fail-over 3'" in done.stderr
