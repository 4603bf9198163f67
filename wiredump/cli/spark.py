"""``wiredump spark``: write captures and journals to Parquet files with Apache Spark, once or, with
``--follow``, as files appear."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kproto.cli.dialect_option import named_dialect
from kproto.cli.terminal import echo, echo_json
from kproto.outputs import unwinding
from wiredump.cli.bad_files import BadFileExit, bad_file_option, report_skipped
from wiredump.cli.chosen import (
    chosen_tables,
    mode_option,
    print_account,
    print_counts,
    table_options,
)
from wiredump.cli.damage import check_read
from wiredump.cli.following import follow, follow_options, stream_of
from wiredump.cli.source_options import SourceOptions, expanded, source_options
from wiredump.cli.spark_session import spark_session
from wiredump.cli.tables_folder import TablesFolder
from wiredump.skipped import bytes_of, skipped_of
from wiredump.sources.opening import open_key_log
from wiredump.storage import absolute, shown
from wiredump.tables.run import RunDigest, random_run

__all__ = ["spark_command"]

if TYPE_CHECKING:
    from wiredump.spark.connections import Options
    from wiredump.tables.making import Made

_SPLIT_BYTES = 256 << 20


def _columns(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@click.command("spark")
@click.argument("captures", nargs=-1, metavar="CAPTURE...")
@click.option("--out", type=TablesFolder(), required=True, metavar="DIR",
              help="Folder to write, a path or a URI: new or empty, or, with --follow, the one "
                   "that the checkpoint belongs to.")  # fmt: skip
@follow_options
@click.option("--rotated", is_flag=True,
              help="CAPTUREs are the parts of one capture, in this order: do not merge them by "
                   "time.")  # fmt: skip
@click.option("--master", metavar="URL",
              help="Spark's master: local[4], spark://HOST:PORT, yarn, k8s://... That of "
              "spark-submit takes precedence.  [default: from spark-defaults.conf, or "
              "local[*]]")  # fmt: skip
@click.option("--remote", metavar="URL", help="Use a Spark Connect server, instead of --master.")
@click.option("--split-bytes", type=click.IntRange(1), default=_SPLIT_BYTES, show_default=True,
              help="Maximum size of the part of a capture that one task reads.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(1),
              help="Number of tasks that share the connections.  [default: two for each core, or "
              "one for each 256 MiB; with --follow: the cores of local[N], or 32]")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("parquet", "delta", "iceberg")),
              default="parquet", show_default=True,
              help="What to write: Parquet files, tables of Delta in DIR, or tables of Iceberg, of "
                   "which DIR is CATALOG.NAMESPACE.")  # fmt: skip
@click.option("--staging", metavar="DIR", type=TablesFolder(),
              help="Folder for files that are not complete, a path or a URI.  [default: that of "
                   "--out; --format iceberg needs one]")  # fmt: skip
@bad_file_option
@mode_option
@click.option("--partition-by", metavar="COLUMN,COLUMN...", callback=_columns,
              help="Divide tables by these of their columns, by the date or by the hour: "
                   "date,hour,api; TABLE.COLUMN is for one table alone.")  # fmt: skip
@table_options
@source_options
def spark_command(
    captures: tuple[str, ...],
    out: str,
    master: str | None,
    remote: str | None,
    wanted: str | None,
    packets: bool,
    no_bodies: bool,
    secrets: bool,
    values: bool,
    run: str | None,
    as_json: bool,
    options: SourceOptions,
    **how: Any,
) -> int:
    """Write the traffic in CAPTUREs as the tables of `wiredump table`, with Apache Spark.

    CAPTUREs, the key log and DIR are paths on a file system that every executor mounts, or URIs
    (s3://, gs://, abfs://, hdfs://), which may be patterns: 's3://bucket/day/*.pcap'. Settings of
    spark-submit, PYSPARK_SUBMIT_ARGS and spark-defaults.conf (SPARK_CONF_DIR) take precedence
    over those of this command, which prints the master it uses.

    With --follow, the command reads the captures that `tcpdump -C`, `-G`, `-W` or `dumpcap -b`
    write to a folder, or that match a pattern, and journals. It reads a file once there is a newer
    one. SIGINT and SIGTERM stop it after the current batch. However it stops, another run with the
    same --checkpoint continues without losing or repeating a row. Tables that depend on all traffic
    (topics, fetches, reassignments, groups, transactions, lineage, account) are written with
    --available-now and --end, connections that are still open with --end.
    """
    captures = expanded(captures)
    tables = chosen_tables(wanted, not no_bodies, packets)
    dialect, keylog = options.dialect_name, options.keylog
    named_dialect(dialect)
    _check(captures, how)
    if "-" in captures:
        problem = "Spark's tasks cannot share standard input: name files"
        raise click.BadParameter(problem, param_hint="CAPTURE")
    # Imported late: these need pyspark and pyarrow, which may be missing.
    from wiredump.spark.session import master_of, require_spark

    require_spark()
    from wiredump.spark.bad_files import BadFileError
    from wiredump.spark.rotation import FaultError
    from wiredump.spark.sinks import Layout

    layout = Layout(
        form=how["form"], partition_by=how["partition_by"],
        staging=absolute(how["staging"]) if how["staging"] else None,
    )  # fmt: skip
    layout.require()
    how["layout"] = layout
    if keylog is not None and how["follow"]:
        raise click.UsageError(
            "--keylog and --follow cannot be combined, because the state of ciphers is not kept "
            "between batches: use table, show --follow, or spark without --follow"
        )
    if keylog is not None:
        open_key_log(keylog)
    # Whatever is missing is reported before Spark starts, which takes seconds.
    if how["follow"]:
        from wiredump.spark.rotation import Rotation

        Rotation(how["follow"]).require()
    from wiredump.spark.arguments import dialect_of_tasks
    from wiredump.spark.connections import Options
    from wiredump.spark.survey import survey

    paths, digest = dict(enumerate(map(absolute, captures))), RunDigest()
    how["surveyed"] = survey(paths, digest, lenient=how["on_bad_file"] != "fail")
    work = Options(
        out=layout.absolute(out),
        paths=paths,
        names=dict(enumerate(map(shown, captures))),
        tables=tables,
        dialect=dialect_of_tasks(dialect),
        ports=options.ports,
        bodies=not no_bodies,
        values=values,
        secrets=secrets,
        keylog=absolute(keylog) if keylog is not None else None,
        zone=options.zone,
        memory=options.memory,
        max_decompressed=options.max_decompressed,
        run=run or _run_of(digest, how),
    )
    on_terminal = sys.stderr.isatty()

    def say(text: str) -> None:
        if on_terminal:
            echo(f"wiredump: {text}", err=True)

    try:
        with spark_session(master, remote, progress=on_terminal) as spark, unwinding():
            used = master_of(spark)
            ignored = f"; --master {master} is ignored" if master not in (None, used) else ""
            echo(f"wiredump: Spark's master is {used}{ignored}", err=True)
            made = (follow if how["follow"] else _once)(spark, work, how, say)
    except (BadFileError, FaultError) as error:
        raise BadFileExit(str(error)) from error
    if as_json:
        record = {"out": shown(out), "rows": dict(made.rows), "bytes": bytes_of(made.account)}
        record |= {"skipped": skipped_of(made.account), "again": list(made.again)}
        echo_json({**record, "connections": made.connections, "run": work.run})
        check_read({}, made.account)
        return report_skipped(made.unread, how["on_bad_file"])
    print_counts("rows", made.rows)
    print_account(made.account)
    for path in made.again:
        echo(f"wiredump: {shown(path)} was read twice", err=True)
    check_read({}, made.account)
    return report_skipped(made.unread, how["on_bad_file"])


def _check(captures: tuple[str, ...], how: dict[str, Any]) -> None:
    """Raise click.UsageError for options that do not belong together."""
    if how["follow"] and how["mode"] == "overwrite":
        raise click.UsageError("--follow cannot overwrite tables.")
    if how["form"] != "parquet" and how["mode"] == "overwrite":
        raise click.UsageError("--mode overwrite is for Parquet: delete the rows in SQL.")
    if how["follow"] is None:
        if not captures:
            raise click.UsageError("Name at least one CAPTURE, or use --follow.")
        if how["checkpoint"] or how["available_now"] or how["end"]:
            raise click.UsageError("--checkpoint, --available-now and --end need --follow.")
    elif captures or how["rotated"]:
        raise click.UsageError(
            "--follow cannot be combined with CAPTUREs or --rotated. If it is a pattern, quote it."
        )
    elif not how["checkpoint"]:
        raise click.UsageError("--follow needs --checkpoint.")


def _run_of(digest: RunDigest, how: dict[str, Any]) -> str:
    """Return the run's id: of a stream, whose files are yet to come, the one in its checkpoint."""
    if not how["follow"]:
        return digest.run
    from wiredump.spark.connections import Options
    from wiredump.spark.stream_folder import StreamFolder

    folder = stream_of(Options(out="", paths={}, tables=()), how).folder
    settings = StreamFolder(folder).settings
    return settings.run if settings is not None else random_run()


def _once(spark: Any, options: Options, how: dict[str, Any], say: _Say) -> Made:
    from wiredump.spark.job import Job

    return Job(
        options=options, split_bytes=how["split_bytes"], partitions=how["partitions"],
        rotated=how["rotated"], mode=how["mode"], layout=how["layout"],
        on_bad_file=how["on_bad_file"], surveyed=how["surveyed"], say=say,
    ).run(spark)  # fmt: skip


_Say = Callable[[str], None]
