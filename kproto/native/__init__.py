"""The native engine: the plans of messages run by C. Optional, and chosen here.

``KPROTO_ENGINE=pure`` leaves it alone, ``native`` insists on it, and otherwise it runs where the
extension was built and can be loaded. A message it does not take, such as that of a subclass with a
``__post_init__``, is left to generated Python whatever was chosen (``compiled.Refused``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto import extension
from kproto.codegen import codec

__all__ = ["HOW_TO_BUILD", "Choice", "choose"]

HOW_TO_BUILD: Final = (
    "to build it, have a C compiler and Python's headers (Debian: apt-get install gcc python3-dev) "
    "and install kproto again; in a checkout: make engine"
)


class Choice(NamedTuple):
    """``engine`` is "native" or "pure"; ``note`` says in one line why it is pure, else is empty."""

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
        why = _reason(error)
        if wanted:
            raise ImportError(f"KPROTO_ENGINE=native, but {why}; {HOW_TO_BUILD}") from None
        return Choice("pure", f"{why}; {HOW_TO_BUILD}")
    codec.use_native(codec.Native(compile_plan, Refused))
    from kproto.native import _engine

    extension.use(_engine)
    enter_in_c()
    return Choice("native", "")


def _reason(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "kproto.native._engine":
        return "the native engine was not built"
    return f"the native engine does not load ({error})"
