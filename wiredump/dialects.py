"""Choose the dialect in which traffic is read."""

from __future__ import annotations

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import KprotoError
from wiredump.model import Exchange

__all__ = ["certain", "codec_of"]


def certain(codec: Dialect | None) -> Dialect:
    """Return the dialect to use before any frame was seen: the released one for ``auto``, which
    None stands for."""
    return dialect("kafka") if codec is None or isinstance(codec, AutoDialect) else codec


def codec_of(exchange: Exchange, codec: Dialect | None = None) -> Dialect:
    """Return the dialect of an exchange, or the released protocol if its own is unknown."""
    if codec is not None and codec.name == exchange.dialect:
        return codec
    try:
        return dialect(exchange.dialect)
    except KprotoError:
        return dialect("kafka")
