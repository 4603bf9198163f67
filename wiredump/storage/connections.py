"""Connect to the file system of a URI: S3, Google Cloud Storage, Azure and local files by pyarrow,
HDFS by the package hdfs-native, others by fsspec.

Credentials and endpoints are those that pyarrow reads from the environment and from the query of
the URI.
"""

from __future__ import annotations

import importlib.util
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from kproto.errors import MissingExtraError
from wiredump.storage.errors import StorageError, translated

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Uri", "connect", "is_object_store", "local", "parsed"]

_OBJECT_STORES: Final = frozenset({"s3", "gs", "abfs", "abfss"})
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_HADOOP: Final = frozenset({"hdfs", "viewfs"})
_MOST_CONNECTIONS: Final = 64
_TO_ONE_NAMENODE: Final = {"dfs.client.failover.max.attempts": "3"}
"""Eight seconds. By default hdfs-native makes 15 attempts in six minutes, also with a port, which
names the only namenode."""
_SMALL_AT_ONCE: Final = "allow_delayed_open=true"


class Uri(NamedTuple):
    """``scheme://authority/path?query``; ``path`` without a slash in front, ``query`` with its
    question mark, or empty."""

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def text(self) -> str:
        """The URI as one text."""
        return f"{self.scheme}://{self.authority}/{self.path}{self.query}"

    @property
    def shown(self) -> str:
        """The URI without credentials."""
        return f"{self.scheme}://{self.authority.rpartition('@')[2]}/{self.path}".rstrip("/")


def parsed(where: str) -> Uri | None:
    """Return the parts of a URI; None for a path, which may look like one if it exists."""
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)/*([^?]*)(\?.*)?", where, re.S)
    if found is None or os.path.exists(where):
        return None
    scheme, authority, path, query = found.groups()
    return Uri(scheme.lower(), authority, path.rstrip("/"), query or "")


def is_object_store(scheme: str) -> bool:
    """Whether files of this scheme are objects: without folders, and not to be renamed."""
    return _ALIASES.get(scheme, scheme) in _OBJECT_STORES


@lru_cache(1)
def local() -> FileSystem:
    """Return the local file system."""
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem()


@lru_cache(_MOST_CONNECTIONS)
def connect(scheme: str, authority: str, query: str) -> tuple[FileSystem, str]:
    """Return a file system, and where in it the paths of the URI begin.

    Raises StorageError, and MissingExtraError without the package for it.
    """
    scheme = _ALIASES.get(scheme, scheme)
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError(f"{scheme}:// needs pyarrow", extra="wiredump")
    if scheme in _OBJECT_STORES:
        return _object_store(scheme, authority, query)
    if scheme in _HADOOP:
        return _hadoop(scheme, authority)
    return _other(scheme, authority)


def _object_store(scheme: str, authority: str, query: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem

    # Otherwise the client waits for the metadata service of a virtual machine that is not there.
    if scheme == "s3" and ("AWS_ACCESS_KEY_ID" in os.environ or "@" in authority):
        os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    if scheme == "s3":  # a small file takes one request instead of three
        query = f"{query}&{_SMALL_AT_ONCE}" if query else f"?{_SMALL_AT_ONCE}"
    with translated(Uri(scheme, authority, "", "").shown):
        files, root = FileSystem.from_uri(f"{scheme}://{authority}/{query}")
    key = unquote(authority.rpartition("@")[0].partition(":")[2])
    if scheme.startswith("abfs") and key:
        files = _with_account_key(files, key)
    return files, root.strip("/")


def _with_account_key(files: Any, key: str) -> FileSystem:
    """Return the Azure file system of a URI with the key in it, which pyarrow 26 drops: it would
    wait for the metadata service of a virtual machine that is not there."""
    from pyarrow.fs import AzureFileSystem

    (options,) = files.__reduce__()[1]
    given = {name: value for name, value in options.items() if value}
    return AzureFileSystem(**given | {"account_key": key})


def _hadoop(scheme: str, authority: str) -> tuple[FileSystem, str]:
    try:
        from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
    except ImportError:
        problem = f"{scheme}:// needs hdfs-native and fsspec"
        raise MissingExtraError(problem, extra="hdfs") from None
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    host, _, port = authority.rpartition("@")[2].partition(":")
    made: Any = ViewfsFileSystem if scheme == "viewfs" else HdfsFileSystem
    attempts: dict[str, Any] = _TO_ONE_NAMENODE if port else {}
    # In a forked process fsspec drops the instances of its cache, and that of an HDFS client would
    # wait there for threads that only this process has: Spark could not be started any more.
    found = made(
        host=host or None, port=int(port) if port else None, skip_instance_cache=True, **attempts
    )
    return PyFileSystem(FSSpecHandler(found)), "/"


def _other(scheme: str, authority: str) -> tuple[FileSystem, str]:
    if importlib.util.find_spec("fsspec") is not None:
        import fsspec
        from pyarrow.fs import FSSpecHandler, PyFileSystem

        if scheme in fsspec.available_protocols():
            try:
                found, root = fsspec.url_to_fs(f"{scheme}://{authority}/")
            except ImportError as error:
                raise StorageError(f"{scheme}://{authority}: {error}") from error
            return PyFileSystem(FSSpecHandler(found)), str(root)
    raise StorageError(
        f"{scheme}:// is not known: use a path, s3://, gs://, abfs://, hdfs:// or file://, or "
        "install fsspec and the package that has this scheme"
    )
