"""The line protocol with workers that behave, die, babble and hang on to their input."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import outer, worker
from benchmarks.timing import SLICE
from benchmarks.worker import Worker, WorkerError
from kspec.runner import toolchains
from tests.support.toolchain import require

READY = "import sys\nprint('fake 1.0', flush=True)\n"
# A call that takes 1 us, less with every one before: warm after a million of them.
WARMING = """
calls = 0
for line in sys.stdin:
    operation, loops = line.split()
    open(sys.argv[1], "a").write(line)
    calls += int(loops)
    print(1000.0 if calls < 1_000_000 else 10.0, flush=True)
"""


def command(folder: Path, source: str, *arguments: str) -> list[str]:
    path = folder / "worker.py"
    path.write_text(source)
    return [sys.executable, "-I", str(path), *arguments]


def test_a_slice_is_asked_for_as_often_as_it_was_calibrated(tmp_path):
    log = tmp_path / "log"
    with Worker(command(tmp_path, READY + WARMING, str(log))) as fake:
        assert fake.release == "fake 1.0"
        cases = fake.cases()
        assert set(cases) == {"decode", "encode"}
        before = log.read_text().splitlines()
        assert [cases["decode"](), cases["encode"](), cases["encode"]()] == [1000.0] * 3
    asked = log.read_text().splitlines()[len(before) :]
    loops = int(SLICE * 1e9 / 1000)
    assert asked == [f"decode {loops}", f"encode {loops}", f"encode {loops}"]


def test_warming_up_takes_the_time_it_is_given(tmp_path):
    log = tmp_path / "log"
    with Worker(command(tmp_path, READY + WARMING, str(log)), warm_up=2.0) as fake:
        cases = fake.cases()
        assert cases["decode"]() == 10.0  # calibrated once it is warm
    asked = [line.split() for line in log.read_text().splitlines()]
    for operation in ("decode", "encode"):
        assert sum(int(loops) for name, loops in asked if name == operation) >= 1_000_000
    # Many small requests rather than a few long ones: a wrong guess of the speed costs little.
    assert max(int(loops) for _, loops in asked) < 40_000_000


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import sys; sys.exit('does not round-trip')", "ended"),
        (READY + "sys.exit('out of luck')", "ended"),
        (READY + "sys.stdin.readline(); print('Hello', flush=True)", "'Hello', which is no number"),
    ],
)
def test_a_worker_that_fails_says_so(tmp_path, source, words):
    with pytest.raises(WorkerError, match=words), Worker(command(tmp_path, source)) as fake:
        fake.cases()


def test_a_worker_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "STOP_SECONDS", 0.2)
    fake = Worker(command(tmp_path, READY + "import time\nwhile True: time.sleep(60)"))
    fake.close()
    assert fake._process.returncode != 0


def test_without_toolchains_every_outer_codec_says_what_it_lacks(monkeypatch):
    monkeypatch.setattr(toolchains, "find", lambda name: None)
    found = outer.programs()
    assert set(found) == set(outer.NAMES)
    for program in found.values():
        assert isinstance(program, outer.Absent)
        assert "is absent: install" in program.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "needed"),
    [
        pytest.param(outer.JAVA, ("java", "maven"), marks=pytest.mark.java),
        pytest.param(outer.GO, ("go",), marks=pytest.mark.go),
    ],
)
def test_the_programs_refuse_what_they_cannot_round_trip(name, needed, tmp_path, capfd):
    """Built as a run of the benchmark builds them. (CI has no Rust; a run without it says so.)"""
    require(*needed)
    program = outer.programs([name])[name]
    assert isinstance(program, outer.Program), program
    body = tmp_path / "body"
    arguments = [*program.command, "HeartbeatRequest", "4", str(body)]
    body.write_bytes(b"\x02g\0\0\0\7\2m\0\0")
    with Worker(arguments) as started:
        assert 0 < started.ask("decode", 1000) < 1e9
        assert 0 < started.ask("encode", 1000) < 1e9
    body.write_bytes(b"\x02g\0\0\0\7\2m\0\0and more")
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"round-trip" in done.stderr
