"""``kproto decode`` and ``kproto encode``: convert bytes to JSON and back."""

from __future__ import annotations

import os
import string
import sys
from pathlib import Path
from typing import Any

import click

from kproto.annotate import (
    FrameField,
    PartialFields,
    plain_value,
    request_fields_partly,
    response_fields_partly,
)
from kproto.cli.completing import message_names
from kproto.cli.console import Console
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.terminal import echo, echo_json
from kproto.codec.message import Message
from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import KprotoError, UnknownNameError
from kproto.hexview import hex_lines
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader
from kproto.partial import PartialFrame, request_partly, response_partly

__all__ = ["decode_command", "encode_command"]


@click.command("decode")
@click.option("--request", "is_request", is_flag=True, help="FRAME is a request.")
@click.option(
    "--response",
    type=int,
    nargs=2,
    metavar="KEY VERSION",
    help="FRAME is the response to a request with this api key and version.",
)
@dialect_option
@click.option(
    "--bytes", "with_bytes", is_flag=True, help="List every field with its position in the frame."
)
@click.option("--hex", "as_hex", is_flag=True, help="Show the bytes, one line per field.")
@click.option("--all", "unfold", is_flag=True, help="With --hex: show all elements and all bytes.")
@click.option(
    "--partial", is_flag=True, help="Decode a truncated or damaged frame as far as possible."
)
@click.argument("frame", metavar="HEX|-|FILE")
def decode_command(
    is_request: bool,
    response: tuple[int, int] | None,
    dialect_name: str,
    with_bytes: bool,
    as_hex: bool,
    unfold: bool,
    partial: bool,
    frame: str,
) -> None:
    """Decode a whole frame, its size included, to JSON.

    FRAME is hexadecimal digits, a file, or - for standard input; files and standard input may
    contain hexadecimal digits or raw bytes. The JSON contains the dialect, the header and the body.
    --bytes adds a list of all fields with offset (from the first byte of the size), length, path,
    type and value.

    With --partial, and always with --hex, a frame that does not decode is shown as far as possible,
    followed by the error.
    """
    if is_request == (response is not None):
        raise click.UsageError("Specify either --request or --response KEY VERSION.")
    if as_hex and with_bytes:
        raise click.UsageError("Specify either --bytes or --hex, not both.")
    data = _frame(frame)
    chosen = named_dialect(dialect_name)
    try:
        chosen, found = _whole(chosen, data, response)
    except KprotoError as error:
        if not (partial or as_hex):
            raise
        if isinstance(chosen, AutoDialect):
            chosen = dialect("kip-240" if _is_drafts(data, response) else "kafka")
        found = _partly(chosen, data, response)
        if found.error is None:
            found = found._replace(error=error)
    fields = _fields(chosen, data, response) if as_hex or with_bytes else None
    if as_hex and fields is not None:
        console = Console(soft_wrap=True)
        for line in hex_lines(data, fields._replace(error=None), unfold=unfold):
            console.print(line)
    else:
        out: dict[str, Any] = {"dialect": chosen.name, "header": found.header, "body": found.body}
        if fields is not None:
            out["fields"] = [_row(field) for field in fields.rows]
        echo_json(out, indent=2)
    if found.error is not None:
        raise found.error


def _whole(
    using: Dialect, data: bytes, response: tuple[int, int] | None
) -> tuple[Dialect, PartialFrame]:
    header: RequestHeader | ResponseHeader
    body: Message
    if response is None:
        if isinstance(using, AutoDialect):
            using, header, body = using.identify_request(data)
        else:
            header, body = using.decode_request(data)
        version = header.request_api_version
        header_version = using.api(header.request_api_key).request_header_version(version)
    else:
        key, version = response
        if isinstance(using, AutoDialect):
            using, header, body = using.identify_response(data, api_key=key, api_version=version)
        else:
            header, body = using.decode_response(data, api_key=key, api_version=version)
        header_version = using.api(key).response_header_version(version)
    return using, PartialFrame(
        header.to_json_value(header_version), body.to_json_value(version), None
    )


def _partly(using: Dialect, data: bytes, response: tuple[int, int] | None) -> PartialFrame:
    if response is None:
        return request_partly(using, data)
    return response_partly(using, data, api_key=response[0], api_version=response[1])


def _fields(using: Dialect, data: bytes, response: tuple[int, int] | None) -> PartialFields:
    if response is None:
        return request_fields_partly(using, data)
    return response_fields_partly(using, data, api_key=response[0], api_version=response[1])


def _is_drafts(data: bytes, response: tuple[int, int] | None) -> bool:
    key = int.from_bytes(data[4:6], "big", signed=True) if response is None else response[0]
    # For a frame that no dialect can decode, the released protocol explains most if it has the key.
    return key not in dialect("kafka").apis and key in dialect("kip-240").apis


def _frame(argument: str) -> bytes:
    """Return the bytes of hexadecimal text, standard input or a file."""
    if argument == "-":
        raw = sys.stdin.buffer.read()
    elif _hexadecimal(os.fsencode(argument)) is not None:
        raw = os.fsencode(argument)
    else:
        try:
            raw = Path(argument).read_bytes()
        except OSError as error:
            digits = sum(char in string.hexdigits for char in argument)
            if digits == len(argument):  # pasted incompletely
                raise KprotoError(
                    f"{digits} hexadecimal digits are not a whole number of bytes"
                ) from None
            raise KprotoError(
                f"{argument!r:.80} is neither hexadecimal nor a readable file: {error.strerror}"
            ) from None
    decoded = _hexadecimal(raw)
    return raw if decoded is None else decoded


def _hexadecimal(text: bytes) -> bytes | None:
    """Return the bytes of hexadecimal digits (with spaces, line ends or colons), or None."""
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
        "value": plain_value(field.value),
    }


@click.command("encode")
@dialect_option
@click.argument("name", shell_complete=message_names)
@click.argument("version", type=int)
@click.argument("text", metavar="JSON|-")
def encode_command(dialect_name: str, name: str, version: int, text: str) -> None:
    """Encode a message's JSON to lower-case hexadecimal.

    The JSON is as Kafka's JsonConverter writes it for that version; - reads it from standard input.
    The output is the body, without size and header.
    """
    cls = named_dialect(dialect_name).message(name)
    if not issubclass(cls, Message):
        raise UnknownNameError(f"{name} is a struct; only a message has an encoding")
    message = cls.from_json(sys.stdin.read() if text == "-" else text, version)
    echo(message.encode(version).hex())
