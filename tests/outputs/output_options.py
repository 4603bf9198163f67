"""Every option that names an output, found by walking the commands, and what fills it."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import pytest

import demo.__main__
from kproto.cli.outputs import OutputFile, OutputFolder, OutputStreamType
from kproto.cli.tool_command import ProfileCommand
from kspec.runner.files import CASES
from tests.cli.programs import MAINS, PROGRAMS

__all__ = ["NOT_PRODUCED", "PRODUCERS", "Inputs", "Option", "Producer", "options", "parameters"]

ROOT = Path(__file__).parents[2]
CAPTURE = str(ROOT / "tests" / "captures" / "mock-2.4.pcap.zst")
ADAPTER = f"{shlex.quote(sys.executable)} -m kspec.adapters.python.kproto_adapter"
SCHEMA: Final = """{
  "apiKey": 18, "type": "%s", "name": "ApiVersions%s", "validVersions": "0-1",
  "flexibleVersions": "none", "fields": [{"name": "%s", "type": "int32", "versions": "0+"}]
}"""


class Option(NamedTuple):
    """``command`` begins with the program, and has no space at its ends."""

    command: str
    name: str
    kind: type

    def __str__(self) -> str:
        return f"{self.command} {self.name}"


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of every command, with the command's name."""
    commands = {**PROGRAMS, "python -m demo": demo.__main__.main}
    for name, command in commands.items():
        yield from _parameters(command, click.Context(command, info_name=name))


def _parameters(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Parameter]]:
    surfaces = command._surfaces.values() if isinstance(command, ProfileCommand) else [command]
    for surface in surfaces:
        for each in surface.params:
            yield context.command_path, each
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _parameters(
                found, found.context_class(found, info_name=name, parent=context)
            )


def options() -> list[Option]:
    """Those that name an output."""
    kinds = (OutputFile, OutputFolder, OutputStreamType)
    return [
        Option(command, each.opts[0], kind)
        for command, each in parameters()
        for kind in kinds
        if isinstance(each.type, kind)
    ]


class Inputs:
    """What commands read, made on first use in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _made(self, name: str, make: Callable[[Path], object]) -> str:
        path = self._folder / name
        if not path.exists():
            make(path)
        return str(path)

    @property
    def tables(self) -> str:
        return self._made(
            "tables", lambda path: _run("wiredump", "table", CAPTURE, "--out", str(path))
        )

    @property
    def cases(self) -> str:
        """A folder with one case."""

        def make(path: Path) -> None:
            (path / "framing").mkdir(parents=True)
            shutil.copy(CASES / "framing" / "001-a-byte-at-a-time.yaml", path / "framing")

        return self._made("cases", make)

    @property
    def run(self) -> str:
        """What ``kspec run --out`` wrote."""
        words = (*_run_words(self), "--out")
        return self._made("run", lambda path: _run("kspec", "run", *words, str(path)))

    @property
    def schemas(self) -> str:
        """Schemas of a release."""

        def make(path: Path) -> None:
            path.mkdir()
            for kind, field in (("Request", "Asked"), ("Response", "Answered")):
                text = SCHEMA % (kind.lower(), kind, field)
                (path / f"ApiVersions{kind}.json").write_text(text)

        return self._made("schemas-4.0.0", make)


def _run(program: str, *words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        MAINS[program](words)
    assert not ended.value.code, (program, *words)


def _text(path: Path) -> str:
    return path.read_text("utf-8")


class Producer(NamedTuple):
    """``words`` are the command's, without the option; ``is_good`` judges the result. ``old`` is
    the content of an earlier file."""

    words: Callable[[Inputs], list[str]]
    is_good: Callable[[Path], object]
    old: str = "an earlier result\n"
    code: int = 0


def _run_words(inputs: Inputs) -> list[str]:
    return ["--client", "reference", "--cases", inputs.cases]


def _is_run(folder: Path) -> bool:
    document: Any = json.loads(_text(folder / "results.json"))
    return bool(document) and list((folder / "journals").rglob("*.jsonl")) != []


def _has_tables(folder: Path) -> bool:
    return (folder / "_SUCCESS").exists() and list(folder.glob("requests/*/*.parquet")) != []


PRODUCERS: Final[Mapping[tuple[str, str], Producer]] = {
    ("kproto schema import", "--into"): Producer(
        lambda inputs: [inputs.schemas],
        lambda folder: (
            (folder / "ApiVersionsRequest.json").exists() and any((folder / "provenance").iterdir())
        ),
    ),
    ("kproto schema wireshark", "--out"): Producer(
        lambda inputs: ["--draft", "kip-455-old"], lambda path: "Proto(" in _text(path)
    ),
    ("wiredump extract", "--out"): Producer(
        lambda inputs: [CAPTURE, "--connection", "0"], lambda path: _text(path).count("\n") > 2
    ),
    ("wiredump report", "--out"): Producer(
        lambda inputs: [inputs.tables], lambda path: _text(path).endswith("</html>")
    ),
    ("wiredump table", "--out"): Producer(
        lambda inputs: [CAPTURE, "--tables", "requests,lineage"], _has_tables
    ),
    ("kspec report", "--out"): Producer(
        lambda inputs: [
            inputs.run,
            "--client",
            "reference",
            "--for-maintainers",
            "--cases",
            inputs.cases,
        ],
        lambda path: "reference" in _text(path),
    ),
    ("kspec vectors", "--out"): Producer(
        lambda inputs: ["--message", "ApiVersionsRequest"], lambda path: _text(path).count("\n") > 9
    ),
    ("kspec run", "--write-baseline"): Producer(
        _run_words, lambda path: json.loads(_text(path)) is not None, old='{"earlier": ["a/001"]}\n'
    ),
    ("kspec run", "--out"): Producer(_run_words, _is_run),
    ("kspec publish", "--out"): Producer(
        lambda inputs: [f"{inputs.run}/results.json"], lambda folder: (folder / "index.md").exists()
    ),
    ("mockbroker fuzz", "--out"): Producer(
        lambda inputs: ["--adapter", ADAPTER, "--cases", "1"],
        lambda folder: json.loads(_text(folder / "report.json")),
    ),
    ("mockbroker fuzz seeds", "--out"): Producer(
        lambda inputs: [
            "--format",
            "go",
            "--api",
            "ApiVersions",
            "--version",
            "3",
            "--mutated",
            "1",
        ],
        lambda folder: len(list(folder.glob("FuzzApiVersionsResponse/*"))) > 1,
    ),
}

NOT_PRODUCED: Final[Mapping[tuple[str, str], str]] = {
    ("mockbroker serve", "--journal"): "a stream: test_streams.py",
    ("mockbroker proxy", "--journal"): "a stream: test_streams.py",
    ("python -m demo", "--journal"): "the stream of mockbroker serve, by the same function",
    ("python -m demo", "--json"): "drives real clients, for minutes",
    ("wiredump spark", "--out"): "needs Java: tests/wiredump/spark/test_modes.py",
    ("wiredump spark", "--staging"): "needs Java: tests/wiredump/spark/test_lake.py",
    ("wiredump spark", "--checkpoint"): "needs Java: tests/wiredump/spark/test_follow.py",
    ("wiredump spark", "--progress"): "needs Java: tests/wiredump/cli/test_unread_payload.py",
    ("wiredump spark", "--state"): "needs Java: tests/wiredump/spark/test_streams.py",
}
"""Why no result is produced here. All are tested for what they refuse."""
