"""The native engine: the plans of messages run by C. Optional, and chosen here.

``KPROTO_ENGINE=pure`` leaves it alone, ``native`` insists on it, and otherwise it runs where the
extension was built and can be loaded. A message it does not take, such as that of a subclass with a
``__post_init__``, is left to generated Python whatever was chosen (``compiled.Refused``).

A free-threaded CPython turns its GIL on when it loads the extension, and warns of that. Where it
was told not to (``PYTHON_GIL=0``), the engine is not used: nothing in it guards against threads.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from kproto import extension
from kproto.codec import registry

__all__ = ["GIL_IS_OFF", "GIL_IS_ON", "HOW_TO_BUILD", "Choice", "choose"]

HOW_TO_BUILD: Final = (
    "to build it, have a C compiler and Python's headers (Debian: apt-get install gcc python3-dev) "
    "and install kproto again; in a checkout: make engine"
)


GIL_IS_ON: Final = "the GIL is on, which this engine needs; KPROTO_ENGINE=pure does without"
GIL_IS_OFF: Final = "the native engine needs the GIL, and this interpreter was told to keep it off"


class Choice(NamedTuple):
    """``engine`` is "native" or "pure"; ``note`` says in one line why it is pure, or that the
    native one needs the GIL of a free-threaded interpreter, and otherwise is empty."""

    engine: str
    note: str


def choose(wanted: str) -> Choice:
    """Put the engine that ``wanted`` (the value of ``KPROTO_ENGINE``) names under the codecs.

    Raises ImportError for a name that is none, and for "native" where it cannot be loaded.
    """
    if wanted not in ("", "native", "pure"):
        raise ImportError(f"KPROTO_ENGINE={wanted}: it may be native, pure, or unset")
    if wanted == "pure":
        return Choice("pure", "KPROTO_ENGINE=pure")
    try:
        from kproto.native.compiled import Refused, compile_plan, enter_in_c
    except ImportError as error:
        return _without(wanted, f"{_reason(error)}; {HOW_TO_BUILD}")
    if not _has_gil():
        return _without(wanted, GIL_IS_OFF)
    registry.use_native(registry.Native(compile_plan, Refused))
    from kproto.native import _engine

    extension.use(_engine)
    enter_in_c()
    return Choice("native", GIL_IS_ON if _is_free_threaded() else "")


def _without(wanted: str, why: str) -> Choice:
    if wanted:
        raise ImportError(f"KPROTO_ENGINE=native, but {why}")
    return Choice("pure", why)


def _is_free_threaded() -> bool:
    """As its ``-VV`` says; asking ``sysconfig`` would cost every import a file to read."""
    return "free-threading build" in sys.version


def _has_gil() -> bool:
    """Asked after the extension was loaded, which may have turned it on."""
    asked = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
    return asked is None or bool(asked())


def _reason(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "kproto.native._engine":
        return "the native engine was not built"
    return f"the native engine does not load ({error})"
