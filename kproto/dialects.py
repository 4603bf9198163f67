"""Dialects: which codec serves a (dialect, api key, version, direction).

A draft and the released protocol may share an api key and a version and differ on the wire, as (45,
0), (46, 0) and (4, 3) do, so the dialect is part of the key. The dialect ``kafka`` is the released
protocol. ``kip-183``, ``kip-240``, ``kip-455-old``, ``kip-455-new`` and ``kip-860`` overlay it with
a draft's messages. ``auto`` finds the dialect by strictly decoding whole frames. ``load_dialect``
makes a dialect from a folder of your own schemas in the same way.

A frame includes its size, as on a socket. Decoders raise only DecodeError; for an api key or
version that the dialect lacks, it is an UnsupportedFrameError, which is also an
UnsupportedVersionError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from kproto import messages
from kproto.codec.classes import make_message_class
from kproto.codec.message import Buffer, Message, RequestMessage
from kproto.codec.registry import read_schemas, trailing_bytes
from kproto.errors import (
    DecodeError,
    EncodeError,
    UnknownNameError,
    UnsupportedFrameError,
    UnsupportedVersionError,
)
from kproto.messages._index import ALIASES, MODULES, REQUEST_VERSIONS, REQUESTS, RESPONSES
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader
from kproto.near_names import with_suggestion
from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import python_name
from kproto.schema.versions import Versions

__all__ = [
    "DIALECTS",
    "Api",
    "AutoDialect",
    "Dialect",
    "decode_request",
    "decode_response",
    "dialect",
    "encode_request",
    "encode_response",
    "has_response",
    "kip_240",
    "load_dialect",
]

DIALECTS: Final = (
    "kafka", "kip-183", "kip-240", "kip-455-old", "kip-455-new", "kip-455-named", "kip-860", "auto",
)  # fmt: skip
"""The names that ``dialect`` accepts."""

_BASES: Final = {"kip-455-named": "kip-455-new"}
"""The base of each dialect that does not overlay the released protocol."""

AUTO_ORDER: Final = ("kafka", "kip-455-new", "kip-240")
"""The dialects that ``auto`` tries. The bytes of the other drafts equal those of one of these,
except for ``kip-455-named``, which was never proposed."""

PRODUCE: Final = 0
API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7
SIZE_BYTES: Final = 4
_LARGE_PART: Final = 4096
"""Smaller parts of a frame are joined."""
KIP_240_KEYS: Final = (32240, 32241)
"""Api keys of listing and describing in the schemas."""


def _api_name(request: str) -> str:
    return python_name(request.removesuffix("Request")).upper()


@dataclass(frozen=True)
class Api:
    """One api key of a dialect."""

    api_key: int
    request: type[RequestMessage[Message]]
    response: type[Message]

    @cached_property
    def name(self) -> str:
        """The name as Kafka's ApiKeys writes it: ``ALTER_PARTITION_REASSIGNMENTS``."""
        return _api_name(self.request.MESSAGE_NAME)

    @cached_property
    def valid_versions(self) -> Versions:
        """The versions that both directions have."""
        return self.request.VALID_VERSIONS.intersect(self.response.VALID_VERSIONS)

    def request_header_version(self, version: int) -> int:
        """2 for flexible versions, else 1; 0 for the first ControlledShutdown, which had no client
        id."""
        if version in self.request.FLEXIBLE_VERSIONS:
            return 2
        return 0 if self.api_key == CONTROLLED_SHUTDOWN and version == 0 else 1

    def response_header_version(self, version: int) -> int:
        """1 for flexible versions, else 0; always 0 for ApiVersions, which is read before the
        peer's versions are known (KIP-511)."""
        if self.api_key == API_VERSIONS:
            return 0
        return 1 if version in self.response.FLEXIBLE_VERSIONS else 0


class Dialect:
    """Messages by name and api key, and encoding and decoding of whole frames.

    ``renumbered`` maps api keys of this dialect to those of the registered dialect with the same
    name; only ``kip_240`` makes a dialect that has any.
    """

    def __init__(
        self,
        name: str,
        own: Mapping[str, type[Message]],
        base: Dialect | None,
        renumbered: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.base = base
        self.renumbered = renumbered
        self._own = dict(own)
        # Filled on first use; decoding and encoding a frame looks each of them up once.
        self._layouts: dict[bytes, tuple[Api, int, int]] = {}
        self._headers: dict[tuple[type[Message], int], tuple[Api, int]] = {}

    def __repr__(self) -> str:
        return f"<kproto dialect {self.name!r}>"

    # -- names -------------------------------------------------------------------------------

    def message(self, name: str) -> type[Message]:
        """Return the class of a message, or of one of its structs as ``Message.Struct``. Raises
        UnknownNameError with near matches."""
        whole, _, struct = name.partition(".")
        cls = self._own.get(whole) or self._released(whole)
        if cls is None:
            problem = f"dialect {self.name} has no message {whole!r}"
            raise UnknownNameError(with_suggestion(problem, whole, self.message_names(), most=3))
        if not struct:
            return cls
        if struct not in cls.STRUCTS:
            known = ", ".join(cls.STRUCTS) or "none"
            raise UnknownNameError(f"{whole} has no struct {struct!r}; it has {known}")
        return cls.STRUCTS[struct]  # type: ignore[return-value]  # who names a struct knows it

    def _released(self, name: str) -> type[Message] | None:
        if self.base is not None:
            return self.base._own.get(name) or self.base._released(name)
        found = ALIASES.get(name, name)
        if found not in MODULES:
            return None
        cls = getattr(messages, found)
        return cls if issubclass(cls, Message) else None

    def message_names(self) -> list[str]:
        """Return the names of all messages of this dialect, sorted."""
        names = set(self._own) | (set(self.base.message_names()) if self.base else set())
        if self.base is None:
            names |= {name for name in MODULES if _is_message(name)} | set(ALIASES)
        return sorted(names)

    @cached_property
    def apis(self) -> _Apis:
        """Every api key that has a request and a response. Classes are imported on first access."""
        requests = dict(self.base.apis.requests) if self.base else dict(REQUESTS)
        responses = dict(self.base.apis.responses) if self.base else dict(RESPONSES)
        for cls in self._own.values():
            if cls.API_KEY is not None and cls.MESSAGE_TYPE in ("request", "response"):
                table = requests if cls.MESSAGE_TYPE == "request" else responses
                table[cls.API_KEY] = cls.MESSAGE_NAME
        return _Apis(self, requests, responses)

    @cached_property
    def own_requests(self) -> frozenset[int]:
        """The api keys whose request this dialect defines itself or its base lacks; for the
        released protocol, all."""
        below, names = self.base.apis if self.base else (), self.apis.requests
        return frozenset(key for key in self.apis if key not in below or names[key] in self._own)

    def preload(self, api_keys: Iterable[int]) -> None:
        """Import the classes of these API keys and read the released schemas, so that no frame of
        them opens a file later. Codecs are still made at their first use."""
        read_schemas()
        for api_key in api_keys:
            if api_key in self.apis:
                self.apis[api_key]

    @cached_property
    def api_names(self) -> Mapping[int, str]:
        """The name of each api key. No class is imported."""
        requests = self.apis.requests
        return {key: _api_name(requests[key]) for key in self.apis}

    def request_versions(self, *, flexible: bool = False) -> Mapping[int, Versions]:
        """Return the versions of each api key's request, or its flexible versions. Those of
        released messages need no import."""
        if self.base is None:
            found = {key: Versions(*each[flexible]) for key, each in REQUEST_VERSIONS.items()}
        else:
            found = dict(self.base.request_versions(flexible=flexible))
        for cls in self._own.values():
            if cls.API_KEY is not None and cls.MESSAGE_TYPE == "request":
                found[cls.API_KEY] = cls.FLEXIBLE_VERSIONS if flexible else cls.VALID_VERSIONS
        return {key: found[key] for key in self.apis}

    def api(self, api_key: int, version: int | None = None) -> Api:
        """Return the api with that key. Raises UnsupportedVersionError if the dialect lacks the key
        or the version."""
        found = self.apis.get(api_key)
        if found is None:
            raise UnsupportedVersionError(f"dialect {self.name} has no api key {api_key}")
        if version is not None and version not in found.valid_versions:
            raise UnsupportedVersionError(
                f"dialect {self.name} has {found.name} ({api_key}) at versions "
                f"{found.valid_versions}, not {version}"
            )
        return found

    # -- frames ------------------------------------------------------------------------------

    def decode_request(self, frame: Buffer) -> tuple[RequestHeader, RequestMessage[Message]]:
        """Return the header and body of one whole request frame."""
        data = _whole(frame)
        layout = self._layouts.get(data[4:8])
        if layout is None:
            api, version = self.api_of_request(data)
            layout = api, version, api.request_header_version(version)
            self._layouts[data[4:8]] = layout
        api, version, header_version = layout
        header, at = RequestHeader.decode_from(data, header_version, SIZE_BYTES)
        body, end = api.request.decode_from(data, version, at)
        if end != len(data):
            raise trailing_bytes(data, end)
        return header, body

    def api_of_request(self, frame: Buffer) -> tuple[Api, int]:
        """Return the api and version in the first eight bytes of a request frame. Raises
        DecodeError if the frame is shorter, and UnsupportedFrameError if the dialect lacks them."""
        data = bytes(frame[:8])
        if len(data) < 8:
            raise DecodeError(
                "frame ends before api key and version", offset=4, path="request_api_key"
            )
        api_key = int.from_bytes(data[4:6], "big", signed=True)
        version = int.from_bytes(data[6:8], "big", signed=True)
        try:
            return self.api(api_key, version), version
        except UnsupportedVersionError as error:
            known = api_key in self.apis
            path = "request_api_version" if known else "request_api_key"
            raise UnsupportedFrameError(str(error), offset=6 if known else 4, path=path) from None

    def decode_response(
        self, frame: Buffer, *, api_key: int, api_version: int
    ) -> tuple[ResponseHeader, Message]:
        """Return the header and body of one whole response frame, decoded at the version of its
        request. There is no fallback here; ``kproto.connection`` has one."""
        api = self.api(api_key, api_version)
        data = _whole(frame)
        header_version = api.response_header_version(api_version)
        header, at = ResponseHeader.decode_from(data, header_version, SIZE_BYTES)
        body, end = api.response.decode_from(data, api_version, at)
        if end != len(data):
            raise trailing_bytes(data, end)
        return header, body

    def encode_request(
        self,
        body: RequestMessage[Message],
        *,
        api_version: int,
        correlation_id: int,
        client_id: str | None = None,
        unknown_tags: Mapping[int, bytes] | None = None,
    ) -> bytes:
        """Return a whole request frame. ``unknown_tags`` are the header's."""
        api, header_version = self._header_of(body, "request", api_version)
        header = RequestHeader(
            request_api_key=api.api_key,
            request_api_version=api_version,
            correlation_id=correlation_id,
            client_id=client_id if header_version else "",
        )
        if unknown_tags:
            header.unknown_tags = dict(unknown_tags)
        return _frame(header.encode(header_version), body.encode(api_version))

    def encode_response(
        self,
        body: Message,
        *,
        api_version: int,
        correlation_id: int,
        unknown_tags: Mapping[int, bytes] | None = None,
    ) -> bytes:
        """Return a whole response frame. ``unknown_tags`` are the header's."""
        _, header_version = self._header_of(body, "response", api_version)
        header = ResponseHeader(correlation_id=correlation_id)
        if unknown_tags:
            header.unknown_tags = dict(unknown_tags)
        return _frame(header.encode(header_version), body.encode(api_version))

    def encode_response_parts(
        self, body: Message, *, api_version: int, correlation_id: int
    ) -> list[Buffer]:
        """Return a whole response frame as buffers that follow each other. Large values of bytes
        are not copied (``Message.encode_parts``)."""
        _, header_version = self._header_of(body, "response", api_version)
        header = ResponseHeader(correlation_id=correlation_id).encode(header_version)
        parts = body.encode_parts(api_version)
        size = len(header) + sum(map(len, parts))
        made: list[Buffer] = []
        small: list[Buffer] = [size.to_bytes(SIZE_BYTES, "big"), header]
        for part in parts:
            if len(part) < _LARGE_PART:
                small.append(part)
                continue
            if small:
                made.append(b"".join(small))
                small = []
            made.append(part)
        if small:
            made.append(b"".join(small))
        return made

    def _header_of(self, body: Message, direction: str, version: int) -> tuple[Api, int]:
        """The api of a request's or response's body, and the version of its header."""
        found = self._headers.get((type(body), version))
        if found is None or direction != body.MESSAGE_TYPE:
            api = self._api_of(body, direction, version)
            request = direction == "request"
            header_version = api.request_header_version if request else api.response_header_version
            found = self._headers[type(body), version] = api, header_version(version)
        return found

    def _api_of(self, body: Message, direction: str, version: int) -> Api:
        if body.API_KEY is None or direction != body.MESSAGE_TYPE:
            raise EncodeError(f"{type(body).__name__} is not the body of a {direction}")
        api = self.api(body.API_KEY)
        if version not in body.VALID_VERSIONS:
            raise UnsupportedVersionError(
                f"{body.MESSAGE_NAME} has no version {version!r}; "
                f"its versions are {body.VALID_VERSIONS}"
            )
        # The class of the body determines the layout; it need not belong to this dialect.
        own = type(body)
        if issubclass(own, RequestMessage):
            return api if own is api.request else Api(api.api_key, own, api.response)
        return api if own is api.response else Api(api.api_key, api.request, own)


class _Apis(Mapping[int, Api]):
    """Api keys in ascending order. Classes are imported on first access."""

    def __init__(
        self, dialect: Dialect, requests: dict[int, str], responses: dict[int, str]
    ) -> None:
        self.requests = requests
        self.responses = responses
        self._dialect = dialect
        self._known = requests.keys() & responses.keys()
        self._keys = sorted(self._known)
        self._made: dict[int, Api] = {}

    def __getitem__(self, api_key: int) -> Api:
        made = self._made.get(api_key)
        if made is None:
            request = self._dialect.message(self.requests[api_key])
            assert issubclass(request, RequestMessage)
            response = self._dialect.message(self.responses[api_key])
            made = self._made[api_key] = Api(api_key, request, response)
        return made

    def __contains__(self, api_key: object) -> bool:
        return api_key in self._known  # without importing anything

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class AutoDialect(Dialect):
    """Tries each dialect of ``AUTO_ORDER``; the first that decodes the whole frame wins. Messages
    and api keys are the released ones and those that only a draft has."""

    def __init__(self) -> None:
        super().__init__("auto", dialect("kip-240")._own, dialect("kafka"))

    @cached_property
    def _candidates(self) -> list[Dialect]:
        return [dialect(name) for name in AUTO_ORDER]

    def preload(self, api_keys: Iterable[int]) -> None:
        keys = list(api_keys)
        super().preload(keys)
        for each in self._candidates:
            each.preload(keys)

    def identify_request(
        self, frame: Buffer
    ) -> tuple[Dialect, RequestHeader, RequestMessage[Message]]:
        """As ``decode_request``; also returns the dialect of the frame, in which to respond."""
        data = _whole(frame)
        error: DecodeError | None = None
        for candidate in self._candidates:
            try:
                return candidate, *candidate.decode_request(data)
            except DecodeError as found:
                # The error of the first dialect that has this api key and version is the most
                # useful.
                if error is None or isinstance(error, UnsupportedFrameError):
                    error = found
        assert error is not None
        raise error

    def decode_request(self, frame: Buffer) -> tuple[RequestHeader, RequestMessage[Message]]:
        """Decode in the first dialect that accepts the whole frame."""
        _, header, body = self.identify_request(frame)
        return header, body

    def identify_response(
        self, frame: Buffer, *, api_key: int, api_version: int
    ) -> tuple[Dialect, ResponseHeader, Message]:
        """As ``identify_request``. If the request is known, prefer its dialect."""
        error: Exception | None = None
        for candidate in self._candidates:
            try:
                return candidate, *candidate.decode_response(
                    frame, api_key=api_key, api_version=api_version
                )
            except (DecodeError, UnsupportedVersionError) as found:
                if error is None or isinstance(error, UnsupportedVersionError):
                    error = found
        assert error is not None
        raise error

    def decode_response(
        self, frame: Buffer, *, api_key: int, api_version: int
    ) -> tuple[ResponseHeader, Message]:
        """Decode in the first dialect that accepts the whole frame."""
        _, header, body = self.identify_response(frame, api_key=api_key, api_version=api_version)
        return header, body


def has_response(api_key: int, body: Message) -> bool:
    """Whether brokers respond to this request: all but Produce with acks=0."""
    return api_key != PRODUCE or getattr(body, "acks", None) != 0


def _is_message(name: str) -> bool:
    return MODULES[name] == python_name(name)


def _whole(frame: Buffer) -> bytes:
    """Return the frame as bytes, after checking that its size matches the buffer."""
    data = frame if type(frame) is bytes else memoryview(frame).tobytes()
    if len(data) < SIZE_BYTES:
        raise DecodeError("ends before the size", offset=0, path="size")
    size = int.from_bytes(data[:SIZE_BYTES], "big", signed=True)
    if size != len(data) - SIZE_BYTES:
        raise DecodeError(
            f"size is {size} bytes, but {len(data) - SIZE_BYTES} follow", offset=0, path="size"
        )
    return data


def _frame(header: bytes, body: bytes) -> bytes:
    return (len(header) + len(body)).to_bytes(SIZE_BYTES, "big") + header + body


_made: dict[str, Dialect] = {}


def dialect(name: str = "kafka") -> Dialect:
    """Return the dialect with that name. Raises UnknownNameError."""
    if name not in DIALECTS:
        raise UnknownNameError(f"no dialect {name!r}; the dialects are {', '.join(DIALECTS)}")
    made = _made.get(name)
    if made is None:
        if name == "kafka":
            made = Dialect("kafka", {}, None)
        elif name == "auto":
            made = AutoDialect()
        else:
            folder = schemas_directory() / name.replace("-", "_")
            made = load_dialect(folder, _BASES.get(name, "kafka"), name=name)
        _made[name] = made
    return made


def decode_request(frame: Buffer) -> tuple[RequestHeader, RequestMessage[Message]]:
    """Decode a whole request frame, size included, in the dialect ``kafka``. Returns header and
    body.

    Raises DecodeError (UnsupportedFrameError if the frame's api key or version is unknown).
    """
    return dialect().decode_request(frame)


def decode_response(
    frame: Buffer, *, api_key: int, api_version: int
) -> tuple[ResponseHeader, Message]:
    """Decode a whole response frame at the version of its request. Returns header and body."""
    return dialect().decode_response(frame, api_key=api_key, api_version=api_version)


def encode_request(
    body: RequestMessage[Message],
    *,
    api_version: int,
    correlation_id: int,
    client_id: str | None = None,
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a whole request frame, size included. ``unknown_tags`` are the header's."""
    return dialect().encode_request(
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
    return dialect().encode_response(
        body, api_version=api_version, correlation_id=correlation_id, unknown_tags=unknown_tags
    )


def load_dialect(path: str | Path, base: str = "kafka", *, name: str | None = None) -> Dialect:
    """Make a dialect from a folder of message schemas laid over ``base``.

    A message with the type and api key of one in ``base`` replaces it at every version. Raises
    SchemaError with file, line, field and remedy.
    """
    folder = Path(path)
    return _lay_over(folder, base, name or folder.name, {})


@cache
def kip_240(*, list_key: int = 32240, describe_key: int = 32241) -> Dialect:
    """Make the dialect ``kip-240`` with these api keys: the proposal never got official ones.
    Raises UnknownNameError for a key that is not an int16 or that the released protocol uses."""
    keys = dict(zip(KIP_240_KEYS, (list_key, describe_key), strict=True))
    if all(mine == known for known, mine in keys.items()):
        return dialect("kip-240")
    for key in keys.values():
        if not 0 <= key < 2**15 or key in dialect("kafka").apis:
            raise UnknownNameError(f"api key {key} is taken, or is not one of 0 to {2**15 - 1}")
    if list_key == describe_key:
        raise UnknownNameError(f"api key {list_key} cannot be that of both listing and describing")
    return _lay_over(schemas_directory() / "kip_240", "kafka", "kip-240", keys)


def _lay_over(folder: Path, base: str, name: str, keys: Mapping[int, int]) -> Dialect:
    """``keys`` maps api keys in the schemas to the ones to use."""
    schemas = load_directory(folder).values()
    own = {
        schema.name: make_message_class(
            replace(schema, api_key=keys.get(schema.api_key or 0, schema.api_key)),
            module=f"kproto.dialects.{name}",
        )
        for schema in schemas
    }
    return Dialect(name, own, dialect(base), {mine: known for known, mine in keys.items()})
