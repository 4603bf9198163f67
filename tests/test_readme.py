"""README.md is true: its Python runs, its console sessions print what it shows, its commands exist.

``python`` blocks, and those of docs/codec.md, run in order in one namespace a page. In ``console``
blocks each ``$ kproto ...`` line is run, and its output compared unless the README shows ``...``.
In ``sh`` blocks each command must exist, with every option it is given, and every ``make`` target;
the cluster it serves is steered as shown.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import kproto.__main__
import kspec.cli
import mockbroker.cli
import wiredump.cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CODEC = (ROOT / "docs/codec.md").read_text()
MOCKBROKER = (ROOT / "docs/mockbroker.md").read_text()
TOOLS = {
    "kproto": kproto.__main__.cli,
    "mockbroker": mockbroker.cli.cli,
    "wiredump": wiredump.cli.cli,
    "kspec": kspec.cli.commands,
}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def run(arguments: list[str]) -> str:
    """Standard output of one of our commands, which has to succeed, without trailing blanks."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def helped(arguments: list[str]) -> str | None:
    """What ``--help`` of one of our commands prints; None where it fails. In this process: to start
    one for each costs more than the rest of the page."""
    done = CliRunner().invoke(TOOLS[arguments[0]], [*arguments[1:], "--help"])
    return done.stdout if done.exit_code == 0 else None


def sessions() -> list[tuple[str, str]]:
    """(command, shown output) of every ``$`` line in a console block."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown.strip("\n")))
    return found


def shell_lines(*texts: str) -> list[list[str]]:
    lines = [line for text in texts for b in blocks("sh", text) for line in b.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("name", "text", "least"), [("README.md", README, 4), ("docs/codec.md", CODEC, 1)]
)
def test_the_python_blocks_run(name, text, least):
    namespace: dict[str, object] = {"__name__": "readme"}
    found = blocks("python", text)
    assert len(found) >= least
    for number, block in enumerate(found, 1):
        exec(compile(block, f"{name}, python block {number}", "exec"), namespace)


@pytest.mark.parametrize(("command", "shown"), sessions(), ids=lambda text: text[:40])
def test_the_console_sessions_print_what_is_shown(command, shown):
    words = shlex.split(command)
    assert words[0] in TOOLS
    printed = run(words).strip("\n")
    if shown == "...":
        assert printed
    else:
        assert printed == shown


@pytest.mark.parametrize(
    "words",
    [words for words in shell_lines(README, CONTRIBUTING, MOCKBROKER) if words[0] in TOOLS],
    ids=lambda w: " ".join(w[:3]),
)
def test_the_commands_exist_with_their_options(words):
    """Subcommands are followed as far as ``--help`` knows them."""
    command = [words[0]]
    for word in words[1:]:
        if word.startswith("-") or helped([*command, word]) is None:
            break
        command.append(word)
    assert len(command) > 1, f"{words[0]} has no command {words[1]!r}"
    surface = (
        words[words.index("--profile") :][:2]
        if words[1:2] == ["admin"] and "--profile" in words
        else []
    )
    known = helped([*command, *surface])
    assert known is not None
    missing = [w for w in words if w.startswith("--") and w.partition("=")[0] not in known]
    assert missing == []


@pytest.mark.slow
def test_the_steering_of_a_cluster_works_as_shown():
    """The first ``mockbroker serve`` of the README, and every ``ctl`` line on that cluster."""
    lines = [words for words in shell_lines(README) if words[0] == "mockbroker"]
    serve = next(words for words in lines if words[1] == "serve" and "--control" in words)
    steps = [words[3:] for words in lines if words[1] == "ctl"]
    assert steps
    process = subprocess.Popen(
        [sys.executable, "-m", *serve], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["control"]
        for step in steps:
            assert run(["mockbroker", "ctl", url, *step]), step
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.slow
def test_the_clusters_of_the_mock_brokers_page_are_steered_as_shown():
    """Each is told by the control port it is given there, and is given a free one here."""
    lines = [words for words in shell_lines(MOCKBROKER) if words[0] == "mockbroker"]
    steered = 0
    for serve in (words for words in lines if words[1] == "serve" and "--control" in words):
        place = serve[serve.index("--control") + 1]
        steps = [words[3:] for words in lines if words[1] == "ctl" and words[2].endswith(place)]
        command = [sys.executable, "-m", *(w if w != place else "127.0.0.1:0" for w in serve)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["control"]
            for step in steps:
                run(["mockbroker", "ctl", url, *step])
                steered += 1
        finally:
            process.terminate()
            process.communicate(timeout=30)
    assert steered == sum(words[1] == "ctl" for words in lines) > 5


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = README + CONTRIBUTING
    named = set(re.findall(r"`make ([a-z-]+)", text)) | {
        word
        for words in shell_lines(README, CONTRIBUTING)
        if words[0] == "make"
        for word in words[1:]
    }
    assert named
    assert named <= targets


def test_the_paths_it_names_exist():
    """Every path of the table of where things live."""
    table = README.partition("## Where things live")[2].partition("\n## ")[0]
    named = [path for row in re.findall(r"^\| (`.*?) \|", table, re.M)
             for path in re.findall(r"`([^`]+)`", row)]  # fmt: skip
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README + CONTRIBUTING)
    links += [f"docs/{link}" for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", MOCKBROKER)]
    assert [link for link in links if not (ROOT / link).exists()] == []
