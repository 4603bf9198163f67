"""Folders that are there whole or not at all, commands that are tried again, toolchains that are
absent and say how to be had."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kspec.catalog import client
from kspec.errors import AbsentError
from kspec.runner import install


def test_a_build_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))

    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise AbsentError("no network")

    with pytest.raises(AbsentError, match="no network"):
        install._built(client("kafkajs"), ["a"], build)
    assert list((tmp_path / "kspec").iterdir()) == []


def test_a_folder_is_built_once_for_each_thing_it_is_made_from(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "whole").write_text("")

    first = install._built(client("kafkajs"), ["a"], build)
    again = install._built(client("kafkajs"), ["a"], build)
    other = install._built(client("kafkajs"), ["b"], build)
    assert first == again != other
    assert len(built) == 2
    assert (first / "whole").exists()
    assert (other / "whole").exists()


def test_a_command_is_tried_again_and_its_last_words_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("kspec.runner.install.time.sleep", lambda seconds: None)
    count = tmp_path / "count"
    script = f"open({str(count)!r}, 'a').write('x'); raise SystemExit('the registry said no')"
    with pytest.raises(AbsentError, match="failed 3 times: the registry said no"):
        install.run([sys.executable, "-c", script], cwd=tmp_path)
    assert count.read_text() == "xxx"


def test_a_missing_toolchain_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("kspec.runner.install.toolchains.find", lambda name: None)
    with pytest.raises(AbsentError, match=r"java is absent: install a JDK.*maven is absent"):
        install.install(client("kafka-clients"))


@pytest.mark.parametrize(("version", "runs"), [("v18.20.4", False), ("v20.19.0", True)])
def test_an_old_node_is_told_apart(monkeypatch, version, runs):
    monkeypatch.setattr("kspec.runner.install.toolchains.find", lambda name: version)
    if runs:
        install._check_node(client("@platformatic/kafka"))
    else:
        with pytest.raises(AbsentError, match=r"needs Node.js 20.19 or newer, but this is v18"):
            install._check_node(client("@platformatic/kafka"))
    install._check_node(client("kafkajs"))


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path / "file" / "inside"))
    (tmp_path / "file").write_text("")
    with pytest.raises(AbsentError, match="KPROTO_CACHE sets another folder"):
        install._built(client("kafkajs"), ["a"], lambda folder: None)


def test_packages_are_found_where_the_machine_has_no_list_of_them(tmp_path, monkeypatch):
    """apt-get, played by a script: it downloads by lists of its own only."""
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text('#!/bin/sh\ncase "$*" in *Dir::State::Lists=*download*) touch "$PWD/kcat.deb";;'
                   " *update*) ;; *) exit 100;; esac\n")  # fmt: skip
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{apt.parent}:/usr/bin:/bin")
    monkeypatch.setattr("kspec.runner.install.time.sleep", lambda seconds: None)
    folder = tmp_path / "folder"
    folder.mkdir()
    install._download(["kcat"], folder)
    assert [path.name for path in folder.iterdir()] == ["kcat.deb"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aiokafka@0.13.0", "aiokafka==0.13.0"),
        ("@platformatic/kafka@1.30.0", "npm install .* @platformatic/kafka@1.30.0"),
        ("kafka-clients@4.1.0", "-Dkafka.version=4.1.0"),
        ("franz-go@1.20.6", "go get github.com/twmb/franz-go@v1.20.6"),
        ("rskafka@0.5.0", "cargo add .* rskafka@=0.5.0"),
    ],
)
def test_another_release_is_installed_beside_the_catalogs(tmp_path, monkeypatch, name, expected):
    """The package managers are not run; what they would be asked is compared."""
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))
    monkeypatch.setattr("kspec.runner.install.toolchains.find", lambda tool: "v22.0.0")
    monkeypatch.setattr("kspec.runner.install.toolchains.missing", lambda tools: [])
    asked: list[str] = []

    def run(command, cwd, environment=None):
        asked.append(" ".join(map(str, command)))
        if command[0] == "cargo" and command[1] == "build":
            (cwd / "target" / "release").mkdir(parents=True)
            (cwd / "target" / "release" / "kspec-adapter-rskafka").write_text("")

    monkeypatch.setattr("kspec.runner.install.run", run)
    monkeypatch.setattr(
        "kspec.runner.install.subprocess.run",
        lambda *words, **options: SimpleNamespace(stdout="v1.20.6\n"),
    )
    chosen, catalogued = client(name), client(name.rpartition("@")[0])
    launch = install.install(chosen)
    assert any(re.search(expected, line) for line in asked), asked
    assert launch != install.install(catalogued), "each has a folder of its own"


def test_a_module_that_others_need_newer_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("kspec.runner.install.run", lambda command, cwd: None)
    monkeypatch.setattr(
        "kspec.runner.install.subprocess.run",
        lambda *words, **options: SimpleNamespace(stdout="v1.21.0\n"),
    )
    with pytest.raises(AbsentError, match=r"need github.com/twmb/franz-go v1.21.0 or newer"):
        install._choose_module(client("franz-go@v1.2.0"), tmp_path)
