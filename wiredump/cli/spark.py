"""``wiredump spark``: captures and journals to Parquet files, by Apache Spark."""

from __future__ import annotations

import json
import os
import sys
from datetime import tzinfo

import click

from kproto.cli.codec import named_dialect
from kproto.errors import KprotoError
from wiredump.cli.chosen import chosen_tables, counts, source_options, table_options
from wiredump.cli.output import Output
from wiredump.sources.opening import kind_of, open_key_log

__all__ = ["spark_command"]

_SPLIT_BYTES = 64 << 20


@click.command("spark")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--out", required=True, metavar="DIR", help="A folder: a new one, or empty.")
@click.option("--master", default="local[*]", show_default=True, metavar="URL",
              help="Spark's master: local[4], spark://HOST:PORT, yarn, k8s://...")  # fmt: skip
@click.option("--remote", metavar="URL", help="A Spark Connect server, in place of --master.")
@click.option("--split-bytes", type=click.IntRange(1), default=_SPLIT_BYTES, show_default=True,
              help="Of a capture, for one task to read.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(1),
              help="Tasks that share the connections.  [default: one for 64 MiB]")  # fmt: skip
@table_options
@source_options
def spark_command(
    captures: tuple[str, ...],
    out: str,
    master: str,
    remote: str | None,
    split_bytes: int,
    partitions: int | None,
    wanted: str | None,
    no_bodies: bool,
    secrets: bool,
    values: bool,
    dialect_name: str,
    ports: tuple[int, ...],
    as_json: bool,
    keylog: str | None,
    zone: tzinfo,
) -> int:
    """Write what CAPTUREs hold as the tables of `wiredump table`, by Apache Spark.

    CAPTUREs, the key log and DIR have to be on a file system that every executor has. More of
    Spark's settings come from its own spark-defaults.conf (SPARK_CONF_DIR).
    """
    tables = chosen_tables(wanted, not no_bodies)
    named_dialect(dialect_name)
    if "-" in captures:
        raise click.BadParameter("standard input cannot be shared out", param_hint="CAPTURE")
    # Only now: these need pyspark and pyarrow, which may be absent.
    from wiredump.spark.session import require_spark, start

    require_spark()
    if keylog is not None:
        open_key_log(keylog)
    for path in captures:
        kind_of(path)  # before Spark starts, which takes seconds: whether it is there
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Job

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
    )
    on_terminal = sys.stderr.isatty()

    def say(text: str) -> None:
        if on_terminal:
            click.echo(f"wiredump: {text}", err=True)

    spark = start(master, progress=on_terminal, remote=remote)
    try:
        made = Job(options=options, split_bytes=split_bytes, partitions=partitions, say=say).run(
            spark
        )
    except KprotoError:
        raise
    except Exception as error:
        raise KprotoError(f"the Spark job failed: {_first_line(error)}") from error
    finally:
        spark.stop()
    if as_json:
        record = {"out": out, "rows": made.rows, "bytes": made.account, "again": made.again}
        click.echo(json.dumps({**record, "connections": made.connections}))
        return 0
    output = Output()
    output.render(counts("rows", made.rows))
    if made.account:
        output.render(counts("bytes of TCP payload", made.account))
    for path in made.again:
        click.echo(f"wiredump: {path} had to be read twice", err=True)
    return 0


def _first_line(error: Exception) -> str:
    """A task's own exception says more than Spark's around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (told or lines or [type(error).__name__])[-1]
