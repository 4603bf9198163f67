"""Output files and folders are as before, or whole, whatever ends their writer."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kproto.outputs import (
    INCOMPLETE,
    IncompleteFolderError,
    NotEmptyError,
    OutputError,
    OutputStream,
    check_output,
    check_output_folder,
    files,
    open_folder_output,
    open_output,
    require_complete,
    unwinding,
    write_output,
)
from tests.outputs.conditions import full_disk, left_in, read_from, unprivileged

ROOT = Path(__file__).parents[2]
LINUX = sys.platform.startswith("linux")


class FaultError(Exception):
    pass


# ---- one file ------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")
    target.chmod(0o640)
    with open_output(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_text() == "old"
        assert len(left_in(tmp_path)) == 1
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_output(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


@pytest.mark.parametrize("error", [FaultError, KeyboardInterrupt, SystemExit, OSError])
def test_after_an_exception_the_old_file_is_there(tmp_path, error):
    write_output(tmp_path / "a", "old")

    def write() -> None:
        with open_output(tmp_path / "a") as file:
            file.write(b"x" * 100_000)
            raise error

    with pytest.raises(error):
        write()
    assert (tmp_path / "a").read_text() == "old"
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("size", [1, 8192, 1 << 20])
def test_on_a_full_disk_the_old_file_is_there(tmp_path: Path, size: int) -> None:
    write_output(tmp_path / "a", "old")
    with full_disk(), pytest.raises(OSError, match="File too large") as failed:
        write_output(tmp_path / "a", b"x" * size)
    assert failed.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    assert left_in(tmp_path) == []


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_text("old")
    (tmp_path / "link").symlink_to("there/real")
    (tmp_path / "dangling").symlink_to("there/new")
    write_output(tmp_path / "link", "new")
    write_output(tmp_path / "dangling", "also new")
    assert (tmp_path / "link").is_symlink()
    assert real.read_text() == "new"
    assert (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "there" / "new").read_text() == "also new"
    assert left_in(tmp_path / "there") == []


def test_names_of_any_length_and_bytes(tmp_path: Path) -> None:
    for name in ("n" * 255, "\N{SNOWMAN}" * 85, os.fsdecode(b"\xff" * 255)):
        write_output(tmp_path / name, name.encode("utf-8", "surrogateescape"))
        assert (tmp_path / name).read_bytes() == os.fsencode(name)
    assert left_in(tmp_path) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    write_output(tmp_path / "a", "old")
    left = tmp_path / ".a.01234567.part"
    others = [tmp_path / name for name in (".b.01234567.part", ".a.part", ".a.0123456x.part")]
    for each in (left, *others):
        each.write_text("half")
    write_output(tmp_path / "a", "new")
    assert not left.exists()
    assert all(each.exists() for each in others)


def test_the_file_of_a_running_process_stays(tmp_path: Path) -> None:
    with open_output(tmp_path / "a") as first:
        first.write(b"first")
        write_output(tmp_path / "a", "second")
        assert (tmp_path / "a").read_text() == "second"
    assert (tmp_path / "a").read_text() == "first"
    assert left_in(tmp_path) == []


def test_a_file_that_is_taken_for_a_left_one_is_created_again(tmp_path, monkeypatch):
    lock, taken = files.lock, list[str]()

    def take_first(number: int, *, wait: bool = False) -> bool:
        if wait and not taken:
            taken.extend(left_in(tmp_path))
            os.unlink(tmp_path / taken[0])
        return lock(number, wait=wait)

    monkeypatch.setattr(files, "lock", take_first)
    write_output(tmp_path / "a", "whole")
    assert len(taken) == 1
    assert (tmp_path / "a").read_text() == "whole"


# ---- targets that are not replaced ---------------------------------------------------------------


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with read_from(tmp_path / "fifo") as received:
        check_output(str(tmp_path / "fifo"))
        write_output(tmp_path / "fifo", b"x" * 100_000)
    assert received == [b"x" * 100_000]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_device_is_written_to(tmp_path: Path) -> None:
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError as error:
        pytest.skip(f"no device nodes here: {error.strerror}")
    write_output(node, "anything")
    assert stat.S_ISCHR(node.stat().st_mode)
    assert left_in(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_device_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as failed:
        write_output(tmp_path / "link", "anything")
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, str(tmp_path / "link"))


@pytest.mark.skipif(not LINUX, reason="Linux's names of open files")
@pytest.mark.parametrize("name", ["/dev/fd/{0}", "/proc/self/fd/{0}", "/proc/{1}/fd/{0}", "link"])
def test_an_open_file_is_written_to_where_it_stands(tmp_path: Path, name: str) -> None:
    """Its content stays, and so does the file itself, also through a link."""
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"before ")
        path = name.format(log.fileno(), os.getpid())
        if name == "link":
            path = str(tmp_path / "link")
            os.symlink(f"/dev/fd/{log.fileno()}", path)
        check_output(path)
        write_output(path, "during ")
        log.write(b"after")
    assert (tmp_path / "log").read_text() == "before during after"


@pytest.mark.skipif(not LINUX, reason="Linux's names of open files")
def test_an_open_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with (tmp_path / "a").open("rb") as file, pytest.raises(OutputError, match="Bad file"):
        check_output(f"/dev/fd/{file.fileno()}")
    with pytest.raises(OutputError, match="Bad file"):
        check_output("/dev/fd/987654")


@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
@pytest.mark.parametrize("kind", ["pipe", "file"])
@pytest.mark.slow
def test_standard_output_is_written_to(tmp_path: Path, path: str, kind: str) -> None:
    code = f"print('one', flush=False); write_output({path!r}, 'two\\n'); print('three')"
    command = [sys.executable, "-c", f"from kproto.outputs import write_output; {code}"]
    with (tmp_path / "out").open("wb") as file:
        file.write(b"zero\n")
        file.flush()
        where = subprocess.PIPE if kind == "pipe" else file
        done = subprocess.run(command, stdout=where, cwd=ROOT, timeout=60, check=True)
    text = done.stdout if kind == "pipe" else (tmp_path / "out").read_bytes()
    # "/dev/stdout" does not know what print has not flushed.
    expected = {b"one", b"two", b"three"} | ({b"zero"} if kind == "file" else set())
    assert set(text.split()) == expected
    if path == "-":
        assert text.split()[-3:] == [b"one", b"two", b"three"]


# ---- refusals ------------------------------------------------------------------------------------


def refused(check: Callable[[str], None], path: Path | str, why: str) -> None:
    with pytest.raises(OutputError, match=why) as failed:
        check(str(path))
    assert str(path) in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_file_that_cannot_be_written_is_refused_before(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("a file")
    (tmp_path / "loop").symlink_to("loop")
    refused(check_output, tmp_path / "folder", "Is a directory")
    refused(check_output, f"{tmp_path / 'folder'}/", "Is a directory")
    refused(check_output, f"{tmp_path / 'new'}/", "Is a directory")
    refused(check_output, tmp_path / "none" / "file", "there is no folder")
    refused(check_output, tmp_path / "file" / "file", "Not a directory")
    refused(check_output, tmp_path / "loop", "symbolic links")
    refused(check_output, "", "Is a directory")
    if LINUX:
        refused(check_output, "/proc/kproto", "No such file")
    check_output(str(tmp_path / "new"))
    check_output(str(tmp_path / "file"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder", "loop"]
    assert (tmp_path / "file").read_text() == "a file"
    with pytest.raises(OutputError, match="not the name of a file"):
        check_output("a\0b")


def test_permissions_are_checked_before() -> None:
    with tempfile.TemporaryDirectory() as name:  # any user may enter it, unlike pytest's folders
        folder = Path(name)
        (folder / "file").write_text("a file")
        (folder / "file").chmod(0o444)
        folder.chmod(0o555)
        with unprivileged():
            refused(check_output, folder / "file", "Permission denied")
            refused(check_output, folder / "new", "Permission denied")
            refused(check_output_folder, folder / "new", "Permission denied")
        folder.chmod(0o755)


def test_a_folder_that_cannot_be_written_is_refused_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "dangling").symlink_to("none")
    refused(check_output_folder, tmp_path / "file", "Not a directory")
    refused(check_output_folder, tmp_path / "file" / "in", "Not a directory")
    refused(check_output_folder, tmp_path / "dangling", "No such file")
    if LINUX:
        refused(check_output_folder, "/proc/kproto", "No such file")
    check_output_folder(str(tmp_path / "new" / "in"))
    check_output_folder(str(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dangling", "file"]


# ---- a folder ------------------------------------------------------------------------------------


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def test_the_files_of_a_folder_are_published_together(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pages"
    with open_folder_output(folder) as out:
        out.write("a", "1")
        out.write("in/b", b"2")
        with out.open("in/deep/c") as file:
            file.write(b"3")
        assert not (folder / "a").exists()
    assert files_in(folder) == {"a": b"1", "in/b": b"2", "in/deep/c": b"3"}
    (folder / "a").chmod(0o640)
    with open_folder_output(folder) as out:
        out.remove("in/b")
        out.remove("none")
        out.remove("a")
        out.write("a", "4")
    assert files_in(folder) == {"a": b"4", "in/deep/c": b"3"}
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("fault", ["exception", "disk"])
def test_a_folder_is_as_before_after_a_failure(tmp_path: Path, is_new: bool, fault: str) -> None:
    folder = tmp_path / "above" / "pages"
    if not is_new:
        with open_folder_output(folder) as out:
            out.write("a", "1")
    before = files_in(tmp_path)
    error = FaultError if fault == "exception" else OSError

    def write() -> None:
        with open_folder_output(folder) as out:
            out.write("empty", "")
            with full_disk():
                if fault == "disk":
                    out.write("in/a", "2")
            raise FaultError

    with pytest.raises(error):
        write()
    assert files_in(tmp_path) == before
    assert is_new or [each.name for each in folder.iterdir()] == ["a"]
    assert not is_new or list(tmp_path.iterdir()) == []


def test_an_interrupted_publication_is_marked_and_the_next_one_completes_it(tmp_path, monkeypatch):
    def publish() -> None:
        with open_folder_output(tmp_path / "out") as out:
            for name in "abc":
                out.write(name, name)

    publish()
    require_complete(tmp_path / "out")
    replace, count = os.replace, 0

    def fail(source: str, target: str) -> None:
        nonlocal count
        count += 1
        if count == 3:  # the mark, a
            raise OSError(errno.EIO, os.strerror(errno.EIO), target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="Input/output"):
        publish()
    assert (tmp_path / "out" / INCOMPLETE).exists()
    with pytest.raises(IncompleteFolderError, match="interrupted while it replaced"):
        require_complete(tmp_path / "out")
    publish()
    require_complete(tmp_path / "out")
    assert files_in(tmp_path / "out") == {name: name.encode() for name in "abc"}


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with open_folder_output(tmp_path) as out:
        refused(check_output_folder, tmp_path, "another process is writing to it")
        out.write("a", "1")
    check_output_folder(str(tmp_path))
    assert files_in(tmp_path) == {"a": b"1"}


def test_what_a_killed_process_staged_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".kproto-new" / "in").mkdir(parents=True)
    (tmp_path / ".kproto-new" / "in" / "old").write_text("half")
    with open_folder_output(tmp_path) as out:
        out.write("a", "1")
    assert files_in(tmp_path) == {"a": b"1"}
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


# ---- signals -------------------------------------------------------------------------------------


@contextmanager
def default_handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    for each in before:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block_and_its_file(tmp_path: Path, number: int) -> None:
    write_output(tmp_path / "a", "old")

    def write() -> None:
        with open_output(tmp_path / "a") as file:
            file.write(b"half")
            signal.raise_signal(number)

    with default_handlers():
        with pytest.raises(SystemExit) as ended:
            write()
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    assert (tmp_path / "a").read_text() == "old"
    assert left_in(tmp_path) == []


def test_a_program_that_handles_a_signal_goes_on_handling_it(tmp_path: Path) -> None:
    received: list[int] = []
    with default_handlers():
        signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
        with open_output(tmp_path / "a") as file:
            file.write(b"whole")
            signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]
    assert (tmp_path / "a").read_text() == "whole"


def test_a_signal_waits_until_a_folder_is_published(tmp_path, monkeypatch):
    replace = os.replace

    def interrupt(source: str, target: str) -> None:
        replace(source, target)
        signal.raise_signal(signal.SIGTERM)

    def write() -> None:
        with open_folder_output(tmp_path) as out:
            out.write("a", "1")
            out.write("b", "2")

    monkeypatch.setattr(os, "replace", interrupt)
    with default_handlers(), pytest.raises(SystemExit):
        write()
    assert files_in(tmp_path) == {"a": b"1", "b": b"2"}
    require_complete(tmp_path)


def test_another_thread_than_the_main_one_writes_outputs(tmp_path: Path) -> None:
    def write() -> None:
        with unwinding():
            write_output(tmp_path / "a", "whole")
        with open_folder_output(tmp_path / "folder") as out:
            out.write("b", "2")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert (tmp_path / "a").read_text() == "whole"
    assert files_in(tmp_path / "folder") == {"b": b"2"}


# ---- a file that grows ---------------------------------------------------------------------------


def test_a_stream_does_not_overwrite_unless_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    stream = OutputStream(path)
    stream.write(b"one\n")
    assert path.read_bytes() == b"one\n"
    stream.write(b"two\n")
    stream.close()
    with pytest.raises(NotEmptyError, match="is not empty"):
        OutputStream(path)
    assert path.read_bytes() == b"one\ntwo\n"
    OutputStream(path, overwrite=True).close()
    assert path.read_bytes() == b""
    OutputStream(path).close()
    refused(lambda where: OutputStream(where).close(), tmp_path, "Is a directory")
    refused(lambda where: OutputStream(where).close(), tmp_path / "no" / "x", "No such file")


def test_a_stream_ends_after_the_last_complete_write(tmp_path: Path) -> None:
    stream = OutputStream(tmp_path / "journal")
    stream.write(b"x" * 60)
    with full_disk(100), pytest.raises(OSError, match="File too large"):
        stream.write(b"y" * 60)
    assert (tmp_path / "journal").read_bytes() == b"x" * 60


def test_a_stream_goes_to_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with read_from(tmp_path / "fifo") as received:
        stream = OutputStream(tmp_path / "fifo")
        stream.write(b"one")
        stream.close()
    assert received == [b"one"]
    assert re.fullmatch("p.*", stat.filemode((tmp_path / "fifo").stat().st_mode))
