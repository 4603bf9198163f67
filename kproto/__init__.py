"""kproto: the Kafka wire protocol from its message schemas.

::

    import kproto
    from kproto.messages import MetadataRequest

    frame = kproto.encode_request(MetadataRequest(), api_version=12, correlation_id=1)
    header, body = kproto.decode_request(frame)

Importing the package chooses the engine (``KPROTO_ENGINE``) and loads the generator of codecs, so
that the first use of a message is not slow. Messages and dialects are loaded on first use.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kproto.errors import (
    DecodeError,
    EncodeError,
    KprotoError,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    SchemaError,
    UnknownNameError,
    UnsupportedFrameError,
    UnsupportedVersionError,
)
from kproto.native import choice as _choice  # loads the codecs too, ahead of the first encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.codec.message import Buffer, Message
    from kproto.dialects import Api, Dialect, dialect, load_dialect
    from kproto.messages.request_header import RequestHeader
    from kproto.messages.response_header import ResponseHeader

__all__ = [
    "Api",
    "DecodeError",
    "Dialect",
    "EncodeError",
    "KprotoError",
    "LocalProtocolError",
    "Message",
    "ProtocolError",
    "RemoteProtocolError",
    "SchemaError",
    "UnknownNameError",
    "UnsupportedFrameError",
    "UnsupportedVersionError",
    "__version__",
    "decode_request",
    "decode_response",
    "dialect",
    "encode_request",
    "encode_response",
    "engine",
    "load_dialect",
]

__version__ = "0.1.0"

engine, engine_note = _choice.choose(os.environ.get("KPROTO_ENGINE", ""))
"""``engine`` is "native" or "pure". ``engine_note`` explains why it is pure, or what the native
engine changed in this interpreter; it is empty if there is nothing to report."""


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Decode a whole request frame, size included, in the dialect ``kafka``. Returns header and
    body.

    Raises DecodeError (UnsupportedFrameError if the frame's api key or version is unknown).
    """
    return _kafka().decode_request(frame)


def decode_response(
    frame: Buffer, *, api_key: int, api_version: int
) -> tuple[ResponseHeader, Message]:
    """Decode a whole response frame at the version of its request. Returns header and body."""
    return _kafka().decode_response(frame, api_key=api_key, api_version=api_version)


def encode_request(
    body: Message,
    *,
    api_version: int,
    correlation_id: int,
    client_id: str | None = None,
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a whole request frame, size included. ``unknown_tags`` are the header's."""
    return _kafka().encode_request(
        body,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=client_id,
        unknown_tags=unknown_tags,
    )


def encode_response(
    body: Message,
    *,
    api_version: int,
    correlation_id: int,
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a whole response frame, size included. ``unknown_tags`` are the header's."""
    return _kafka().encode_response(
        body, api_version=api_version, correlation_id=correlation_id, unknown_tags=unknown_tags
    )


def _kafka() -> Dialect:
    from kproto.dialects import dialect

    return dialect("kafka")


def __getattr__(name: str) -> Any:
    if name in ("Api", "Dialect", "dialect", "load_dialect"):
        from kproto import dialects

        value = getattr(dialects, name)
    elif name == "Message":
        from kproto.codec.message import Message as value
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
