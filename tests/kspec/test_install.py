"""A driver that behaves, one that dies, one that hangs, one that babbles; and folders that are
there whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from demo import drivers, install
from demo.catalog import client
from demo.drivers import Answer, DriverError, drive
from demo.install import AbsentError, Launch

GREETING = 'print(\'{"client": "c", "version": "1"}\', flush=True)\n'


def program(folder: Path, source: str) -> Launch:
    path = folder / "driver.py"
    path.write_text("import sys\n" + source)
    return Launch((sys.executable, "-I", str(path)), folder)


def test_calls_are_answered_in_order(tmp_path):
    echo = """print('{"ok": true, "result": %s}' % line.strip(), flush=True)"""
    launch = program(tmp_path, f"{GREETING}for line in sys.stdin: {echo}")
    with drive(launch, "127.0.0.1:1") as driver:
        assert driver.version == "1"
        for number in range(3):
            answer = driver.call("echo", number=number)
            assert answer == Answer(ok=True, result={"op": "echo", "number": number})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (GREETING + 'sys.exit("out of luck")', "out of luck"),
        (GREETING + 'print("Hello", flush=True); sys.stdin.read()', "not a line of the protocol"),
        (GREETING + 'print("[1]", flush=True); sys.stdin.read()', "not a line of the protocol"),
        (GREETING + "sys.stdin.read()", "no answer"),
    ],
)
def test_a_driver_that_goes_wrong_is_an_error_and_is_ended(tmp_path, monkeypatch, source, words):
    monkeypatch.setattr(drivers, "ANSWER_SECONDS", 2.0)
    with drive(program(tmp_path, source), "127.0.0.1:1") as driver:
        process = driver._process
        with pytest.raises(DriverError, match=words):
            driver.call("describe_cluster")
    assert process.poll() is not None


def test_a_driver_that_ignores_the_end_of_input_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(drivers, "STOP_SECONDS", 0.2)
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    launch = program(tmp_path, source + GREETING + "time.sleep(60)")
    with drive(launch, "127.0.0.1:1") as driver:
        process = driver._process
    assert process.poll() is not None


def test_a_build_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path))

    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise AbsentError("no network")

    with pytest.raises(AbsentError, match="no network"):
        install._built(client("kafkajs"), ["a"], build)
    assert list((tmp_path / "demo").iterdir()) == []


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
    monkeypatch.setattr("demo.install.time.sleep", lambda seconds: None)
    count = tmp_path / "count"
    script = f"open({str(count)!r}, 'a').write('x'); raise SystemExit('the registry said no')"
    with pytest.raises(AbsentError, match="failed 3 times: the registry said no"):
        install.run([sys.executable, "-c", script], cwd=tmp_path)
    assert count.read_text() == "xxx"


def test_a_missing_toolchain_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("demo.install.toolchains.find", lambda name: None)
    with pytest.raises(AbsentError, match=r"java is absent: install a JDK.*maven is absent"):
        install.install(client("java-admin"))


@pytest.mark.parametrize(("version", "runs"), [("v18.20.4", False), ("v20.19.0", True)])
def test_an_old_node_is_told_apart(monkeypatch, version, runs):
    monkeypatch.setattr("demo.install.toolchains.find", lambda name: version)
    if runs:
        install._check_node(client("@platformatic/kafka"))
    else:
        with pytest.raises(AbsentError, match=r"needs Node.js 20.19 or newer, and this is v18"):
            install._check_node(client("@platformatic/kafka"))
    install._check_node(client("kafkajs"))


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path / "file" / "inside"))
    (tmp_path / "file").write_text("")
    with pytest.raises(AbsentError, match="KPROTO_CACHE names another place"):
        install._built(client("kafkajs"), ["a"], lambda folder: None)
