"""What an exchange says: its request and response decoded, and the error codes in the response.

Nothing here raises for what the bytes are: what cannot be decoded is told as far as it goes, with
the error. Bodies are JSON values, as Kafka's converters write them.
"""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

from kproto import error_codes
from kproto.codec.message import Message
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.partial import PartialFrame, request_partly, response_partly
from wiredump.dialects import codec_of
from wiredump.field_trees import (
    FieldTree,
    base64_size,
    changed,
    error_code_fields,
    records_fields,
)
from wiredump.model import Exchange, Frame

__all__ = ["Bodies", "ErrorFound", "Side", "find_errors", "read", "without_records"]

_NOT_KNOWN: Final = "nobody knows what it answers: no request was seen"


class Side(NamedTuple):
    """One frame. ``message`` is its schema's name, empty where that is not known; ``header`` and
    ``body`` are None where nothing of them could be read. ``problem`` says why something could
    not; ``error`` is the exception, where there is one."""

    message: str
    version: int
    header: dict[str, Any] | None
    body: dict[str, Any] | None
    problem: str = ""
    error: KprotoError | None = None


class ErrorFound(NamedTuple):
    """A code other than 0 in a response. ``path`` is the field's in the JSON body, ``where`` what
    it is about as people name it (``foo-0``), empty for the whole response. ``message`` is the
    broker's own text, None where it sent none."""

    path: str
    where: str
    code: int
    name: str
    message: str | None


class Bodies(NamedTuple):
    """``api`` is the api's name as in its messages (``AlterPartitionReassignments``)."""

    api: str
    request: Side | None
    response: Side | None
    errors: list[ErrorFound]


def read(exchange: Exchange, codec: Dialect | None = None) -> Bodies:
    """Both sides by the exchange's dialect: ``codec``, where that is the one (a dialect that was
    loaded from a folder is known by no name)."""
    using = codec_of(exchange, codec)
    api = using.apis.get(exchange.api_key)
    name = api.request.MESSAGE_NAME.removesuffix("Request") if api is not None else ""
    request = response = None
    errors: list[ErrorFound] = []
    if exchange.request is not None:
        message = f"{name}Request" if name else ""
        if exchange.request.sasl:
            request = _token(exchange.request, message)
        elif exchange.request.json is not None:
            known = api is not None and exchange.api_version in api.request.VALID_VERSIONS
            request = _logged(exchange.request, message, exchange.api_version, known)
        else:
            found = request_partly(using, exchange.request.raw)
            request = _side(message, exchange.api_version, found)
    if exchange.response is not None:
        message = api.response.MESSAGE_NAME if api is not None else ""
        if exchange.response.sasl:
            response = _token(exchange.response, message)
        elif exchange.response_version is None:
            response = Side(message, -1, None, None, _NOT_KNOWN)
        elif exchange.response.json is not None:
            version = exchange.response_version
            known = api is not None and version in api.response.VALID_VERSIONS
            response = _logged(exchange.response, message, version, known)
            if known and api is not None and response.body is not None:
                errors = find_errors(api.response, version, response.body)
        else:
            version = exchange.response_version
            found = response_partly(
                using, exchange.response.raw, api_key=exchange.api_key, api_version=version
            )
            response = _side(message, version, found)
            if api is not None and response.body is not None:
                errors = find_errors(api.response, version, response.body)
    if not name and exchange.api_key >= 0:
        name = f"api {exchange.api_key}"
    return Bodies(name, request, response, errors)


def without_records(side: Side, codec: Dialect) -> Any:
    """The body with the size of each field of records in its place (``recordsSizeInBytes``), as
    Kafka's JsonConverter writes it unless it is told to serialize records."""
    if side.body is None or not side.message:
        return side.body
    tree = records_fields(codec.message(side.message), side.version)
    return changed(side.body, tree, _sized)


def _sized(name: str, held: Any) -> tuple[str, Any]:
    return f"{name}SizeInBytes", base64_size(held) if isinstance(held, str) else None


def _side(message: str, version: int, found: PartialFrame) -> Side:
    problem = str(found.error) if found.error is not None else ""
    return Side(message, version, found.header, found.body, problem, found.error)


def _logged(frame: Frame, message: str, version: int, known: bool) -> Side:
    """A source without bytes has the body as JSON. A broker may log a version not known here; of
    one that it does not know itself (ApiVersions) it logs an empty body."""
    if not known:
        return Side(message, version, None, None, f"version {version} is not known")
    if not isinstance(frame.json, dict):
        return Side(message, version, None, None, "what was logged is no body")
    return Side(message, version, None, frame.json)


def _token(frame: Frame, message: str) -> Side:
    token = base64.b64encode(frame.raw[SIZE_LENGTH:]).decode()
    return Side(message, 0, None, {"authBytes": token}, "" if frame.whole else "cut")


# ---- error codes -----------------------------------------------------------------------------

_NAMES: Final = (
    "name", "topicName", "topic", "resourceName", "groupId", "user", "userName", "entityName",
    "transactionalId", "partitionIndex", "partitionId", "partition", "index", "memberId",
    "logDir", "brokerId", "feature", "topicId",
)  # fmt: skip
"""What people know a struct of a response by, the best first."""


def find_errors(cls: type[Message], version: int, body: dict[str, Any]) -> list[ErrorFound]:
    """Every error code in a response's JSON, which may be partial, in the order of the schema."""
    found: list[ErrorFound] = []
    _collect(error_code_fields(cls, version), body, "", (), found)
    return found


def _collect(
    codes: FieldTree,
    value: dict[str, Any],
    path: str,
    inside: tuple[dict[str, Any], ...],
    found: list[ErrorFound],
) -> None:
    for code_name in codes.own:
        code = value.get(code_name, 0)
        if code:
            where = "-".join(filter(None, map(_known_by, inside)))
            text = value.get(code_name.removesuffix("Code") + "Message")
            found.append(ErrorFound(path + code_name, where, code, error_codes.name(code), text))
    for name, is_array, inner in codes.inner:
        held = value.get(name)
        if held and is_array:
            for index, each in enumerate(held):
                _collect(inner, each, f"{path}{name}[{index}].", (*inside, each), found)
        elif held:
            _collect(inner, held, f"{path}{name}.", inside, found)


def _known_by(value: dict[str, Any]) -> str:
    for name in _NAMES:
        if value.get(name) not in (None, ""):
            return str(value[name])
    return ""
