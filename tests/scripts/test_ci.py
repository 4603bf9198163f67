"""How ``.ci/run`` runs steps side by side: whole outputs, and an end at the first failure."""

import os
import re
import shlex
from pathlib import Path

import pytest

from scripts import ci
from scripts.ci import Failed, Run, Step
from tests.support.waiting import until


def shell(name: str, script: str) -> Step:
    return Step(name, ("sh", "-c", script))


async def test_lanes_run_side_by_side_and_print_whole_outputs(tmp_path, capsys):
    """Each step of two lanes waits for a file that the other lane's makes."""
    one, two = shlex.quote(f"{tmp_path}/one"), shlex.quote(f"{tmp_path}/two")
    wait = "while [ ! -e {} ]; do sleep 0.01; done; "
    run = Run(
        [
            [shell("first", f"echo a; touch {one}; {wait.format(two)} echo 1 passed")],
            [shell("second", f"{wait.format(one)} touch {two}; echo b"), shell("third", "echo c")],
        ]
    )
    await run.play()
    output = capsys.readouterr().out
    assert re.search(r"==> first \(\d+ s\)\na\n1 passed\n", output)
    assert re.search(r"==> second \(\d+ s\)\nb\n", output)
    assert output.index("==> second") < output.index("==> third")
    lines = sorted(re.sub(" *[0-9]+ s  ", "", line) for line in output.splitlines()[-3:])
    assert lines == ["first: 1 passed", "second: b", "third: c"]


async def test_a_failing_step_stops_the_others(tmp_path, capsys):
    """The stopped step's own child ends with it."""
    lock = tmp_path / "fifo"
    child = f"echo began; mkfifo {lock}; cat {lock} & wait"
    lanes = [
        [shell("endless", child)],
        [
            shell("broken", f"while [ ! -e {lock} ]; do sleep 0.01; done; echo why; exit 3"),
            shell("never", "touch never"),
        ],
    ]
    with pytest.raises(Failed, match="broken failed with exit code 3") as failure:
        await Run(lanes).play()
    assert failure.value.code == 3
    output = capsys.readouterr().out
    assert re.search(r"==> broken \(\d+ s\)\nwhy\n", output)
    assert re.search(r"==> endless \(\d+ s\)\nbegan\n", output), "what a stopped step printed"
    assert "endless: STOPPED\n" in output
    assert "broken: FAILED with exit code 3\n" in output
    assert "never" not in output

    def nobody_reads() -> bool:
        try:
            os.close(os.open(lock, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return True
        return False

    await until(nobody_reads, "the endless step's child ends")


def test_every_step_is_a_target_of_the_makefile() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for lane in ci.LANES:
        for step in lane:
            assert re.search(f"^{re.escape(step.command[2])}:", makefile, re.M), step
