"""``kproto schema import | check | diff | compare | wireshark``: schemas on the command line.

Results go to stdout, one finding per line (or as JSON). Exit status 1 means that at least one
finding must be fixed; ``kproto.cli.run`` handles errors.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from kproto.cli.dialect_option import named_dialect
from kproto.cli.outputs import OutputFile, OutputFolder
from kproto.cli.terminal import echo, echo_json
from kproto.dialects import DIALECTS, dialect
from kproto.outputs import write_output
from kproto.schema.check import Finding, check_directory, check_file
from kproto.schema.diff import Change, Comparison, diff_messages, diff_schemas
from kproto.schema.importer import ImportReport, import_schemas
from kproto.schema.load import load_directory, load_message
from kproto.schema.model import MessageSchema
from kproto.wireshark import dissector

__all__ = ["schema_group"]

_Existing = click.Path(exists=True, path_type=Path)


@click.group("schema", no_args_is_help=False)
def schema_group() -> None:
    """Import, lint and compare message schemas, and make a Wireshark dissector of them."""


# -- import ----------------------------------------------------------------------------------


@schema_group.command("import")
@click.argument("sources", nargs=-1, required=True, type=_Existing, metavar="JAR|DIR...")
@click.option(
    "--into",
    required=True,
    type=OutputFolder(path_type=Path),
    help="Folder of schemas into which to merge.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def import_command(sources: tuple[Path, ...], into: Path, as_json: bool) -> None:
    """Import message schemas from Kafka's jars (or from folders).

    The folder then contains the union of all versions in the sources and in earlier imports. The
    name of each source must end in its Kafka release, as Maven names jars.
    """
    report = import_schemas(sources, into)
    if as_json:
        echo_json(_report(report), indent=2)
        return
    for line in _summary(report):
        echo(line)


def _report(report: ImportReport) -> dict[str, Any]:
    return {
        "into": str(report.into),
        "messages": len(report.merged),
        "versions": report.versions,
        "without_messages": report.without_json,
        "renumbered": [asdict(item) for item in report.renumbered],
        "conflicts": [{"message": name, **asdict(item)} for name, item in report.conflicts],
        "value_changes": [{"message": name, **asdict(item)} for name, item in report.value_changes],
        "removed_files": report.removed_files,
    }


def _summary(report: ImportReport) -> list[str]:
    kinds = Counter(item.schema.type for item in report.merged.values())
    by_kind = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines = [
        f"{report.into}: {len(report.merged)} messages ({by_kind}), {report.versions} versions"
    ]
    for release, jars in report.without_json.items():
        if jars:
            lines.append(f"Kafka {release}: no message JSON in {', '.join(jars)}")
    for item in report.renumbered:
        lines.append(
            f"Kafka {item.release}: {item.message} version {item.version} is now {item.now}"
            " version 0"
        )
    for name, conflict in report.conflicts:
        reason = (
            f"{conflict.unstable_in} marks it unstable"
            if conflict.unstable_in
            else "only tagged fields were added"
        )
        lines.append(
            f"conflict: {name} version {conflict.version}: {conflict.chosen} won over"
            f" {conflict.rejected} ({reason})"
        )
    for name, change in report.value_changes:
        lines.append(
            f"value: {name} {change.field}: {change.property} {change.chosen_value!r} of"
            f" {change.chosen}, not {change.rejected_value!r} of {change.rejected}"
        )
    return lines


# -- check -----------------------------------------------------------------------------------


@schema_group.command("check")
@click.argument("paths", nargs=-1, required=True, type=_Existing, metavar="DIR|FILE...")
@click.option("--lenient", is_flag=True, help="Accept boolean for bool.")
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check_command(paths: tuple[Path, ...], lenient: bool, strict: bool, as_json: bool) -> None:
    """Lint folders of schemas as Kafka's own generator would, with more helpful messages.

    Exits with 1 if there is an error.
    """
    found: list[Finding] = []
    for path in paths:
        check = check_directory if path.is_dir() else check_file
        found += check(path, lenient=lenient)
    if as_json:
        echo_json([item.as_dict() for item in found], indent=2)
    else:
        for item in found:
            echo(str(item), fg="red" if item.severity == "error" else "yellow")
        counts = Counter(item.severity for item in found)
        echo(f"{counts['error']} errors, {counts['warning']} warnings")
    if any(strict or item.severity == "error" for item in found):
        raise click.exceptions.Exit(1)


# -- diff ------------------------------------------------------------------------------------


@schema_group.command("diff")
@click.argument("old", type=_Existing)
@click.argument("new", type=_Existing)
@click.option(
    "--draft",
    is_flag=True,
    help="OLD is a draft with only the messages it changes: none counts as removed.",
)
@click.option("--lenient", is_flag=True, help="Accept boolean for bool.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON.")
def diff_command(old: Path, new: Path, draft: bool, lenient: bool, as_json: bool) -> None:
    """Compare two files or two folders: which changes are compatible, which break, and why.

    Requests and responses are matched by api key, other messages by name. Exits with 1 if a change
    breaks.
    """
    if old.is_dir() != new.is_dir():
        raise click.UsageError("OLD and NEW must be two files or two folders")
    result = _compare(old, new, draft=draft, lenient=lenient)
    if as_json:
        echo_json(_comparison(result), indent=2)
    else:
        _print(result)
    if result.breaking:
        raise click.exceptions.Exit(1)


def _compare(old: Path, new: Path, *, draft: bool, lenient: bool) -> Comparison:
    if old.is_dir():
        before: dict[str, MessageSchema] = load_directory(old, lenient=lenient)
        return diff_schemas(before, load_directory(new, lenient=lenient), partial=draft)
    first, second = load_message(old, lenient=lenient), load_message(new, lenient=lenient)
    return Comparison(diff_messages(first, second), [(first.name, second.name)], [], [])


def _comparison(result: Comparison) -> dict[str, Any]:
    return {
        "compatible": not result.breaking,
        "changes": [item.as_dict() for item in result.changes],
        "compared": [{"old": old, "new": new} for old, new in result.pairs],
        "only_old": result.only_old,
        "only_new": result.only_new,
    }


def _print(result: Comparison) -> None:
    for item in result.changes:
        echo(_line(item), fg="red" if item.verdict == "breaking" else None)
    if result.only_old:
        echo(f"only in OLD: {', '.join(result.only_old)}")
    if result.only_new:
        shown = ", ".join(result.only_new[:5])
        more = f" and {len(result.only_new) - 5} more" if len(result.only_new) > 5 else ""
        echo(f"only in NEW: {shown}{more}")
    counts = Counter(item.verdict for item in result.changes)
    verdict = "breaking" if result.breaking else "compatible"
    echo(
        f"{len(result.pairs)} messages compared: {counts['breaking']} breaking changes,"
        f" {counts['compatible']} compatible; {verdict}"
    )


def _line(item: Change) -> str:
    version = f" v{item.versions}" if item.versions else ""
    field = f" {item.field}" if item.field else ""
    return f"{item.verdict}: {item.message}{version}{field}: {item.what} ({item.why}) [{item.kind}]"


# -- compare ---------------------------------------------------------------------------------


@schema_group.command("compare")
@click.argument("folder", type=_Existing, metavar="DIR")
@click.option(
    "--java",
    is_flag=True,
    required=True,
    help="With Kafka's own generator, which Maven fetches. Needs Java and Maven.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the values.")
@click.option(
    "--values",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Random values for each version of each message.",
)
@click.option("--lenient", is_flag=True, help="Accept boolean for bool.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def compare_command(
    folder: Path, java: bool, seed: int, values: int, lenient: bool, as_json: bool
) -> None:
    """Hold a folder of schemas against Kafka's own generator: which schemas it refuses, and
    whether random values have the same bytes and JSON in the classes that it makes.

    Exits with 1 if there is a difference.
    """
    # Imported late: the other commands need neither construct nor a process of Java.
    from kproto.oracle.drafts import compare_drafts
    from kproto.oracle.generator import RELEASE

    result = compare_drafts(folder, seed=seed, values=values, lenient=lenient)
    if as_json:
        echo_json(
            {
                **result._asdict(),
                "seed": seed,
                "generator": RELEASE,
                "differences": [item._asdict() for item in result.differences],
            },
            indent=2,
        )
    else:
        for item in result.differences:
            echo(str(item), fg="red")
        echo(
            f"{result.messages} messages, {result.versions} versions, {result.values} values (seed"
            f" {seed}) compared with Kafka's generator {RELEASE}: {len(result.differences)}"
            " differences"
        )
    if result.differences:
        raise click.exceptions.Exit(1)


# -- wireshark -------------------------------------------------------------------------------


@schema_group.command("wireshark")
@click.option(
    "--out",
    type=OutputFile(),
    default="-",
    metavar="FILE",
    help="File to write; standard output by default.",
)
@click.option(
    "--draft",
    "drafts",
    multiple=True,
    metavar="NAME|DIR",
    help="A dialect to choose in Wireshark's preferences, or a folder of your own schemas; the"
    " drafts of this distribution by default. Repeatable.",
)
def wireshark_command(out: str, drafts: tuple[str, ...]) -> None:
    """Write a Wireshark dissector in Lua for every message and version of the schemas.

    Wireshark and tshark load it from their folder of personal Lua plugins, or with
    `-X lua_script:FILE`. Its fields begin with `kproto.`.
    """
    names = drafts or tuple(name for name in DIALECTS if name not in ("kafka", "auto"))
    text = dissector(dialect("kafka"), map(named_dialect, names))
    write_output(out, text)
