"""Every option that names an output: on a full disk, in a killed process, to devices and folders.

The options are found by walking the commands; an output of a new command fails these tests until it
has an entry in ``output_options``.
"""

import ast
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from kproto.cli.outputs import OutputFile, OutputFolder, OutputStreamType
from kproto.outputs import INCOMPLETE
from tests.cli.programs import MAINS
from tests.outputs.conditions import ended_at_rename, full_disk, left_in, read_from
from tests.outputs.output_options import (
    NOT_PRODUCED,
    PRODUCERS,
    Inputs,
    Option,
    options,
    parameters,
)

ROOT = Path(__file__).parents[2]
SECONDS = 120
OPTIONS = options()
PRODUCED = [each for each in OPTIONS if (each.command, each.name) in PRODUCERS]
FILES = [each for each in PRODUCED if each.kind is OutputFile]
FOLDERS = [each for each in PRODUCED if each.kind is OutputFolder]
LINUX = sys.platform.startswith("linux")


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return Inputs(tmp_path_factory.mktemp("inputs"))


def words_of(option: Option, inputs: Inputs, where: Path | str) -> list[str]:
    _, *command = option.command.split()
    producer = PRODUCERS[option.command.partition(" --")[0], option.name]
    return [*command, *producer.words(inputs), option.name, str(where)]


class Done:
    """The end of a command."""

    def __init__(self, code: int, err: str) -> None:
        self.code, self.err = code, err

    def is_one_line_about(self, where: Path | str) -> bool:
        lines = [line for line in self.err.splitlines() if str(where) in line]
        return self.code in (1, 2, 3) and len(lines) == 1 and "Traceback" not in self.err


class Command:
    """Runs commands in this process."""

    def __init__(self, inputs: Inputs, capsys: pytest.CaptureFixture[str]) -> None:
        self._inputs, self._capsys = inputs, capsys

    def __call__(self, option: Option, where: Path | str) -> Done:
        program = option.command.split()[0]
        words = words_of(option, self._inputs, where)
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            MAINS[program](words)
        return Done(int(ended.value.code or 0), self._capsys.readouterr().err)

    def fails_on_a_full_disk(self, option: Option, where: Path) -> None:
        words_of(option, self._inputs, where)  # makes the inputs
        with pytest.MonkeyPatch.context() as patch, full_disk():
            patch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # in the processes of adapters
            done = self(option, where)
        assert done.is_one_line_about(where), done.err

    def good(self, option: Option, where: Path | str) -> None:
        done = self(option, where)
        assert done.code == 0, done.err


@pytest.mark.slow
def test_no_output_replaces_an_input(
    inputs: Inputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever word of a command names a file: named as the output, too, the file is spared."""
    spared = 0
    for option in FILES:
        words = words_of(option, inputs, "")[:-2]
        for at, word in enumerate(words):
            if not os.path.isfile(word) or option.name == "--write-baseline":
                continue
            file = tmp_path / f"input-{spared}"
            file.write_bytes(Path(word).read_bytes())
            before = file.read_bytes()
            given = [*words[:at], str(file), *words[at + 1 :], option.name]
            for same in (str(file), os.path.relpath(file)):
                with pytest.raises(SystemExit) as ended:
                    MAINS[option.command.split()[0]]([*given, same])
                assert ended.value.code == 2, option
                assert "is an input of this command" in capsys.readouterr().err
                assert file.read_bytes() == before
            spared += 1
    assert spared


@pytest.fixture
def command(inputs: Inputs, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(inputs, capsys)


def is_good(option: Option, where: Path) -> bool:
    return bool(PRODUCERS[option.command, option.name].is_good(where))


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(each.relative_to(folder)): each.read_bytes() if each.is_file() else None
        for each in sorted(folder.rglob("*"))
    }


# ---- which options there are ---------------------------------------------------------------------

OUTPUT_NAMES = re.compile(r"\bout\b|output|into|journal|save|dump|dest|write|export")
PATHS = re.compile("FILE|DIR|PATH|FOLDER")
READ = {
    "--admin.config", "--command-config", "--dialect", "--draft", "--faults", "--file", "--follow",
    "--keylog", "--path-to-json-file", "--properties", "--reassignment-json-file", "--replay",
    "--reply", "--start-after", "--tls-client-ca", "--topics-to-move-json-file", "frame",
}  # fmt: skip
ON_THE_CLUSTER = {"directory", "path"}
"""Options and arguments that name something to read, or something of a mock cluster."""


def test_every_output_has_an_entry() -> None:
    assert len(OPTIONS) >= 18
    found = {(each.command, each.name) for each in OPTIONS}
    assert found == PRODUCERS.keys() | NOT_PRODUCED.keys()
    assert not PRODUCERS.keys() & NOT_PRODUCED.keys()


def test_no_other_option_names_an_output() -> None:
    kinds = (OutputFile, OutputFolder, OutputStreamType)
    for command, each in parameters():
        name = each.opts[0]
        is_flag = getattr(each, "is_flag", False)
        if isinstance(each.type, kinds) or is_flag or name in READ | ON_THE_CLUSTER:
            continue
        assert not (isinstance(each.type, click.Path) and not each.type.exists), (command, name)
        assert not (isinstance(each.type, click.File) and each.type.mode != "r"), (command, name)
        is_text = not isinstance(each.type, click.Path | click.Choice | click.types.IntParamType)
        metavar = each.make_metavar(click.Context(click.Command(command)))
        if is_text:
            assert not OUTPUT_NAMES.search(name.lstrip("-")), (command, name)
            assert not PATHS.search(metavar), (command, name, metavar)


WRITERS = {
    "kproto.outputs.": "the one writer",
    "kspec.runner.": "installs clients into a cache",
    "kspec.adapters.": "programs of their own",
    "mockbroker.options.certificates": "a private key, which OpenSSL reads from a file alone",
    "kproto.oracle.": "programs of their own",
    "kspec.clientfuzz.process_usage": "/proc",
    "kspec.holes.stored_plays": "a cache; half a file is none",
    "wiredump.storage.location": "files of any file system, within a publication",
    "wiredump.tables.": "Parquet files, within a publication",
    "wiredump.spark.": "files of tasks, within a publication",
}
"""The modules that open files to write them."""


def writes(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="write_text" | "write_bytes" | "open_file"):
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr="replace" | "rename"):
            return True
        case ast.Name(id="ParquetWriter") | ast.Attribute(attr="ParquetWriter"):
            return True
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open"), args=args):
            modes = [each.value for each in args if isinstance(each, ast.Constant)]
            return any(isinstance(mode, str) and re.fullmatch("[wax]b?", mode) for mode in modes)
    return False


@pytest.mark.slow
def test_no_other_module_writes_files() -> None:
    found = set()
    for package in ("kproto", "mockbroker", "wiredump", "kspec"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if any(map(writes, ast.walk(ast.parse(path.read_text("utf-8"))))):
                found.add(name)
    assert {name for name in found if not name.startswith(tuple(WRITERS))} == set()


# ---- what is refused before work begins ----------------------------------------------------------


def refusal(option: Option, where: Path | str, capsys: pytest.CaptureFixture[str]) -> str:
    """The line that a command ends with when only this option is given, and others that it needs:
    nothing is read before the refusal."""
    program, *words = option.command.split()
    capsys.readouterr()
    if program not in MAINS:
        return _refusal_of_demo(option, where, capsys)
    with pytest.raises(SystemExit) as ended:
        MAINS[program]([*words, option.name, str(where), *NEEDED.get(option.command, ())])
    err = capsys.readouterr().err
    assert ended.value.code == 2, err
    assert err.count("\n") == 1, err
    assert str(where) in err, err
    return err


def _refusal_of_demo(option: Option, where: Path | str, capsys: pytest.CaptureFixture[str]) -> str:
    import demo.__main__

    with pytest.raises(SystemExit) as ended:
        demo.__main__.main([option.name, str(where), "--client", "nobody"])
    assert ended.value.code == 2
    return capsys.readouterr().err


NEEDED = {"mockbroker proxy": ("--upstream", "127.0.0.1:9")}
CHECKED = [each for each in OPTIONS if each.kind is not OutputStreamType]


@pytest.mark.parametrize("option", CHECKED, ids=str)
def test_what_cannot_be_written_is_refused(option, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("a file")
    (tmp_path / "sealed").mkdir(mode=0o555)
    before = snapshot(tmp_path)
    places = [tmp_path / "file" / "within"]
    if option.kind is OutputFile:
        places += [tmp_path / "folder", tmp_path / "none" / "a"]
    else:
        places += [tmp_path / "file"]
    if LINUX:
        places.append(Path("/proc/kproto"))
    if hasattr(os, "geteuid") and os.geteuid():
        places.append(tmp_path / "sealed" / "a")
    for each in places:
        assert str(each) in refusal(option, each, capsys)
    assert snapshot(tmp_path) == before


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("option", FILES, ids=str)
def test_a_file_on_a_full_disk_and_replaced_through_a_link(option, command, tmp_path):
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_text(PRODUCERS[option.command, option.name].old)
    real.chmod(0o640)
    (tmp_path / "link").symlink_to(real)
    before = snapshot(tmp_path)
    command.fails_on_a_full_disk(option, tmp_path / "link")
    assert snapshot(tmp_path) == before
    command.fails_on_a_full_disk(option, tmp_path / "new")
    assert snapshot(tmp_path) == before
    command.good(option, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert is_good(option, real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert left_in(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("option", FOLDERS, ids=str)
def test_a_folder_on_a_full_disk(option: Option, command: Command, tmp_path: Path) -> None:
    command.fails_on_a_full_disk(option, tmp_path / "new")
    assert snapshot(tmp_path) == {}
    command.good(option, tmp_path / "new")
    assert is_good(option, tmp_path / "new")
    before = snapshot(tmp_path)
    if option.command == "wiredump table":  # it refuses a folder that is not empty
        option = option._replace(command="wiredump table --mode overwrite")
    command.fails_on_a_full_disk(option, tmp_path / "new")
    assert snapshot(tmp_path) == before


@contextmanager
def collected(received: list[bytes]) -> Iterator[int]:
    """A pipe whose content is in the list after the block."""
    read, write = os.pipe()

    def collect() -> None:
        with os.fdopen(read, "rb") as file:
            received.append(file.read())

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    try:
        yield write
    finally:
        os.close(write)
        thread.join(SECONDS)


@contextmanager
def stdout_to(number: int) -> Iterator[None]:
    before = os.dup(1)
    os.dup2(number, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


@pytest.mark.slow
@pytest.mark.parametrize("option", FILES, ids=str)
def test_devices_and_pipes_are_written_to(option: Option, command: Command, tmp_path: Path) -> None:
    """A FIFO, a process substitution and /dev/stdout get the whole result, and devices stay."""
    if option.name == "--write-baseline":
        pytest.skip("reads the baseline that it extends")
    os.mkfifo(tmp_path / "fifo")
    with read_from(tmp_path / "fifo") as received:
        command.good(option, tmp_path / "fifo")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    (tmp_path / "copy").write_bytes(received[0])
    assert is_good(option, tmp_path / "copy")
    if not LINUX:
        return
    with collected(received) as number:
        command.good(option, f"/dev/fd/{number}")
    with collected(received) as number, stdout_to(number):
        command.good(option, "/dev/stdout")
    assert received == received[:1] * 3

    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError:
        node.unlink(missing_ok=True)  # not permitted in this container
    else:
        command.good(option, node)
        assert stat.S_ISCHR(node.stat().st_mode)
    (tmp_path / "full").symlink_to("/dev/full")
    assert command(option, tmp_path / "full").is_one_line_about(tmp_path / "full")
    assert (tmp_path / "full").is_symlink()
    assert left_in(tmp_path) == []


NOTHING_TO_READ = {"wiredump report": ["{}"], "wiredump extract": ["{}", "--connection", "0"]}


@pytest.mark.parametrize("name", NOTHING_TO_READ)
@pytest.mark.parametrize("content", [b"", bytes(5000), b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16)])
def test_a_source_without_traffic_leaves_what_was_there(name, content, tmp_path, capsys):
    (tmp_path / "junk.pcap").write_bytes(content)
    (tmp_path / "good").write_text("a good result")
    program, *words = name.split()
    words += [word.format(tmp_path / "junk.pcap") for word in NOTHING_TO_READ[name]]
    with pytest.raises(SystemExit) as ended:
        MAINS[program]([*words, "--out", str(tmp_path / "good")])
    assert ended.value.code == 1
    assert "nothing could be" in capsys.readouterr().err
    assert (tmp_path / "good").read_text() == "a good result"
    assert left_in(tmp_path) == []


# ---- a process that ends in the middle -----------------------------------------------------------


def ended(option: Option, inputs: Inputs, where: Path, number: int, at: int) -> int:
    words = words_of(option, inputs, where)
    return ended_at_rename(option.command.split()[0], words, number, at, where.parent)


@pytest.mark.slow
@pytest.mark.parametrize("option", FILES, ids=str)
def test_a_process_that_ends_leaves_the_old_file(option, command, inputs, tmp_path):
    where = tmp_path / "old"
    where.write_text(PRODUCERS[option.command, option.name].old)
    before = snapshot(tmp_path)
    assert ended(option, inputs, where, signal.SIGTERM, 1) == 128 + signal.SIGTERM
    assert snapshot(tmp_path) == before
    assert ended(option, inputs, where, signal.SIGKILL, 1) == -signal.SIGKILL
    assert where.read_bytes() == before["old"]
    (left,) = left_in(tmp_path)
    assert re.fullmatch(r"\.old\.[0-9a-f]{8}\.part", left)
    command.good(option, where)
    assert is_good(option, where)
    assert left_in(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("option", FOLDERS, ids=str)
def test_a_process_that_ends_leaves_the_old_folder_or_one_that_says_so(
    option: Option, command: Command, inputs: Inputs, tmp_path: Path
) -> None:
    """SIGTERM waits for the end of a publication. SIGKILL leaves what was there, or a mark."""
    where = tmp_path / "folder"
    if option.command == "wiredump table":
        pytest.skip("another way of publishing: tests/wiredump/tables/test_publishing.py")
    assert ended(option, inputs, where, signal.SIGTERM, 1) == 128 + signal.SIGTERM
    assert is_good(option, where)
    assert left_in(tmp_path) == []
    before = snapshot(tmp_path)
    for at in (1, 2):  # the mark, and the first file
        assert ended(option, inputs, where, signal.SIGKILL, at) == -signal.SIGKILL
        assert (where / INCOMPLETE).exists() == (at == 2)
        if at == 1:
            after = snapshot(tmp_path)
            assert {each: after[each] for each in after if ".kproto-" not in each} == before
    command.good(option, where)
    assert is_good(option, where)
    assert left_in(tmp_path) == []
