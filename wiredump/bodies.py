"""Decode an exchange: the bodies of its request and response, and the error codes in the response.

No function raises for malformed bytes. A body that cannot be decoded is returned as far as it could
be read, with the error. Bodies are JSON values, in the form of Kafka's own converters.
"""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

from kproto import error_codes
from kproto.codec.json_text import SIZE_SUFFIX
from kproto.codec.message import Message
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.partial import PartialFrame, request_partly, response_partly
from wiredump.dialects import codec_of
from wiredump.field_trees import FieldTree, base64_size, changed, error_code_fields, records_fields
from wiredump.model import Exchange, Frame

__all__ = ["Bodies", "ErrorFound", "Side", "find_errors", "read", "without_records"]

_NOT_KNOWN: Final = "its request was not captured"


class Side(NamedTuple):
    """One frame, decoded. ``message`` is the name of its schema, or empty if that is unknown;
    ``header`` and ``body`` are None if nothing of them could be read. ``problem`` has the reason,
    and ``error`` the exception, if something could not be read."""

    message: str
    version: int
    header: dict[str, Any] | None
    body: dict[str, Any] | None
    problem: str = ""
    error: KprotoError | None = None


class ErrorFound(NamedTuple):
    """An error code other than 0 in a response. ``path`` is the field's path in the JSON body,
    ``where`` the entity as people name it (``foo-0``), or empty for the whole response. ``message``
    is the broker's own text, or None."""

    path: str
    where: str
    code: int
    name: str
    message: str | None


class Bodies(NamedTuple):
    """Both sides of an exchange. ``api`` is the name in its messages
    (``AlterPartitionReassignments``)."""

    api: str
    request: Side | None
    response: Side | None
    errors: list[ErrorFound]


def read(exchange: Exchange, codec: Dialect | None = None) -> Bodies:
    """Decode both sides in the exchange's dialect. ``codec`` is that dialect if it was loaded from
    a folder, since such a dialect cannot be found by name."""
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
    """Return the body with the size of each records field in its place (``recordsSizeInBytes``), as
    Kafka's JsonConverter does without ``serializeRecords``."""
    if side.body is None or not side.message:
        return side.body
    tree = records_fields(codec.message(side.message), side.version)
    return changed(side.body, tree, _sized)


def _sized(name: str, _: str, held: Any) -> tuple[str, Any]:
    return f"{name}{SIZE_SUFFIX}", base64_size(held) if isinstance(held, str) else None


def _side(message: str, version: int, found: PartialFrame) -> Side:
    problem = str(found.error) if found.error is not None else ""
    return Side(message, version, found.header, found.body, problem, found.error)


def _logged(frame: Frame, message: str, version: int, known: bool) -> Side:
    """Return the body of a source that has JSON instead of bytes. A broker may log a version that
    is unknown here; for a version that the broker itself lacks (ApiVersions) it logs an empty
    body."""
    if not known:
        return Side(message, version, None, None, f"version {version} is not known")
    if not isinstance(frame.json, dict):
        return Side(message, version, None, None, "the log does not have a valid body")
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
"""The fields by which people identify a struct of a response, in order of preference."""


def find_errors(cls: type[Message], version: int, body: dict[str, Any]) -> list[ErrorFound]:
    """Return every error code in a response's JSON, which may be partial, in the order of the
    schema."""
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
