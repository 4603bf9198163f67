"""``wiredump spark``: captures and journals to Parquet files, by Apache Spark; all that are there,
or, with ``--follow``, as they come."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.cli.chosen import (
    account_lines,
    chosen_tables,
    counts,
    local,
    source_options,
    table_options,
)
from wiredump.cli.following import cores_of, seconds, stopping
from wiredump.skipped import bytes_of, require_read, skipped_of
from wiredump.sources.opening import kind_of, open_key_log
from wiredump.tables.run import derived_run, random_run

__all__ = ["spark_command"]

if TYPE_CHECKING:
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Made

_SPLIT_BYTES = 256 << 20
_BATCH_BYTES = 1 << 30


@click.command("spark")
@click.argument("captures", nargs=-1, metavar="CAPTURE...")
@click.option("--out", required=True, metavar="DIR", callback=local,
              help="A folder: new, or empty; with --follow, the checkpoint's.")  # fmt: skip
@click.option("--follow", metavar="DIR|GLOB", callback=local,
              help="In place of CAPTUREs: rotating ones, as they are closed.")  # fmt: skip
@click.option("--checkpoint", metavar="DIR", callback=local,
              help="Of --follow: how far it is. Another run goes on from there.")  # fmt: skip
@click.option("--trigger", metavar="DURATION", callback=seconds, default="10s", show_default=True,
              help="Of --follow: how often to look for files. 500ms, 10s, 2m.")  # fmt: skip
@click.option("--available-now", is_flag=True,
              help="Of --follow: take the last file too, end the tables, exit.")  # fmt: skip
@click.option("--batch-bytes", type=click.IntRange(1), default=_BATCH_BYTES, show_default=True,
              help="Of --follow: of files that are taken at a time.")  # fmt: skip
@click.option("--rotated", is_flag=True,
              help="CAPTUREs are one in pieces, in this order: not merged by time.")  # fmt: skip
@click.option("--master", metavar="URL",
              help="Spark's master: local[4], spark://HOST:PORT, yarn, k8s://... That of "
              "spark-submit wins.  [default: spark-defaults.conf's, or local[*]]")  # fmt: skip
@click.option("--remote", metavar="URL", help="A Spark Connect server, in place of --master.")
@click.option("--split-bytes", type=click.IntRange(1), default=_SPLIT_BYTES, show_default=True,
              help="Of a capture, for one task to read, at most.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(1),
              help="Tasks that share the connections.  [default: two a core, or one for 256 MiB; "
              "with --follow: the cores of local[N], else 32]")  # fmt: skip
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
    dialect_name: str,
    ports: tuple[int, ...],
    as_json: bool,
    keylog: str | None,
    zone: tzinfo,
    memory: int | None,
    **how: Any,
) -> int:
    """Write what CAPTUREs hold as the tables of `wiredump table`, by Apache Spark.

    CAPTUREs, the key log and DIR have to be on a file system that every executor has. Settings of
    spark-submit, PYSPARK_SUBMIT_ARGS and spark-defaults.conf (SPARK_CONF_DIR) win over those of
    this command, which prints the master it uses.

    With --follow the captures are those that `tcpdump -C`, `-G`, `-W` or `dumpcap -b` write to a
    folder, or that match a pattern. A file is taken once there is a newer one. SIGINT and SIGTERM
    stop it behind a batch, and whatever kills it, another run with the same --checkpoint goes on:
    no row is lost, none is there twice. Tables that take all traffic (connections still open,
    topics, fetches, reassignments, lineage, account) come with --available-now.
    """
    tables = chosen_tables(wanted, not no_bodies, packets)
    named_dialect(dialect_name)
    _check(captures, how)
    if "-" in captures:
        raise click.BadParameter("standard input cannot be shared out", param_hint="CAPTURE")
    # Only now: these need pyspark and pyarrow, which may be absent.
    from wiredump.spark.session import master_of, require_spark, start

    require_spark()
    if keylog is not None and how["follow"]:
        raise click.UsageError(
            "--keylog and --follow do not go together: what a cipher is at is not kept from one "
            "batch to the next; use table, show --follow, or spark on files that are there"
        )
    if keylog is not None:
        open_key_log(keylog)
    for path in captures:
        kind_of(path)  # before Spark starts, which takes seconds: whether it is there
    from wiredump.spark.connections import Options

    options = Options(
        out=os.path.abspath(out),
        paths=dict(enumerate(map(os.path.abspath, captures))),
        names=dict(enumerate(captures)),
        tables=tables,
        dialect=os.path.abspath(dialect_name) if os.path.isdir(dialect_name) else dialect_name,
        ports=ports,
        bodies=not no_bodies,
        values=values,
        secrets=secrets,
        keylog=os.path.abspath(keylog) if keylog is not None else None,
        zone=str(zone),
        memory=memory,
        run=run or _run_of(captures, how),
    )
    on_terminal = sys.stderr.isatty()

    def say(text: str) -> None:
        if on_terminal:
            click.echo(f"wiredump: {text}", err=True)

    spark = start(master, progress=on_terminal, remote=remote)
    used = master_of(spark)
    ignored = f"; --master {master} is ignored" if master not in (None, used) else ""
    click.echo(f"wiredump: Spark's master is {used}{ignored}", err=True)
    try:
        made = (_follow if how["follow"] else _once)(spark, options, how, say, used)
    except KprotoError:
        raise
    except Exception as error:
        raise KprotoError(f"the Spark job failed: {_first_line(error)}") from error
    finally:
        spark.stop()
    if as_json:
        record = {"out": out, "rows": made.rows, "bytes": bytes_of(made.account)}
        record |= {"skipped": skipped_of(made.account), "again": made.again}
        click.echo(json.dumps({**record, "connections": made.connections, "run": options.run}))
        require_read(made.unread, made.account)
        return 0
    click.echo(counts("rows", made.rows))
    for line in account_lines(made.account):
        click.echo(line)
    for path in made.again:
        click.echo(f"wiredump: {path} had to be read twice", err=True)
    require_read(made.unread, made.account)
    return 0


def _check(captures: tuple[str, ...], how: dict[str, Any]) -> None:
    """Whether it is one of the two. Raises click.UsageError."""
    if how["follow"] is None:
        if not captures:
            raise click.UsageError("name CAPTUREs, or a folder or pattern to --follow")
        if how["checkpoint"] or how["available_now"]:
            raise click.UsageError("--checkpoint and --available-now are of --follow")
    elif captures or how["rotated"]:
        raise click.UsageError("--follow takes the place of CAPTUREs: quote a pattern")
    elif not how["checkpoint"]:
        raise click.UsageError("--follow needs a --checkpoint: a folder to go on from")


def _run_of(captures: tuple[str, ...], how: dict[str, Any]) -> str:
    """Of a stream, whose files are not there yet, the one that it was begun with."""
    if not how["follow"]:
        return derived_run(captures)
    from wiredump.spark.checkpoint import Checkpoint

    return Checkpoint(how["checkpoint"]).run or random_run()


def _once(spark: Any, options: Options, how: dict[str, Any], say: _Say, master: str) -> Made:
    from wiredump.spark.job import Job

    return Job(
        options=options, split_bytes=how["split_bytes"], partitions=how["partitions"],
        rotated=how["rotated"], append=how["append"], say=say,
    ).run(spark)  # fmt: skip


def _follow(spark: Any, options: Options, how: dict[str, Any], say: _Say, master: str) -> Made:
    from wiredump.spark.follow import Follow

    job = Follow(
        where=how["follow"],
        checkpoint=os.path.abspath(how["checkpoint"]),
        options=options,
        partitions=how["partitions"] or cores_of(master),
        split_bytes=how["split_bytes"],
        batch_bytes=how["batch_bytes"],
        append=how["append"],
        say=say,
    )
    with stopping(how["trigger"], say) as wait:
        return job.run(spark, available_now=how["available_now"], wait=wait)


_Say = Callable[[str], None]


def _first_line(error: Exception) -> str:
    """A task's own exception says more than Spark's around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (told or lines or [type(error).__name__])[-1]
