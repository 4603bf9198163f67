"""Lint schemas: report what Kafka's own generator would refuse, and what is bad practice.

``check_rules`` and ``check_generator`` contain the rules about one message. This module contains
the rules about a whole folder and runs all of them. Each error that the loader raises is reported
as one finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kproto.errors import SchemaError
from kproto.schema.check_generator import GENERATOR_RULES
from kproto.schema.check_rules import RULES, CheckedMessage, Finding
from kproto.schema.jsontext import read_json
from kproto.schema.load import parse_message, read_schema_text, schema_files

__all__ = ["Finding", "check_directory", "check_file", "check_text"]


def check_text(text: str, source: str, *, lenient: bool = False) -> list[Finding]:
    """Lint one message. Never raises because of the text."""
    found, _ = _check_one(text, source, lenient=lenient)
    return found


def check_file(path: Path, *, lenient: bool = False) -> list[Finding]:
    """Lint one file. Never raises because of its content."""
    found, _ = _check_file(path, lenient=lenient)
    return found


def check_directory(path: Path, *, lenient: bool = False) -> list[Finding]:
    """Lint every ``*.json`` directly in a folder, and the messages against each other.

    Raises SchemaError only if there is no such folder or it contains no schema.
    """
    found: list[Finding] = []
    messages: list[CheckedMessage] = []
    for file in schema_files(path):
        findings, message = _check_file(file, lenient=lenient)
        found += findings
        if message is not None:
            messages.append(message)
    return found + list(_together(messages))


def _refused(error: SchemaError) -> Finding:
    return Finding(
        "error", "load", error.source, error.line, error.field, error.problem, error.remedy
    )


def _check_file(path: Path, *, lenient: bool) -> tuple[list[Finding], CheckedMessage | None]:
    try:
        text = read_schema_text(path)
    except SchemaError as error:
        return [_refused(error)], None
    found, message = _check_one(text, str(path), lenient=lenient)
    if message is not None and path.stem != message.schema.name:
        problem = f"message {message.schema.name} is in {path.name}"
        found.append(message.warning("file-name", problem, "rename the file"))
    return found, message


def _check_one(
    text: str, source: str, *, lenient: bool
) -> tuple[list[Finding], CheckedMessage | None]:
    refused: list[SchemaError] = []
    try:
        schema = parse_message(text, source, lenient=lenient, with_lines=True, refused=refused)
        message = CheckedMessage(schema, text, read_json(text, source))
    except SchemaError as error:
        refused.append(error)
    if refused:
        return [_refused(error) for error in refused], None
    return [finding for rule in (*RULES, *GENERATOR_RULES) for finding in rule(message)], message


# -- rules about a folder --------------------------------------------------------------------


def _together(messages: list[CheckedMessage]) -> Iterator[Finding]:
    names: dict[str, CheckedMessage] = {}
    by_key: dict[tuple[str, int], list[CheckedMessage]] = defaultdict(list)
    for message in messages:
        schema = message.schema
        for name in (schema.name, *schema.aliases):
            if (other := names.setdefault(name, message)) is not message:
                yield message.error(
                    "duplicate-name",
                    f"{name} also names the message in {other.schema.source}",
                    "rename one of the two",
                    "name",
                )
        if schema.api_key is not None and schema.type in ("request", "response", "metadata"):
            by_key[schema.type, schema.api_key].append(message)
    for (kind, key), found in sorted(by_key.items()):
        for message in found[1:]:
            # Two logs number their records separately: the cluster's and that of remote segments.
            yield message.finding(
                "warning" if kind == "metadata" else "error",
                "duplicate-api-key",
                f"api key {key} is taken by the {kind} {found[0].schema.name}",
                "choose a free one, unless they are of different logs"
                if kind == "metadata"
                else "choose a free one",
                "apiKey",
            )
        if kind == "request":
            yield from _pair(found[0], by_key.get(("response", key)))
        if kind == "response" and ("request", key) not in by_key:
            yield found[0].warning(
                "pair", f"no request has api key {key}", "add the request", "apiKey"
            )


def _pair(request: CheckedMessage, responses: list[CheckedMessage] | None) -> Iterator[Finding]:
    if not responses:
        yield request.warning(
            "pair", f"no response has api key {request.schema.api_key}", "add one", "apiKey"
        )
        return
    response = responses[0]
    ours, theirs = request.schema.valid_versions, response.schema.valid_versions
    if ours != theirs:
        yield response.error(
            "pair",
            f"versions {theirs}, but {request.schema.name} has {ours}",
            "give both the same validVersions",
            "validVersions",
        )
    flexible = request.schema.flexible_versions.intersect(ours)
    response_flexible = response.schema.flexible_versions.intersect(ours)
    if ours == theirs and flexible != response_flexible:
        yield response.warning(
            "pair",
            f"flexible at {response_flexible}, but {request.schema.name} at {flexible}",
            "make both flexible from the same version",
            "flexibleVersions",
        )
