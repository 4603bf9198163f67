"""``kspec report``: a page about one client of a run, for its maintainers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kproto.cli.outputs import OutputFile
from kproto.cli.terminal import echo, echo_text
from kproto.errors import KprotoError
from kproto.journal import Entry, read_journal
from kproto.outputs import write_output
from kspec.cli.compare import read_run
from kspec.cli.publish import FINDINGS, read_sentences
from kspec.errors import KspecError
from kspec.report import (
    as_maintainers_html,
    as_markdown,
    excerpt_of,
    failed_variant,
    findings_of,
    journal_file,
)
from kspec.report.conformance_pages import RunResult
from kspec.report.maintainers import Excerpts
from kspec.runner.files import CASES, load_cases

__all__ = ["excerpts_in", "report_command"]


@click.command("report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--client", required=True, metavar="NAME", help="The client, as the run names it.")
@click.option("--for-maintainers", is_flag=True, required=True,
              help="Write what its maintainers need: the rule, the traffic, a reproducer, and what "
                   "other clients do.")  # fmt: skip
@click.option("--out", type=OutputFile(path_type=Path),
              help="File to write, .md or .html. Default: print Markdown.")  # fmt: skip
@click.option(
    "--findings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=FINDINGS,
    help="YAML file of explanations, as for `kspec publish`.",
)
@click.option(
    "--cases",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=CASES,
    help="Folder of the run's cases, if they were your own.",
)
def report_command(
    folder: Path, client: str, for_maintainers: bool, out: Path | None, findings: Path, cases: Path
) -> None:
    """Write a page about one client from the folder that `kspec run --out` made."""
    assert for_maintainers  # the only kind so far
    run = read_run(folder / "results.json")
    if client not in run.clients:
        raise KspecError(f"{client!r} is not in this run; it has {', '.join(run.clients)}")
    known = {each.id: each for each in load_cases(cases)}
    blocks = findings_of(client, run, read_sentences(findings), known, excerpts_in(folder))
    if out is None:
        echo_text(as_markdown(blocks), nl=False)
        return
    is_html = out.suffix in (".html", ".htm")
    write_output(out, as_maintainers_html(blocks) if is_html else as_markdown(blocks))


def excerpts_in(folder: Path) -> Excerpts:
    """Return a function that reads excerpts from the journals in the folder of a run."""

    def excerpt(result: RunResult) -> Sequence[str]:
        number, variants = failed_variant(result), len(result.variants)
        path = folder / journal_file(result.client, result.case, number, variants)
        return list(excerpt_of(_entries(path), result))

    return excerpt


def _entries(path: Path) -> Sequence[Entry]:
    if not path.exists():
        return ()
    try:
        with path.open(encoding="utf-8") as lines:
            return list(read_journal(lines, truncated=lambda _: _say_truncated(path)))
    except (KprotoError, UnicodeDecodeError) as error:
        raise KspecError(f"{path}: {error}") from None


def _say_truncated(path: Path) -> None:
    echo(f"kspec: {path}: 1 truncated file: its last line is incomplete", err=True)
