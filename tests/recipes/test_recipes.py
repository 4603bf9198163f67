"""The recipes of docs/how-to/recipes work as they stand: each is run as its first lines say."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.errors import AbsentError
from kspec.client_catalog import client
from kspec.runner.install import install
from kspec.runner.librdkafka import built_library
from tests.support.toolchain import absent, require

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs/how-to/recipes"
SECONDS = 300


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """``mockbroker`` on PATH, as an installed one would be: of this checkout."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "mockbroker"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mockbroker "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def installed(name: str) -> Path:
    """The folder of a client as kspec has it, at the same release."""
    found = client(name)
    require(*found.toolchains)
    try:
        folder = install(found).cwd
    except AbsentError as error:
        absent(name, str(error))
        raise
    assert folder is not None
    return folder


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def play_adapter(command: str, folder: Path, environment: dict[str, str]) -> None:
    """It answers both calls, and an `unsupported` to what it lacks."""
    verdicts = {
        "framing/001": "pass",  # list_topics
        "routing/019": "pass",  # describe_cluster
        "negotiation/027": "unsupported",
        "produce/001": "unsupported",
    }
    options = [word for case in verdicts for word in ("--case", case)]
    kspec = [sys.executable, "-m", "kspec", "run", "--adapter", command, "--out", "report"]
    run([*kspec, *options], folder, environment)
    results = json.loads((folder / "report/results.json").read_bytes())["results"]
    assert {
        each["case"][: each["case"].index("-")]: each["verdict"] for each in results
    } == verdicts


@pytest.mark.go
def test_the_adapter_in_go(tmp_path: Path, environment: dict[str, str]) -> None:
    require("go")
    for source in (RECIPES / "conformance/adapter.go", *(ROOT / "kspec/adapters/go").glob("go.*")):
        shutil.copy(source, tmp_path)
    run(["go", "vet", "."], tmp_path, environment)
    run(["go", "build", "-o", "adapter", "."], tmp_path, environment)
    play_adapter("./adapter", tmp_path, environment)


@pytest.mark.node
def test_the_adapter_in_node(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "node_modules").symlink_to(installed("kafkajs") / "node_modules")
    shutil.copy(RECIPES / "conformance/adapter.mjs", tmp_path)
    play_adapter("node adapter.mjs", tmp_path, environment)


def test_rust(tmp_path: Path, environment: dict[str, str]) -> None:
    require("rust")
    shutil.copy(RECIPES / "mock.rs", tmp_path)
    run(["rustc", "--edition", "2021", "--test", "mock.rs"], tmp_path, environment)
    assert "2 passed" in run(["./mock"], tmp_path, environment)


def test_c(tmp_path: Path, environment: dict[str, str]) -> None:
    found = client("librdkafka")
    require(*found.toolchains)
    library = built_library(found.release)
    shutil.copy(RECIPES / "mock.c", tmp_path)
    (tmp_path / "include").mkdir()
    (tmp_path / "include/librdkafka").symlink_to(library / "src")
    # Its configuration has the libraries that it was linked with.
    (tmp_path / "Makefile").write_text(
        f"include {library}/Makefile.config\n"
        "mock: mock.c\n"
        "\t$(CC) -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L -isystem include "
        f"-o mock mock.c {library}/src/librdkafka.a $(LDFLAGS) $(LIBS) -lpthread\n"
    )
    run(["make", "-s"], tmp_path, environment)
    assert "stored once" in run(["./mock"], tmp_path, environment)


def test_dotnet(tmp_path: Path, environment: dict[str, str]) -> None:
    """On Mono, with a folder that has Confluent.Kafka.dll and librdkafka.so: NuGet is not among the
    registries that tests use."""
    library = os.environ.get("CONFLUENT_KAFKA")
    if library is None or shutil.which("mcs") is None:
        absent("dotnet", "install mono-mcs; CONFLUENT_KAFKA names the folder of the library")
        return
    for name in ("Confluent.Kafka.dll", "librdkafka.so"):
        (tmp_path / name).symlink_to(Path(library) / name)
    references = ["-r:Confluent.Kafka.dll", "-r:System.Net.Http"]
    run(["mcs", *references, "-out:mock.exe", str(RECIPES / "mock.cs")], tmp_path, environment)
    libraries = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    out = run(["mono", "mock.exe"], tmp_path, {**environment, "LD_LIBRARY_PATH": libraries})
    assert "stored once" in out


def test_every_recipe_is_listed() -> None:
    listed = (RECIPES / "README.md").read_text()
    names = {path.name for path in RECIPES.iterdir()} - {"README.md"}
    assert all(
        re.search(rf"\[{re.escape(name)}\]\({re.escape(name)}(/README\.md)?\)", listed)
        for name in names
    )
    assert len(names) == 6
