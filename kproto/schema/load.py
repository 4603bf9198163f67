"""Load the schema model from Kafka's message JSON (with a few extensions of ours).

This module reads schema files and texts; ``parse`` defines what they may contain. A draft may leave
out ``flexibleVersions``, which then means ``none``. ``check`` reports what is accepted here and
refused by Kafka's own generator, and what is not advisable. Every refusal is a
SchemaError with file, line, field and remedy, whatever the text.

Extensions to Kafka's language: ``about`` anywhere, ``aliases`` (older names) on messages, fields
and common structs, ``structAliases`` on a field that declares its struct inline.
"""

from __future__ import annotations

from pathlib import Path

from kproto.errors import SchemaError
from kproto.schema.model import MessageSchema
from kproto.schema.parse import MessageParser

__all__ = [
    "load_directory",
    "load_message",
    "parse_message",
    "read_schema_text",
    "read_schema_texts",
    "schema_files",
    "schemas_directory",
]


def parse_message(
    text: str,
    source: str = "<text>",
    *,
    lenient: bool = False,
    with_lines: bool = False,
    refused: list[SchemaError] | None = None,
) -> MessageSchema:
    """Parse one message's schema.

    ``lenient`` accepts ``boolean`` for ``bool`` (KIP-860's page writes it so). ``with_lines`` sets
    ``Field.line`` and ``Struct.line``, which about doubles the time. Raises SchemaError and no
    other error, whatever the text. The errors of fields are added to ``refused`` instead, if it is
    given; the message then lacks these fields.
    """
    parser = MessageParser(text, source, lenient=lenient, with_lines=with_lines, refused=refused)
    return parser.message()


def read_schema_text(path: Path) -> str:
    """Return a schema file's text. Raises SchemaError if the file cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SchemaError(
            f"cannot be read: {error.strerror or error}", source=str(path), remedy="name a file"
        ) from None
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
            source=str(path),
            line=error.object.count(b"\n", 0, error.start) + 1,
            remedy="save it as UTF-8",
        ) from None


def read_schema_texts(folder: Path) -> dict[str, str]:
    """Return the text of every ``*.json`` directly in a folder, by the file's name without its
    ending. Raises SchemaError."""
    return {file.stem: read_schema_text(file) for file in schema_files(folder)}


def load_message(
    path: Path | str, *, lenient: bool = False, with_lines: bool = False
) -> MessageSchema:
    """Load one schema file. Raises SchemaError, also if the file cannot be read."""
    text = read_schema_text(Path(path))
    return parse_message(text, str(path), lenient=lenient, with_lines=with_lines)


def schema_files(folder: Path) -> list[Path]:
    """Return every ``*.json`` directly in a folder, sorted. Raises SchemaError if there is none."""
    if not folder.is_dir():
        raise SchemaError("is not a folder", source=str(folder), remedy="name a folder of schemas")
    files = sorted(folder.glob("*.json"))
    if not files:
        raise SchemaError(
            "contains no *.json file", source=str(folder), remedy="name another folder"
        )
    return files


def load_directory(
    path: Path | str, *, lenient: bool = False, with_lines: bool = False
) -> dict[str, MessageSchema]:
    """Load every ``*.json`` directly in a folder, by message name, in order of file name.

    Subfolders are not entered: the importer keeps its notes in one. Raises SchemaError for a folder
    without schemas and for two files with the same message name.
    """
    found: dict[str, MessageSchema] = {}
    for file in schema_files(Path(path)):
        schema = load_message(file, lenient=lenient, with_lines=with_lines)
        if (other := found.get(schema.name)) is not None:
            raise SchemaError(
                f"message {schema.name} is also in {other.source}",
                source=str(file),
                line=1,
                remedy="keep one of the two",
            )
        found[schema.name] = schema
    return found


def schemas_directory() -> Path:
    """Return the directory of this distribution's schemas: in the package, else in the
    repository."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_schemas"
    return installed if installed.is_dir() else package.parent / "schemas"
