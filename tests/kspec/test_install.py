"""Folders that are there whole or not at all, commands that are tried again, toolchains that are
absent and say how to be had."""

from __future__ import annotations

import json
import re
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from kproto import builds
from kproto.errors import AbsentError
from kspec.client_catalog import client
from kspec.runner import install, librdkafka


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
    monkeypatch.setattr("kproto.builds.time.sleep", lambda seconds: None)
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
    monkeypatch.setattr("kproto.builds.time.sleep", lambda seconds: None)
    folder = tmp_path / "folder"
    folder.mkdir()
    builds.download(["kcat"], folder)
    assert [path.name for path in folder.iterdir()] == ["kcat.deb"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aiokafka@0.13.0", "aiokafka==0.13.0"),
        ("@platformatic/kafka@1.30.0", "npm install .* @platformatic/kafka@1.30.0"),
        ("@platformatic/kafka-2@2.11.0", "npm install .* @platformatic/kafka@2.11.0 node@22.23.3"),
        ("kafka-clients@4.1.0", "-Dkafka.version=4.1.0"),
        ("franz-go@1.20.6", "go get github.com/twmb/franz-go@v1.20.6"),
        ("rskafka@0.5.0", "cargo add .* rskafka@=0.5.0"),
        ("librdkafka@2.13.2", "make .* LIBRDKAFKA=librdkafka-2.13.2 "),
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
            (cwd / "target" / "release" / "kspec-adapter").write_text("")

    monkeypatch.setattr("kspec.runner.install.run", run)
    monkeypatch.setattr(
        "kspec.runner.install.subprocess.run",
        lambda *words, **options: SimpleNamespace(stdout="v1.20.6\n"),
    )
    chosen, catalogued = client(name), client(name.rpartition("@")[0])
    monkeypatch.setattr(
        "kspec.runner.install.built_library", lambda release: Path(f"librdkafka-{release}")
    )
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


class Npm:
    """npm and the tools that build, played: it packs sources, and lists releases of the package."""

    LISTED: Final = [
        {"version": "1.8.0", "librdkafka": "2.13.0"},
        {"version": "1.10.0", "librdkafka": "2.13.2"},
        {"version": "1.9.0", "librdkafka": "2.13.2"},
    ]

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def run(self, command, cwd, environment=None):
        self.commands.append(command)
        if command[:2] == ["npm", "pack"]:
            with tarfile.open(cwd / "package.tgz", "w:gz") as archive:
                for name in ("package/deps/librdkafka/src/rdkafka.h", "package/binding.gyp"):
                    archive.addfile(tarfile.TarInfo(name))

    def listed(self, command, **options):
        if command[0] == "npm":
            # A range: a name without one, or with *, is the latest release alone.
            assert "@confluentinc/kafka-javascript@>=0" in command
        return SimpleNamespace(stdout=json.dumps(self.LISTED), returncode=0)


@pytest.mark.parametrize(("release", "packed"), [("2.15.1", "1.10.1"), ("2.13.2", "1.10.0")])
def test_the_sources_of_librdkafka_come_with_a_package_and_are_built_once(
    tmp_path, monkeypatch, release, packed
):
    npm = Npm()
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))
    monkeypatch.setattr("kspec.runner.librdkafka.run", npm.run)
    monkeypatch.setattr("kspec.runner.librdkafka.subprocess.run", npm.listed)
    folder = librdkafka.built_library(release)
    assert librdkafka.built_library(release) == folder
    packing, configuring, making = npm.commands
    assert packing[-1] == f"@confluentinc/kafka-javascript@{packed}"
    assert (configuring[0], making[0]) == ("./configure", "make")
    assert [path.name for path in folder.iterdir()] == ["src"], "nothing else of the package"
    assert (folder / "src" / "rdkafka.h").is_file()


def test_a_release_of_librdkafka_that_no_package_has_is_told(tmp_path, monkeypatch):
    npm = Npm()
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))
    monkeypatch.setattr("kspec.runner.librdkafka.run", npm.run)
    monkeypatch.setattr("kspec.runner.librdkafka.subprocess.run", npm.listed)
    with pytest.raises(AbsentError, match=r"never had librdkafka 2\.1\.0, only 2\.13\.0, 2\.13\.2"):
        librdkafka.built_library("2.1.0")


def test_libraries_that_the_machine_lacks_are_unpacked_into_the_cache(tmp_path, monkeypatch):
    """The adapter then links the static library, since the shared one may not be installed."""
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))
    monkeypatch.setattr("kspec.runner.librdkafka._is_found", lambda header: header != "zstd.h")
    downloaded: list[str] = []

    def download(packages, folder):
        downloaded.extend(packages)
        (folder / "libzstd-dev.deb").touch()

    def run(command, cwd, environment=None):
        assert command[:2] == ["dpkg-deb", "-x"]
        library = cwd / "usr" / "lib" / "x86_64-linux-gnu"
        library.mkdir(parents=True)
        (library / "libzstd.a").touch()
        (library / "libzstd.so").symlink_to("libzstd.so.1")
        (cwd / "usr" / "include").mkdir()

    monkeypatch.setattr("kspec.runner.librdkafka.download", download)
    monkeypatch.setattr("kspec.runner.librdkafka.run", run)
    headers, libraries = librdkafka._flags()
    assert downloaded == ["libzstd-dev"]
    assert headers.startswith("--CPPFLAGS=-I")
    (place,) = [Path(each) for each in libraries.removeprefix("--LDFLAGS=-L").split(" -L")]
    assert [path.name for path in place.iterdir()] == ["libzstd.a"]
