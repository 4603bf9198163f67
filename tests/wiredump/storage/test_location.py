"""Files by path and by URI: the same operations on the local file system and on an object store."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kproto.errors import KprotoError
from tests.support.object_store import Bucket
from tests.support.toolchain import require_module
from wiredump.storage import ChangedError, Location, StorageError, absolute, expand, is_uri, shown

DATA = bytes(range(256)) * 20_000


@pytest.fixture(params=["path", "file", "s3", "s3a"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """An empty folder."""
    if request.param == "path":
        return Location(str(tmp_path))
    if request.param == "file":
        return Location(tmp_path.as_uri())
    bucket: Bucket = request.getfixturevalue("bucket")
    return Location(bucket.uri("some/folder", request.param))


def test_names() -> None:
    where = Location("s3://key:secret@bucket/a/b.pcap?scheme=http")
    assert str(where) == "s3://key:secret@bucket/a/b.pcap?scheme=http"
    assert where.shown == shown(str(where)) == "s3://bucket/a/b.pcap"
    assert (where.name, where.is_local) == ("b.pcap", False)
    assert str(where.parent / "c d") == "s3://key:secret@bucket/a/c d?scheme=http"
    assert Location(str(where)) == where
    assert repr(where) == "Location('s3://bucket/a/b.pcap')"
    local = Location("file:///x/y.pcap")
    assert (str(local), local.is_local, local.name) == ("/x/y.pcap", True, "y.pcap")
    assert str(Location("a") / "b") == "a/b"


def test_uris_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("a.pcap") == str(tmp_path / "a.pcap")
    assert absolute("file:///x/a.pcap") == "/x/a.pcap"
    assert absolute("hdfs://h/a") == "hdfs://h/a"
    assert [is_uri(each) for each in ("a", "/a", "file:///a", "s3://b/a")] == [False] * 3 + [True]
    Path("odd:/x").mkdir(parents=True)
    assert not is_uri("odd://x"), "it exists"


@pytest.mark.slow
def test_reading_and_writing(folder: Location) -> None:
    folder.mkdir()
    file = folder / "a.bin"
    assert not file.exists()
    file.write_bytes(DATA)
    assert file.exists()
    assert file.is_file()
    assert not file.is_dir()
    assert folder.is_dir()
    assert file.info().size == len(DATA)
    assert file.read_bytes() == DATA
    with file.open() as opened:
        assert opened.peek(4)[:4] == DATA[:4]
        opened.seek(len(DATA) - 2)
        assert opened.read() == DATA[-2:]
    with file.open_input() as source:
        assert source.read_at(3, 257) == DATA[257:260]


def test_ranges(folder: Location) -> None:
    folder.mkdir()
    file = folder / "a.bin"
    file.write_bytes(DATA)
    with file.open_ranged() as opened:
        assert opened.size == len(DATA)
        for start, size in ((0, 4), (1, 1 << 20), (5, 10), (300_000, 2 << 20), (7, 0), (0, 16)):
            assert opened.read_at(start, size) == DATA[start : start + size]
        assert opened.read_at(len(DATA) - 3, 10) == DATA[-3:]
        assert opened.read_at(len(DATA), 10) == b""
        assert opened.read_at(len(DATA) - (1 << 20), 2 << 20) == DATA[-(1 << 20) :]
        opened.require(opened.version)
        assert (opened.number is None) == (not folder.is_local)


def test_folders(folder: Location) -> None:
    for name in ("a/1.x", "a/2.y", "a/b/3.x", "c/4.x"):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(b"some")
    assert [each.name for each in folder.iterdir()] == ["a", "c"]
    assert [str(each) for each in folder.files()] == [
        str(folder / name) for name in ("a/1.x", "a/2.y", "a/b/3.x", "c/4.x")
    ]
    assert [each.name for each in folder.glob("*/*.x")] == ["1.x", "4.x"]
    (folder / "a" / "1.x").publish(folder / "c" / "5.x")
    assert (folder / "c" / "5.x").read_bytes() == b"some"
    (folder / "a").remove()
    (folder / "a").remove()
    assert [each.name for each in folder.files()] == ["4.x", "5.x"]
    (folder / "c").rmdir()
    assert [each.name for each in folder.files()] == ["4.x", "5.x"], "it was not empty"
    (folder / "c" / "4.x").unlink()
    (folder / "c" / "4.x").unlink(missing_ok=True)
    assert [each.name for each in folder.files()] == ["5.x"]
    assert list((folder / "nothing").iterdir()) == []


def test_a_folder_that_is_made_while_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsspec is asked whether there is a folder, and then whether there is anything."""
    files = require_module("fsspec.implementations.memory").MemoryFileSystem
    files().makedirs("/made")
    isdir = files.isdir
    answers = iter([False])
    monkeypatch.setattr(
        files, "isdir", lambda self, path: next(answers, True) and isdir(self, path)
    )
    assert list(Location("memory://made").iterdir()) == []
    assert list(answers) == [], "the race took place"
    files().pipe("/file", b"some")
    with pytest.raises(StorageError, match="file"):
        list(Location("memory://file").iterdir())


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.pcap", "a.pcap b.pcap"),
        ("[!a]*.pcap", "b.pcap"),
        ("[ab].pcap", "a.pcap b.pcap"),
        ("*/*.pcap", "d/a.pcap"),
        ("d*/**", "d/a.pcap d/e/f.pcapng"),
        ("**/*.pcap*", "a.pcap b.pcap d/a.pcap d/e/f.pcapng"),
        ("d/*/f.pcapng", "d/e/f.pcapng"),
        ("a.*", "a.pcap a.txt"),
    ],
)
def test_patterns(bucket: Bucket, pattern: str, expected: str) -> None:
    for name in ("a.pcap", "b.pcap", "a.txt", "d/a.pcap", "d/e/f.pcapng"):
        bucket.put(f"x/{name}", b"")
    assert expand(bucket.uri(f"x/{pattern}")) == [
        bucket.uri(f"x/{name}") for name in expected.split()
    ]


def test_patterns_of_local_files(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / name).touch()
    both = [str(tmp_path / name) for name in ("a.pcap", "b.pcap")]
    assert expand(f"file://{tmp_path}/*.pcap") == both
    assert expand(f"{tmp_path}/*.pcap", paths=True) == both
    assert expand(f"{tmp_path}/*.pcap") == [f"{tmp_path}/*.pcap"], "the shell's"
    assert expand("s3://b/x.pcap") == ["s3://b/x.pcap"]


def test_a_pattern_without_files(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError, match=f"s3://{bucket.name}/none"):
        expand(bucket.uri("none/*.pcap"))


def test_a_file_that_changes(bucket: Bucket) -> None:
    where = Location(bucket.put("a.pcap", b"before"))
    with where.open_ranged() as file:
        version = file.version
        file.require(version)
    bucket.put("a.pcap", b"behind")
    with (
        where.open_ranged() as file,
        pytest.raises(ChangedError, match=r"a\.pcap changed while it was being read"),
    ):
        file.require(version)


# ---- errors -------------------------------------------------------------------------------------


def operations(where: Location) -> dict[str, Callable[[], object]]:
    return {
        "open": where.open,
        "open_ranged": where.open_ranged,
        "read_bytes": where.read_bytes,
        "info": where.info,
    }


@pytest.mark.parametrize("name", ["open", "open_ranged", "read_bytes", "info"])
def test_what_does_not_exist(bucket: Bucket, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"'s3://{bucket.name}/none'"):
        operations(Location(bucket.uri("none")))[name]()
    uri = bucket.uri("none").replace(bucket.name, "no-such-bucket")
    with pytest.raises(
        StorageError, match=r"^s3://no-such-bucket/none: there is no such bucket .* check its name"
    ):
        operations(Location(uri))[name]()


def test_writing_to_a_bucket_that_does_not_exist(bucket: Bucket) -> None:
    uri = bucket.uri("x").replace(bucket.name, "no-such-bucket")
    with pytest.raises(StorageError, match="there is no such bucket"):
        Location(uri).write_bytes(b"1")
    with pytest.raises(StorageError, match="there is no such bucket"):
        list(Location(uri).iterdir())


def test_a_folder_is_not_a_file(bucket: Bucket) -> None:
    bucket.put("x/a", b"")
    with pytest.raises(IsADirectoryError, match=f"'s3://{bucket.name}/x'"):
        Location(bucket.uri("x")).open()


def test_no_access(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("a", b"")
    # moto does not check credentials by default.
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
    with pytest.raises(StorageError, match=r"access was denied: check the credentials in the env"):
        Location(bucket.uri("a").replace("testing:testing", "wrong:wrong")).info()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("foo://x/y", r"^foo:// is not known: use a path, s3://, gs://, abfs://, hdfs://"),
        ("s3://x/y?foo=1", r"^s3://x: Unexpected query parameter"),
        ("abfs://container/x", r"^abfs://container: .*account name"),
    ],
)
def test_what_cannot_be_used(uri: str, expected: str) -> None:
    with pytest.raises(StorageError, match=expected):
        Location(uri).info()


def test_the_key_of_an_azure_account_signs_requests() -> None:
    """pyarrow reads the key in a URI; its requests would go without."""
    seen: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            seen.append((self.path, self.headers.get("Authorization", "")))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        authority = f"account:a2V5Kw%3D%3D@127.0.0.1:{server.server_port}"
        place = Location(f"abfs://{authority}/container/a.pcap?enable_tls=false")
        with suppress(OSError, KprotoError):
            place.exists()
        server.shutdown()
    assert seen
    for path, signed in seen:
        assert path.startswith("/account/container")
        assert signed.startswith("SharedKey account:")
    assert "a2V5" not in place.shown


@pytest.mark.slow
def test_a_namenode_that_does_not_listen_is_reported() -> None:
    """After three attempts: hdfs-native's default takes six minutes."""
    pytest.importorskip("hdfs_native")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        authority = f"127.0.0.1:{bound.getsockname()[1]}"
        problem = (
            f"hdfs://{authority}/a.pcap: the server cannot be reached: check the host and the port"
        )
        with pytest.raises(StorageError, match=re.escape(problem)):
            Location(f"hdfs://{authority}/a.pcap").open()


@pytest.mark.slow
def test_processes_are_started_beside_an_hdfs_client() -> None:
    """With a function that runs in the new process, as PySpark starts Java, after the client was
    used and is in no cache of ours any more."""
    pytest.importorskip("hdfs_native")
    program = (
        "import contextlib, os, subprocess, sys\n"
        "from wiredump.storage.connections import connect\n"
        "with contextlib.suppress(OSError):\n"
        "    connect('hdfs', '127.0.0.1:9', '')[0].get_file_info('/a')\n"
        "connect.cache_clear()\n"
        "subprocess.run([sys.executable, '-c', ''], preexec_fn=os.getpid, check=True)\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)
