"""``kproto decode`` and ``kproto encode``: bytes to JSON and back."""

from __future__ import annotations

import base64
import json
import math
import string
import sys
import uuid
from pathlib import Path
from typing import Any

import click

from kproto.annotate import FrameField, request_fields, response_fields
from kproto.codegen.base import Message
from kproto.dialects import DIALECTS, AutoDialect, Dialect, dialect, load_dialect
from kproto.errors import KprotoError, UnknownNameError
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader

__all__ = ["decode_command", "dialect_option", "encode_command", "named_dialect"]

dialect_option = click.option(
    "--dialect",
    "dialect_name",
    default="kafka",
    show_default=True,
    metavar="NAME|DIR",
    help=f"One of {', '.join(DIALECTS)}, or a folder of schemas of your own laid over kafka.",
)


def named_dialect(name: str) -> Dialect:
    """A dialect by name, or from a folder. Raises UnknownNameError or SchemaError."""
    if name not in DIALECTS and Path(name).is_dir():
        return load_dialect(name)
    return dialect(name)


@click.command("decode")
@click.option("--request", "is_request", is_flag=True, help="FRAME is a request.")
@click.option(
    "--response",
    type=int,
    nargs=2,
    metavar="KEY VERSION",
    help="FRAME answers a request of this api key and version.",
)
@dialect_option
@click.option("--bytes", "with_bytes", is_flag=True, help="Say where in the frame each field is.")
@click.argument("frame", metavar="HEX|-|FILE")
def decode_command(
    is_request: bool,
    response: tuple[int, int] | None,
    dialect_name: str,
    with_bytes: bool,
    frame: str,
) -> None:
    """Decode a whole frame, its size included, to JSON.

    FRAME is hexadecimal digits, - for hexadecimal or raw bytes on standard input, or a file of
    either. The JSON has the dialect, the header and the body; with --bytes also a list of every
    field with its offset from the first byte of the size, its length, path, type and value.
    """
    if is_request == (response is not None):
        raise click.UsageError("Say one of --request and --response KEY VERSION.")
    data = _frame(frame)
    chosen = named_dialect(dialect_name)
    header: RequestHeader | ResponseHeader
    if response is None:
        if isinstance(chosen, AutoDialect):
            chosen, header, body = chosen.identify_request(data)
        else:
            header, body = chosen.decode_request(data)
        version = header.request_api_version
        header_version = chosen.api(header.request_api_key).request_header_version(version)
    else:
        key, version = response
        if isinstance(chosen, AutoDialect):
            chosen, header, body = chosen.identify_response(data, api_key=key, api_version=version)
        else:
            header, body = chosen.decode_response(data, api_key=key, api_version=version)
        header_version = chosen.api(key).response_header_version(version)
    out: dict[str, Any] = {
        "dialect": chosen.name,
        "header": header.to_json_value(header_version),
        "body": body.to_json_value(version),
    }
    if with_bytes:
        fields = (
            request_fields(chosen, data)
            if response is None
            else response_fields(chosen, data, api_key=response[0], api_version=version)
        )
        out["fields"] = [_row(field) for field in fields]
    click.echo(json.dumps(out, indent=2, ensure_ascii=False))


def _frame(argument: str) -> bytes:
    """Bytes from hexadecimal text, standard input or a file of either."""
    if argument == "-":
        raw = sys.stdin.buffer.read()
    elif _hexadecimal(argument.encode()) is not None:
        raw = argument.encode()
    else:
        try:
            raw = Path(argument).read_bytes()
        except OSError as error:
            digits = sum(char in string.hexdigits for char in argument)
            if digits == len(argument):  # pasted, and one end missed
                raise KprotoError(
                    f"{digits} hexadecimal digits are no whole number of bytes"
                ) from None
            raise KprotoError(
                f"{argument!r:.80} is neither hexadecimal nor a file to read: {error.strerror}"
            ) from None
    decoded = _hexadecimal(raw)
    return raw if decoded is None else decoded


def _hexadecimal(text: bytes) -> bytes | None:
    """The bytes that hexadecimal digits (with spaces, line ends or colons) stand for, or None."""
    try:
        digits = text.decode("ascii").replace(":", "")
        return bytes.fromhex(digits)
    except ValueError:
        return None


def _row(field: FrameField) -> dict[str, Any]:
    return {
        "offset": field.offset,
        "length": field.length,
        "path": field.path,
        "type": field.type,
        "value": _plain(field.value),
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: uuid and bytes as the body's JSON writes them."""
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        return None  # a struct: its fields have rows of their own
    if isinstance(value, list | tuple):
        return None if value and isinstance(value[0], dict) else [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@click.command("encode")
@dialect_option
@click.argument("name")
@click.argument("version", type=int)
@click.argument("text", metavar="JSON|-")
def encode_command(dialect_name: str, name: str, version: int, text: str) -> None:
    """Encode a message's JSON to lower-case hexadecimal.

    The JSON is what Kafka's JsonConverter writes for that version; - reads it from standard
    input. Only the body is written: no size and no header.
    """
    cls = named_dialect(dialect_name).message(name)
    if not issubclass(cls, Message):
        raise UnknownNameError(f"{name} is a struct; only a message has an encoding")
    message = cls.from_json(sys.stdin.read() if text == "-" else text, version)
    click.echo(message.encode(version).hex())
