"""``kspec publish``: results.json as pages of Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from kproto.cli.outputs import OutputFolder
from kproto.cli.terminal import echo
from kproto.outputs import open_folder_output
from kspec.cli.compare import read_run
from kspec.errors import KspecError
from kspec.report.conformance_pages import (
    GENERATED,
    Run,
    Sentences,
    Written,
    as_pages,
    stale_sentences,
    unwritten,
)

__all__ = ["FINDINGS", "publish_command", "read_sentences", "report_sentences"]

FINDINGS: Final = Path(__file__).resolve().parents[1] / "findings.yaml"


@click.command("publish")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=OutputFolder(path_type=Path), required=True,
              help="Output folder; pages of an earlier run are replaced.")  # fmt: skip
@click.option("--findings", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              default=FINDINGS, help="YAML file of explanations: client to case to `seen` and "
                                     "`source`.")  # fmt: skip
def publish_command(results: Path, out: Path, findings: Path) -> None:
    """Write the results.json of a run as pages of Markdown: index.md, cases.md, one per client.

    Failures without an explanation in the file of findings are described in the judge's words and
    listed on standard error, as are explanations of failures that no longer occur.
    """
    run = read_run(results)
    sentences = read_sentences(findings)
    with open_folder_output(out) as folder:
        for page in out.glob("*.md"):
            if GENERATED in page.read_text("utf-8"):
                folder.remove(page.name)
        for name, text in as_pages(run, sentences).items():
            folder.write(name, text)
    report_sentences(run, sentences, findings.name)


def report_sentences(run: Run, sentences: Sentences, name: str) -> None:
    """Print missing and stale explanations of the file of that name on standard error."""
    for client, number in unwritten(run, sentences):
        echo(f"{name} has no explanation for {client}, {number}", err=True)
    for client, number in stale_sentences(run, sentences):
        echo(f"stale in {name}: {client} no longer fails {number}", err=True)


def read_sentences(path: Path) -> Sentences:
    """Read a file of findings. Raises KspecError if it is invalid."""
    try:
        text = path.read_text("utf-8")
        parsed = _parsed(text)
        return msgspec.convert({} if parsed is None else parsed, dict[str, dict[str, Written]])
    except (OSError, ValueError) as error:  # msgspec's errors, and those of text that is not UTF-8
        raise KspecError(f"{path}: {error}") from None


def _parsed(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())}") from None
