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
    from kproto.codec.message import Message
    from kproto.dialects import (
        Api,
        Dialect,
        decode_request,
        decode_response,
        dialect,
        encode_request,
        encode_response,
        load_dialect,
    )

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

_OF_DIALECTS = frozenset(
    {
        "Api", "Dialect", "decode_request", "decode_response", "dialect", "encode_request",
        "encode_response", "load_dialect",
    }
)  # fmt: skip

engine, engine_note = _choice.choose(os.environ.get("KPROTO_ENGINE", ""))
"""``engine`` is "native" or "pure". ``engine_note`` explains why it is pure, or what the native
engine changed in this interpreter; it is empty if there is nothing to report."""


def __getattr__(name: str) -> Any:
    if name in _OF_DIALECTS:
        from kproto import dialects

        value = getattr(dialects, name)
    elif name == "Message":
        from kproto.codec.message import Message as value
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
