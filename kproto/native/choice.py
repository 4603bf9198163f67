"""Choose between the native engine and pure Python.

``KPROTO_ENGINE=pure`` never loads the native engine and ``native`` requires it. Without either, the
engine is used if the extension was built and loads. Messages that it does not support, such as
those of a subclass with a ``__post_init__``, use generated Python in any case
(``describe.UnsupportedPlan``).

A free-threaded CPython enables its GIL when it loads the extension, and warns. If ``PYTHON_GIL=0``
forbids that, the engine is not used, since it has no protection against concurrent threads.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from kproto import extension
from kproto.codec import registry

__all__ = ["GIL_IS_OFF", "GIL_IS_ON", "HOW_TO_BUILD", "Choice", "choose"]

HOW_TO_BUILD: Final = (
    "to build it, install a C compiler and Python's headers (Debian: apt-get install gcc "
    "python3-dev) and reinstall kproto; in a checkout, run: make engine"
)


GIL_IS_ON: Final = (
    "the native engine enabled the GIL, which it requires; KPROTO_ENGINE=pure does not"
)
GIL_IS_OFF: Final = "the native engine requires the GIL, which PYTHON_GIL=0 or -X gil=0 disables"


class Choice(NamedTuple):
    """``engine`` is "native" or "pure". ``note`` is one line that explains why it is pure, or that
    the native engine enabled the GIL of a free-threaded interpreter; otherwise it is empty."""

    engine: str
    note: str


def choose(requested: str) -> Choice:
    """Register the engine that ``requested``, the value of ``KPROTO_ENGINE``, selects.

    Raises ImportError for an unknown name, and for "native" if the engine cannot be loaded.
    """
    if requested not in ("", "native", "pure"):
        raise ImportError(f"KPROTO_ENGINE={requested}: must be native, pure or unset")
    if requested == "pure":
        return Choice("pure", "KPROTO_ENGINE=pure")
    try:
        from kproto.native.compiled import UnsupportedPlan, compile_plan, enter_in_c
    except ImportError as error:
        return _without(requested, f"{_reason(error)}; {HOW_TO_BUILD}")
    if not _has_gil():
        return _without(requested, GIL_IS_OFF)
    registry.use_native(registry.Native(compile_plan, UnsupportedPlan))
    from kproto.native import _engine

    extension.use(_engine)
    enter_in_c()
    return Choice("native", GIL_IS_ON if _is_free_threaded() else "")


def _without(requested: str, why: str) -> Choice:
    if requested:
        raise ImportError(f"KPROTO_ENGINE=native, but {why}")
    return Choice("pure", why)


def _is_free_threaded() -> bool:
    """Read from the version text, as ``-VV`` prints it: ``sysconfig`` would read a file at every
    import."""
    return "free-threading build" in sys.version


def _has_gil() -> bool:
    """Whether the GIL is on. Loading the extension may have enabled it."""
    is_gil_enabled = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
    return is_gil_enabled is None or bool(is_gil_enabled())


def _reason(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "kproto.native._engine":
        return "the native engine was not built"
    return f"the native engine cannot be loaded ({error})"
