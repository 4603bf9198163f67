"""``kspec compare``: two runs, change by change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from kproto.cli.terminal import echo, echo_json
from kproto.outputs import require_complete
from kproto.tools.texts import plural
from kspec.errors import KspecError
from kspec.report.comparison import KINDS, WORSE, Comparison, compare_runs
from kspec.report.conformance_pages import Run, read_results

__all__ = ["compare_command", "read_run"]

_results = click.Path(exists=True, path_type=Path)


@click.command("compare")
@click.argument("old", type=_results)
@click.argument("new", type=_results)
@click.option("--json", "as_document", is_flag=True, help="Print one JSON document.")
def compare_command(old: Path, new: Path, as_document: bool) -> None:
    """Compare two runs, such as those of two releases of a client: the folders that `kspec run
    --out` made, or their results.json.

    Clients are paired by name, without the release in NAME@RELEASE; two runs of one client each are
    compared whatever its names. The exit status is 1 if a case fails that did not fail, or can no
    longer be judged.
    """
    found = compare_runs(
        *(read_run(each / "results.json" if each.is_dir() else each) for each in (old, new))
    )
    if as_document:
        echo_json([_document(each) for each in found], indent=1)
    else:
        for each in found:
            _print_comparison(each)
    sys.exit(1 if any(each.of_kind(kind) for each in found for kind in WORSE) else 0)


def read_run(path: Path) -> Run:
    """Read a results.json. Raises KspecError if it is not one, and IncompleteFolderError if the run
    that wrote its folder was interrupted."""
    require_complete(path.parent)
    try:
        return read_results(path.read_bytes())
    except FileNotFoundError:
        raise KspecError(f"there is no {path}; `kspec run --out {path.parent}` writes it") from None
    except (ValueError, msgspec.MsgspecError) as error:
        raise KspecError(f"{path}: not a results.json: {error}") from None


def _print_comparison(each: Comparison) -> None:
    counts = [f"{len(found)} {kind}" for kind in KINDS if (found := each.of_kind(kind))]
    releases = _released(each.old, each.old_release), _released(each.new, each.new_release)
    compared = f"{each.compared} case{plural(each.compared)}"
    echo(f"{' -> '.join(releases)}, {compared}: {', '.join(counts) or 'the same'}")
    for change in each.changes:
        verdicts = f"{change.before} -> {change.after}"
        echo(f"  {change.kind:16} {change.case}: {change.title} ({verdicts})")
        if change.why and change.kind in WORSE:
            echo(f"  {'':16} {change.why}")


def _released(name: str, release: str) -> str:
    return name if not release or name.endswith(f"@{release}") else f"{name} {release}"


def _document(each: Comparison) -> dict[str, object]:
    changes: Sequence[dict[str, str]] = [change._asdict() for change in each.changes]
    return {**each._asdict(), "changes": changes}
