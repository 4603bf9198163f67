"""Switch the engine of the codecs within a process, for tests that compare the engines.

``KPROTO_ENGINE=pure`` (``make test-pure``) or ``native`` chooses the engine of a whole run.
"""

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

import kproto
from kproto import extension
from kproto.codec import registry
from kproto.codec.message import Message
from tests.support import toolchain

__all__ = ["BUILT", "each_engine", "require_native", "running"]


def _built() -> tuple[str, ...]:
    try:
        import kproto.native.compiled  # noqa: F401 - whether it can be
    except ImportError:
        return ("pure",)
    return ("pure", "native")


BUILT = _built()
"""The engines that are installed. ``.ci/run`` requires both."""


def require_native() -> None:
    """Skip the calling test if the extension is not built; fail it if the extension is required."""
    if "native" not in BUILT:
        toolchain.absent("native", "make engine builds it, or says what is missing")


def _forget() -> None:
    """Remove every codec, and what wiredump keeps of them; the next use builds new ones."""
    classes: list[type[Message]] = [Message]
    while classes:
        cls = classes.pop()
        classes += cls.__subclasses__()
        for name in ("_ENCODERS", "_PARTS_ENCODERS", "_DECODERS", "_READERS", "_VALIDATORS"):
            getattr(cls, name, {}).clear()
    for name, loaded in sorted(sys.modules.items()):
        if name.startswith("wiredump."):
            for kept in vars(loaded).values():
                if isinstance(kept, functools._lru_cache_wrapper):
                    kept.cache_clear()


@contextmanager
def running(engine: str) -> Iterator[None]:
    """Build codecs with ``engine`` until the block ends. Codecs built before are not used."""
    native = None
    module: ModuleType | None = None
    if engine == "native":
        from kproto.native import _engine
        from kproto.native.compiled import UnsupportedPlan, compile_plan, enter_in_c

        enter_in_c()  # stays: with codecs of another engine, these methods call Python
        native, module = registry.Native(compile_plan, UnsupportedPlan), _engine
    before = registry.use_native(native)
    module_before = extension.use(module)
    name, kproto.engine = kproto.engine, engine
    _forget()
    try:
        yield
    finally:
        registry.use_native(before)
        extension.use(module_before)
        kproto.engine = name
        _forget()


@pytest.fixture(params=BUILT, autouse=True, name="engine")
def each_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """For a conftest.py: every test of its folder runs on each engine there is."""
    name: str = request.param
    with running(name):
        yield name
