"""The programs of `kspec report` are run, and show what they are said to show."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from kspec.client_catalog import client as client_named
from kspec.errors import KspecError
from kspec.model import Case, CaseFile
from kspec.report.reproducers import ADDRESS, CONTROL, FAULTS, Reproducer, reproducer_of
from kspec.report.snippets import LANGUAGES
from kspec.runner.files import load_cases
from tests.kspec.which import program
from tests.support import toolchain

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@cache
def cases() -> dict[str, CaseFile]:
    return {case.id[: len(case.group) + 4]: case for case in load_cases()}


def made(client: str, number: str, place: int = 0) -> Reproducer:
    return reproducer_of(client, client_named(client).release, cases()[number].variants[place].case)


@contextmanager
def cluster(found: Reproducer, folder: Path) -> Iterator[dict[str, str]]:
    """Run the command on free ports; yield what each address of the program stands for."""
    words = shlex.split(found.serve.replace(ADDRESS, "127.0.0.1:0").replace(CONTROL, "127.0.0.1:0"))
    assert words[0] == "mockbroker"
    (folder / FAULTS).write_text(found.faults)
    command = [sys.executable, "-m", "mockbroker", *words[1:], "--exit-with-parent"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            said = json.loads(server.stdout.readline())
            host, _, port = ADDRESS.rpartition(":")
            names = {
                f"{host}:{int(port) + place}": address
                for place, address in enumerate(said["brokers"].values())
            }
            yield names | {f"http://{CONTROL}": said["control"]}
        finally:
            server.terminate()


def repeat(found: Reproducer, folder: Path, timeout: float = 120) -> str:
    """Return the program's output."""
    with cluster(found, folder) as names:
        text = re.sub(r"(http://)?127\.0\.0\.1:9\d\d\d", lambda each: names[each[0]], found.program)
        (folder / found.file).write_text(text)
        command = [sys.executable, found.file]
        if found.language == "go":
            for name in ("go.mod", "go.sum"):
                shutil.copy(ROOT / "kspec" / "adapters" / "go" / name, folder)
            command = ["go", "run", "."]
        environment = {**os.environ, "PATH": PATH, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
        )
        return done.stdout + done.stderr


def lines_of(output: str, names: Sequence[str]) -> list[str]:
    """Return the program's line of each call."""
    found = {line.split(",", maxsplit=1)[0]: line for line in output.splitlines()}
    assert set(names) <= set(found), output
    return [found[name] for name in names]


@pytest.mark.slow
def test_kafka_python_reports_a_pause_as_an_error(tmp_path):
    program(client_named("kafka-python"))
    output = repeat(made("kafka-python", "quota/001"), tmp_path)
    first, second = lines_of(output, ["first", "second"])
    assert "Error" not in first
    assert "NodeNotReadyError" in second


@pytest.mark.slow
def test_confluent_kafka_does_not_look_for_the_new_controller(tmp_path):
    program(client_named("confluent-kafka"))
    output = repeat(made("confluent-kafka", "routing/017"), tmp_path)
    before, *after = lines_of(output, ["before", "at first", "then"])
    assert "[None]" in before
    assert all("NOT_CONTROLLER" in line for line in after)


@pytest.mark.slow
@pytest.mark.go
def test_franz_go_elects_everywhere_for_an_empty_list(tmp_path):
    toolchain.require("go")
    output = repeat(made("franz-go", "election/005"), tmp_path, timeout=600)
    (line,) = lines_of(output, ["elect_leaders"])
    assert "Topic:foo" in line
    formatted = subprocess.run(["gofmt", "-l", "."], cwd=tmp_path, capture_output=True, text=True)
    assert formatted.stdout == ""


@pytest.mark.parametrize("client", LANGUAGES)
def test_python_programs_are_valid_and_name_their_calls(client):
    count = 0
    for number, file in cases().items():
        for place, variant in enumerate(file.variants):
            try:
                found = made(client, number, place)
            except KspecError:
                continue
            count += 1
            if found.language == "python":
                compile(found.program, found.file, "exec")
            for call in (each for step in variant.case.steps for each in step.calls):
                assert json.dumps(call.name or call.call) in found.program
    assert count >= 80


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        ("sasl/009", "`mockbroker serve` has no option for cluster.scram_iterations"),
        ("correlation/012", "names the brokers to start from"),
        ("correlation/015", "makes calls at once"),
    ],
)
def test_what_only_kspec_can_stage_is_said(number, problem):
    with pytest.raises(KspecError, match=problem):
        made("kafka-python", number)


def test_a_client_without_a_template_is_said():
    case: Case = cases()["quota/001"].case
    with pytest.raises(KspecError, match="no template for sarama"):
        reproducer_of("sarama", "v1", case)
