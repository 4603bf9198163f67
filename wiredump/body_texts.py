"""The headers and bodies of an exchange as JSON text, with what tables need of them.

Whole frames are printed by the native engine (``kproto.codec.json_text``). Everything else is
decoded (``wiredump.bodies``): frames that are cut or damaged, messages with secrets, sources that
have JSON already, and all messages without the engine. The texts are equal either way.
"""

from __future__ import annotations

import json
import sys
from functools import cache, lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

from kproto.codec.json_text import TextPrinter, text_printer
from kproto.codec.registry import trailing_bytes
from kproto.codec.structs import RootStruct
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader
from wiredump.bodies import Bodies, Side, read, without_records
from wiredump.dialects import codec_of
from wiredump.model import Exchange, Frame
from wiredump.native import quick
from wiredump.redact import holds_secrets, redacted

__all__ = [
    "API_VERSIONS", "BodyTexts", "SideText", "brief_texts_of", "left_over", "printers_of",
    "texts_of",
]  # fmt: skip

_WITH_FLOATS: Final = frozenset({"AlterClientQuotasRequest", "DescribeClientQuotasResponse"})

API_VERSIONS: Final = 18
_MOST_REPEATED: Final = 64
_HEAD: Final = 8
_head: Final = Struct(">ihh").unpack_from
_size: Final = Struct(">i").pack


class SideText(msgspec.Struct, frozen=True, gc=False):
    """One frame. The fields are those of ``bodies.Side``; ``header`` and ``body`` are JSON text."""

    message: str
    version: int
    header: str | None
    body: str | None
    problem: str = ""


class BodyTexts(msgspec.Struct, frozen=True, gc=False):
    """``codes`` are the error codes in the response other than 0. ``decoded`` has the bodies if
    they had to be decoded."""

    api: str
    request: SideText | None
    response: SideText | None
    codes: tuple[int, ...] = ()
    throttle_time_ms: int | None = None
    decoded: Bodies | None = None

    def request_value(self) -> dict[str, Any] | None:
        """Return the body of the request as a JSON value, as far as it could be read. It may lack
        records."""
        if self.decoded is None:
            return _value(self.request)
        return self.decoded.request.body if self.decoded.request is not None else None

    def response_value(self) -> dict[str, Any] | None:
        """Return the same of the response."""
        if self.decoded is None:
            return _value(self.response)
        return self.decoded.response.body if self.decoded.response is not None else None


def _value(side: SideText | None) -> dict[str, Any] | None:
    if side is None or side.body is None:
        return None
    value: dict[str, Any] = msgspec.json.decode(side.body)
    return value


def texts_of(
    item: Exchange, codec: Dialect | None = None, *, values: bool = False, secrets: bool = False
) -> BodyTexts:
    """Return the texts of both sides. ``codec`` is as in ``bodies.read``. ``values`` keeps records
    in bodies, ``secrets`` keeps passwords, tokens and keys."""
    using = codec_of(item, codec)
    form = _Form(not values, sys.maxsize, secrets)
    sides = item.request, item.response
    if item.api_key != API_VERSIONS or any(
        side is None or side.sasl or side.json is not None for side in sides
    ):
        return _texts(item, using, form)
    # A broker that lacks the version says so on each connection, in the same bytes.
    raws = [side.raw for side in sides if side is not None]
    key = (using, form, item.api_version, item.response_version, *raws)
    if key not in _repeated:
        if len(_repeated) >= _MOST_REPEATED:
            _repeated.clear()
        _repeated[key] = _texts(item, using, form)
    return _repeated[key]


_repeated: Final[dict[tuple[Any, ...], BodyTexts]] = {}


def _texts(item: Exchange, using: Dialect, form: _Form) -> BodyTexts:
    printed = _printed(item, using, form)
    if printed is not None:
        return printed
    bodies = read(item, using)
    response = bodies.response
    return BodyTexts(
        bodies.api,
        _text(item.request, bodies.request, using, form),
        _text(item.response, response, using, form),
        tuple({error.code for error in bodies.errors}),
        response.body.get("throttleTimeMs") if response and response.body else None,
        bodies,
    )


def brief_texts_of(
    item: Exchange, codec: Dialect | None, longest: int, *, secrets: bool = False
) -> BodyTexts | None:
    """Return the texts of both sides, with ``(N bytes)`` in place of bytes longer than ``longest``.
    None if a side has to be decoded, or has a problem."""
    made = _printed(item, codec_of(item, codec), _Form(False, longest, secrets))
    sides = () if made is None else (made.request, made.response)
    return None if any(side is not None and side.problem for side in sides) else made


# ---- printed ---------------------------------------------------------------------------------


class _Form(NamedTuple):
    """``sizes`` and ``longest`` are those of ``text_printer``; ``secrets`` are kept if it is
    true."""

    sizes: bool
    longest: int
    secrets: bool


def printers_of(
    using: Dialect, values: bool, secrets: bool, key: int, version: int, is_request: bool
) -> _Printers | None:
    """Return how frames of a version are printed: the names of their api and message, and printers
    of the header and of the body. None if they have to be decoded. ``values`` and ``secrets`` are
    as in ``texts_of``."""
    return _printers_of(using, key, version, is_request, _Form(not values, sys.maxsize, secrets))


class _Printers(NamedTuple):
    api: str
    message: str
    header: TextPrinter
    body: TextPrinter


def _printed(item: Exchange, using: Dialect, form: _Form) -> BodyTexts | None:
    """Print both sides; None if one of them has to be decoded."""
    if quick() is None:
        return None
    request = response = None
    codes: tuple[int, ...] = ()
    throttle: int | None = None
    api, key = "", item.api_key
    if item.request is not None:
        version = item.api_version
        printers = _printers_of(using, key, version, True, form)
        raw = item.request.raw
        if printers is None or len(raw) < _HEAD or _head(raw)[1:] != (key, version):
            return None
        side = _side(item.request, printers, version)
        if side is None:
            return None
        api, request = printers.api, side[0]
    if item.response is not None:
        if item.response_version is None:
            return None
        version = item.response_version
        printers = _printers_of(using, key, version, False, form)
        side = None if printers is None else _side(item.response, printers, version)
        if printers is None or side is None:
            return None
        api, (response, codes, throttle) = printers.api, side
    return BodyTexts(api, request, response, codes, throttle)


def _side(
    frame: Frame, printers: _Printers, version: int
) -> tuple[SideText, tuple[int, ...], int | None] | None:
    """Print a frame that is whole, and perhaps has bytes left over; None for others."""
    raw = frame.raw
    end = len(raw)
    if frame.sasl or frame.json is not None or raw[:SIZE_LENGTH] != _size(end - SIZE_LENGTH):
        return None
    header = printers.header(raw, SIZE_LENGTH)
    body = None if header is None else printers.body(raw, header[1])
    if header is None or body is None:
        return None
    problem = "" if body[1] == end else left_over(raw, body[1])
    return SideText(printers.message, version, header[0], body[0], problem), body[2], body[3]


def left_over(raw: bytes, end: int) -> str:
    """Return what is wrong with a frame whose message ends before it does."""
    return str(trailing_bytes(raw, end))


@lru_cache(maxsize=1024)
def _printers_of(
    using: Dialect, key: int, version: int, is_request: bool, form: _Form
) -> _Printers | None:
    try:
        api = using.api(key, version)
        cls = api.request if is_request else api.response
        if is_request:
            header = _header_printer(RequestHeader, api.request_header_version(version))
        else:
            header = _header_printer(ResponseHeader, api.response_header_version(version))
        body = text_printer(cls, version, sizes=form.sizes, longest=form.longest)
    except KprotoError:
        return None
    name = cls.MESSAGE_NAME
    if header is None or body is None or (holds_secrets(name) and not form.secrets):
        return None
    return _Printers(api.request.MESSAGE_NAME.removesuffix("Request"), name, header, body)


@cache
def _header_printer(cls: type[RootStruct], version: int) -> TextPrinter | None:
    return text_printer(cls, version)


# ---- decoded ---------------------------------------------------------------------------------


def _text(frame: Frame | None, side: Side | None, using: Dialect, form: _Form) -> SideText | None:
    if frame is None or side is None:
        return None
    body = without_records(side, using) if form.sizes else side.body
    shown = body if form.secrets else redacted(side.message, body)
    dumped = frame.json is not None or side.message in _WITH_FLOATS
    text = _dumped(shown) if dumped else _json(shown)
    return SideText(side.message, side.version, _json(side.header), text, side.problem)


def _dumped(value: Any) -> str | None:
    return None if value is None else _dumps(value)


def _json(value: Any) -> str | None:
    """Return the result of ``_dumped``, several times as fast. msgspec writes floats differently,
    and a source without bytes may have invalid Unicode, or numbers that are too large."""
    if value is None:
        return None
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeError:
        return _dumps(value)


_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
