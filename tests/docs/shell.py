"""Run or check the command lines of a page, in this process where they are ours.

``check`` parses a line with the command's own options and runs nothing. ``Session`` runs the lines
of one page in order, in the current folder. A cluster that ``mockbroker serve`` starts lives until
the session closes; its ports are free ones, and stand for the ports that the page shows.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from unittest import mock

import click
from click.testing import CliRunner

import kproto.__main__
import kspec.cli
import mockbroker.cli
import wiredump.cli

__all__ = ["Session", "check", "matches"]

ROOT: Final = Path(__file__).parents[2]
_PATIENCE: Final = 30.0
"""Seconds that a cluster may take to record what its clients did."""
TOOLS: Final[dict[str, tuple[click.Command, Callable[[], object]]]] = {
    "kproto": (kproto.__main__.cli, kproto.__main__.main),
    "mockbroker": (mockbroker.cli.cli, mockbroker.cli.main),
    "wiredump": (wiredump.cli.cli, wiredump.cli.main),
    "kspec": (kspec.cli.commands, kspec.cli.main),
}
FOLDERS: Final = ("benchmarks", "demo", "fuzz", "scripts", "tests")
"""Folders whose modules contributors run."""

OTHERS: Final = ("cat", "cp", "grep", "head", "ls", "mkdir", "pytest", "python", "tail", "wc")
"""Programs of other people that a session may run."""

ADDRESS: Final = re.compile(r"127\.0\.0\.1:\d+")


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: ``...`` stands for any text, and a line of its own for
    any lines or none. Trailing blanks do not count."""
    wanted, seen = (
        "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        for text in (shown, printed)
    )
    lines = [
        "(?:.*\n)?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        for line in wanted.split("\n")
    ]
    pattern = "".join(lines)
    return re.fullmatch(pattern, seen + "\n", re.S) is not None and (bool(seen) or not wanted)


def _words(line: str) -> list[list[str]]:
    """The commands of a pipeline or list, as words, without redirections and assignments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    commands: list[list[str]] = [[]]
    words = iter(lexer)
    for word in words:
        if set(word) <= set("|&;"):
            commands.append([])
        elif set(word) <= set("<>"):
            next(words)
        elif commands[-1] or not re.match(r"[A-Z_]+=", word):
            commands[-1].append(word)
    return [command for command in commands if command]


def check(line: str) -> None:
    """Raise AssertionError if a command of ours in the line does not exist with these options."""
    for name, *arguments in _words(line):
        name = name.removeprefix(".venv/bin/")
        if name in TOOLS:
            _check_tool(name, arguments)
        elif name == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
            wanted = [word for word in arguments if "=" not in word]
            assert set(wanted) <= set(targets), f"{line}: no such target"
        elif name in ("pip", "pipx", "uv"):
            known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            named = ",".join(re.findall(r"\[([\w,-]+)\]", line)).split(",")
            extras = {extra for extra in named if extra}
            assert extras <= set(known["optional-dependencies"]), f"{line}: no such extra"
        elif arguments[:1] == ["-m"] and arguments[1].partition(".")[0] in (*TOOLS, *FOLDERS):
            assert importlib.util.find_spec(arguments[1]), f"{line}: no such module"


def _check_tool(name: str, arguments: Sequence[str]) -> None:
    command, context, rest = TOOLS[name][0], None, list(arguments)
    try:
        while True:
            context = command.make_context(command.name or name, rest, parent=context)
            if not isinstance(command, click.Group):
                return
            rest = [*context._protected_args, *context.args]
            if not rest:
                assert command.invoke_without_command, f"{name}: a command is missing"
                return
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command = found
    except click.exceptions.Exit:  # --help, --version
        return
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # a file of the reader's
            raise AssertionError(
                f"{shlex.join([name, *arguments])}: {error.format_message()}"
            ) from None
    except click.UsageError as error:
        raise AssertionError(
            f"{shlex.join([name, *arguments])}: {error.format_message()}"
        ) from None


class Session:
    """The terminals that a reader of one page has open."""

    def __init__(self, run_pytest: Callable[[Sequence[str]], tuple[int, str]]) -> None:
        self._run_pytest = run_pytest
        self._open = ExitStack()
        self._ports: dict[str, str] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def real(self, text: str) -> str:
        """``text`` with the addresses in use for those that the page shows."""
        return ADDRESS.sub(lambda found: self._ports.get(found[0], found[0]), text)

    def _as_shown(self, text: str) -> str:
        shown = {real: address for address, real in self._ports.items()}
        return ADDRESS.sub(lambda found: shown.get(found[0], found[0]), text)

    def run(self, line: str, shown: str, code: int) -> None:
        """Run a line; raise AssertionError unless it exits with ``code`` and prints ``shown``."""
        if code != 2:  # which bad usage exits with
            check(line)
        first, *more = _words(line)
        if first[:2] == ["mockbroker", "serve"]:
            assert not more
            self._serve(first[1:], shown)
            return
        if first[0] == "pytest" and not more:
            ended, printed = self._run_pytest(first[1:])
            found = [printed]
        elif first[0] in TOOLS and not more and not re.search(r"[<>$*]", line):
            words = [self.real(word) for word in first]
            ended, found = _run_tool(words)
            # A broker notes that its client has gone a moment after the client has.
            until = time.monotonic() + _PATIENCE
            while words[:2] == ["wiredump", "show"] and self._ports:
                if self._prints(shown, found) or time.monotonic() > until:
                    break
                time.sleep(0.1)
                ended, found = _run_tool(words)
        else:
            ended, found = self._run_shell(line)
        assert ended == code, f"{line}: exit code {ended}\n{found[-1]}"
        assert self._prints(shown, found), f"$ {line}\n{self._as_shown(found[-1])}"

    def _prints(self, shown: str, found: Sequence[str]) -> bool:
        return any(matches(shown, self._as_shown(text)) for text in found)

    def _run_shell(self, line: str) -> tuple[int, list[str]]:
        named = {words[0] for words in _words(line)}
        assert named <= {*TOOLS, *OTHERS}, f"{line}: only {', '.join(OTHERS)} may be run"
        done = subprocess.run(
            ["sh", "-c", self.real(line)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            env={**os.environ, "PATH": _path(), "COLUMNS": "80"},
        )
        return done.returncode, [done.stdout]

    def _serve(self, words: Sequence[str], shown: str) -> None:
        """Start a cluster on free ports, which stand for those of the page's options and output."""
        arguments = [ADDRESS.sub("127.0.0.1:0", self.real(word)) for word in words]
        process = self._open.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "mockbroker", *arguments], stdout=subprocess.PIPE, text=True
            )
        )
        self._open.callback(process.terminate)
        assert process.stdout is not None
        line = process.stdout.readline()
        self._ports.update(zip(_addresses(shown), _addresses(line), strict=False))
        for option, key in (("--control", "control"), ("--listen", "bootstrap")):
            if option in words and (named := ADDRESS.search(words[words.index(option) + 1])):
                self._ports.setdefault(named[0], _addresses(json.loads(line)[key])[0])
        assert matches(shown or "...", self._as_shown(line)), line


def _addresses(text: str) -> list[str]:
    return list(dict.fromkeys(ADDRESS.findall(text)))


def _path() -> str:
    """The search path with this environment's programs first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _run_tool(words: Sequence[str]) -> tuple[int, list[str]]:
    """Run one of our commands here; its exit code, its standard output, and both outputs mixed."""
    main = TOOLS[words[0]][1]
    with (
        CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "PATH": _path()}).isolation() as streams,
        mock.patch.object(sys, "argv", list(words)),
    ):
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        texts = [streams[0].getvalue(), streams[2].getvalue()]
    found = [text.decode().replace("\r\n", "\n") for text in texts]
    return code if isinstance(code, int) else int(code is not None), found


def pages() -> Iterator[Path]:
    """Every page whose blocks are run, relative to the checkout."""
    yield Path("README.md")
    yield Path("CONTRIBUTING.md")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path.relative_to(ROOT)
