"""A run that ends while it publishes: readers refuse the folder, and the next run repairs it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kproto.outputs import locked
from tests.cli.programs import MAINS
from tests.outputs.conditions import ended_at_rename

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST = ("table", str(CAPTURES / "mock-2.4.pcap.zst"), "--tables", "requests,connections,lineage")
SECOND = ("table", str(CAPTURES / "mock-4.4.pcap.zst"), *FIRST[2:])
RENAMES = 5
"""Of a run: the incomplete manifest, three tables, the complete manifest."""
READERS = (
    ("sql", "{}", "select count(*) from requests"),
    ("ask", "errors", "{}"),
    ("audit", "--to", "kafka-4.0", "{}"),
    ("report", "{}", "--out", "-"),
)


class Runs:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = str(folder), capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            MAINS["wiredump"](words)
        out, err = self._capsys.readouterr()
        return int(ended.value.code or 0), err or out

    def write(self, *words: str) -> tuple[int, str]:
        return self(*words, "--out", self._folder)

    def killed(self, at: int, *words: str) -> None:
        arguments = [*words, "--out", self._folder]
        code = ended_at_rename("wiredump", arguments, signal.SIGKILL, at, Path(self._folder))
        assert code == -signal.SIGKILL

    @property
    def count(self) -> int:
        """Of all runs' requests."""
        query = "select count(*) from requests"
        code, out = self("sql", self._folder, query, "--format", "csv")
        assert code == 0, out
        return int(out.split()[1])

    def refusals(self) -> set[str]:
        """The lines that readers end with."""
        found = set()
        for reader in READERS:
            code, err = self(*(word.format(self._folder) for word in reader))
            assert (code, err.count("\n")) == (1, 1), err
            found.add(err)
        return found


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path / "out", capsys)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, RENAMES + 1))
def test_a_killed_run_is_refused_and_may_be_repeated(runs: Runs, tmp_path: Path, at: int) -> None:
    runs.killed(at, *FIRST)
    (refusal,) = runs.refusals()
    told = (
        "has no tables" if at == 1 else "is publishing its tables, or was killed; if it was, write"
    )
    assert told in refusal
    assert runs.write(*FIRST)[0] == 0
    assert runs.count > 0
    again = files(tmp_path / "out")
    assert runs.write(*FIRST, "--mode", "overwrite")[0] == 0
    assert files(tmp_path / "out") == again
    assert not [name for name in again if name.startswith("_staging") or name.endswith(".part")]


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 3])
def test_a_killed_run_beside_another_is_replaced_by_the_next(
    runs: Runs, tmp_path: Path, at: int
) -> None:
    runs.write(*FIRST)
    first = runs.count
    runs.killed(at, *SECOND, "--mode", "append")
    assert runs.count == first  # nothing of the second run is there
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert runs.write(*SECOND, "--mode", "append")[0] == 0
    assert runs.count > first


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 3])
def test_a_killed_run_in_place_of_another(runs: Runs, at: int) -> None:
    """Until the first file is published, the other run's tables are there."""
    runs.write(*FIRST)
    first = runs.count
    runs.killed(at, *SECOND, "--mode", "overwrite")
    if at == 1:
        assert runs.count == first
    else:
        runs.refusals()
    assert runs.write(*SECOND, "--mode", "overwrite")[0] == 0
    assert runs.count > 0


@pytest.mark.slow
def test_a_run_that_is_writing_is_not_disturbed(runs: Runs, tmp_path: Path) -> None:
    runs.killed(1, *FIRST)
    (writing,) = (tmp_path / "out" / "_staging").iterdir()
    with locked(str(writing)):
        for mode in ("append", "overwrite", "error"):
            code, err = runs.write(*FIRST, "--mode", mode)
            assert (code, "another process is writing" in err) == (1, True), err
        assert runs.write(*SECOND, "--mode", "append")[0] == 0
    assert runs.write(*FIRST, "--mode", "append")[0] == 0


def test_an_empty_result_does_not_replace_tables(runs: Runs, tmp_path: Path) -> None:
    runs.write(*FIRST)
    before, count = files(tmp_path / "out"), runs.count
    (tmp_path / "junk.pcap").write_bytes(bytes(5000))
    junk = ("table", str(tmp_path / "junk.pcap"), "--mode", "overwrite")
    code, err = runs.write(*junk)
    assert (code, "nothing was read: the tables in" in err) == (1, True), err
    assert (files(tmp_path / "out"), runs.count) == (before, count)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.slow
def test_a_signal_removes_what_was_staged(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    def interrupt(*arguments: Any, **more: Any) -> None:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("wiredump.tables.publishing.Publication.publish", interrupt)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        code, err = runs.write(*FIRST, "--jobs", jobs)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (code, err) == (128 + signal.SIGTERM, "")
    assert not (tmp_path / "out").exists()
