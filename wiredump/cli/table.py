"""``wiredump table``: write captures and journals to Parquet files."""

from __future__ import annotations

import click

from kproto.cli.dialect_option import named_dialect
from kproto.cli.terminal import echo, echo_json
from kproto.outputs import unwinding
from wiredump.cli.chosen import (
    chosen_tables,
    mode_option,
    print_account,
    print_counts,
    table_options,
)
from wiredump.cli.damage import check_read
from wiredump.cli.lean import lean_imports
from wiredump.cli.making import make, processes_for
from wiredump.cli.progress import reading
from wiredump.cli.source_options import SourceOptions, expanded, jobs_option, source_options
from wiredump.cli.tables_folder import TablesFolder
from wiredump.skipped import bytes_of, skipped_of
from wiredump.storage import shown
from wiredump.tables import require_pyarrow
from wiredump.tables.run import Mode, derived_run
from wiredump.tables.work import Work

__all__ = ["table_command"]


@click.command("table")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option(
    "--out",
    type=TablesFolder(),
    required=True,
    metavar="DIR",
    help="Folder to write, a path or a URI: new or empty, or as --mode says.",
)
@jobs_option
@click.option("--rotated", is_flag=True,
              help="CAPTUREs are the parts of one capture, in this order: do not merge them by "
                   "time.")  # fmt: skip
@mode_option
@table_options
@source_options
def table_command(
    captures: tuple[str, ...],
    out: str,
    rotated: bool,
    wanted: str | None,
    packets: bool,
    no_bodies: bool,
    secrets: bool,
    values: bool,
    run: str | None,
    mode: Mode,
    as_json: bool,
    options: SourceOptions,
) -> int:
    """Write the traffic in CAPTUREs as tables, each a folder of Parquet files below DIR.

    A CAPTURE is a pcap or pcapng file, optionally compressed, a journal, a broker's request log,
    or - for standard input.
    """
    captures = expanded(captures)
    tables = chosen_tables(wanted, not no_bodies, packets)
    named_dialect(options.dialect_name)  # fails for an unknown dialect before anything is read
    require_pyarrow()
    if rotated and options.jobs != 1:
        raise click.UsageError("--rotated and --jobs cannot be combined.")
    with lean_imports():
        # Imported late: these need pyarrow, or are slow to import.
        import wiredump.sources
        import wiredump.tables.making
        import wiredump.tables.table_rows  # noqa: F401

    work = Work(
        out=out, paths=dict(enumerate(captures)), tables=tables, bodies=not no_bodies,
        values=values, secrets=secrets, run=run or derived_run(captures),
        mode=mode, **options.of_work,
    )  # fmt: skip
    jobs = processes_for(work, options.jobs)
    with unwinding(), reading(captures) as progress:
        made = make(work, jobs, progress, rotated=rotated)
    if as_json:
        record = {"out": shown(out), "rows": dict(made.rows), "bytes": bytes_of(made.account)}
        record |= {"skipped": skipped_of(made.account)}
        echo_json({**record, "late": made.late, "run": work.run})
        check_read(made.unread, made.account)
        return 0
    print_counts("rows", made.rows)
    print_account(made.account)
    if made.late:
        echo(f"wiredump: {made.late} exchanges came too late to be sorted", err=True)
    check_read(made.unread, made.account)
    return 0
