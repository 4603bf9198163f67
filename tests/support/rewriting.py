"""How pytest's processes share the rewriting of assertions, which takes longer than the imports."""

import fcntl
import gc
import marshal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import source_hash
from pathlib import Path
from types import CodeType, SimpleNamespace

import pytest
from _pytest.assertion import rewrite

__all__ = ["rewrite_once", "rewrite_only_tests"]

PRODUCT = {"kproto", "mockbroker", "wiredump", "kspec"}

_rewrite = rewrite._rewrite_test
_rewriting = threading.RLock()


def rewrite_once() -> None:
    """Rewrite a module in the first of pytest-xdist's processes that imports it.

    All of them import every module of a fresh checkout in the same order. The others wait, and read
    what the first one wrote.
    """
    rewrite._rewrite_test = _rewrite_or_read  # type: ignore[assignment]
    # marshal.load calls a method of the file for each object that it reads.
    loads = SimpleNamespace(load=lambda file: marshal.loads(file.read()), dumps=marshal.dumps)
    rewrite.marshal = loads  # type: ignore[assignment]


def rewrite_only_tests(config: pytest.Config) -> None:
    """Import the packages under test as Python does.

    pytest rewrites all packages of a distribution that has a plugin, as mockbroker has.
    """
    hook = config.stash[rewrite.assertstate_key].hook
    if hook is not None:
        hook._must_rewrite -= PRODUCT
        hook._marked_for_rewrite_cache.clear()


def _rewrite_or_read(file: Path, config: pytest.Config) -> tuple[bytes, CodeType]:
    if sys.dont_write_bytecode:
        with _alone():
            return _rewrite(file, config)
    kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
    # Closing the file unlocks it.
    with kept.with_suffix(".lock").open("w") as lock, _alone():
        fcntl.flock(lock, fcntl.LOCK_EX)
        code = rewrite._read_pyc(file, kept)
        if code is not None:
            return source_hash(file.read_bytes()), code
        hashed, code = _rewrite(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, hashed, kept)
        return hashed, code


@contextmanager
def _alone() -> Iterator[None]:
    """One thread at a time, without collecting garbage meanwhile.

    CPython 3.11 counts the depth of ``ast.parse`` for all threads together (gh-106905). If a thread
    imports a module that pytest rewrites meanwhile, SystemError may be raised.
    """
    with _rewriting:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()
