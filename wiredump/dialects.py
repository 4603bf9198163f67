"""Which dialect traffic is read by."""

from __future__ import annotations

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import KprotoError
from wiredump.model import Exchange

__all__ = ["certain", "codec_of"]


def certain(codec: Dialect | None) -> Dialect:
    """The dialect of what no frame has to tell: of ``auto``, which None stands for, the released
    one."""
    return dialect("kafka") if codec is None or isinstance(codec, AutoDialect) else codec


def codec_of(exchange: Exchange, codec: Dialect | None = None) -> Dialect:
    """The dialect an exchange is read by; the released protocol where its own is not known."""
    if codec is not None and codec.name == exchange.dialect:
        return codec
    try:
        return dialect(exchange.dialect)
    except KprotoError:
        return dialect("kafka")
