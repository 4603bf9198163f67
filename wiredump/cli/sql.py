"""``wiredump sql``: a query in SQL about tables or captures."""

from __future__ import annotations

import click

from wiredump.cli.answering import answering_options, print_answer, print_metrics, put
from wiredump.cli.source_options import SourceOptions
from wiredump.cli.spark_tables import SparkOptions
from wiredump.questions.answers import Answer
from wiredump.questions.openmetrics import require_prometheus_client

__all__ = ["sql_command"]


@click.command("sql")
@click.argument("sources", nargs=-1, required=True, metavar="TABLES|CAPTURE...")
@click.argument("query")
@answering_options
def sql_command(
    sources: tuple[str, ...], query: str, form: str, options: SourceOptions, spark: SparkOptions
) -> None:
    """Run QUERY over the traffic in TABLES, a folder that `wiredump table` wrote, or in CAPTUREs.

    QUERY is a SELECT in DuckDB's SQL; `wiredump help tables` lists tables and columns. moment(x)
    makes a timestamp of a column in _ns, and ms(x) makes milliseconds of a duration. With --spark,
    QUERY is in Spark's SQL, and TABLES may be in any format and store that Spark reads.
    """
    if form == "openmetrics":
        require_prometheus_client()  # before anything is read

    def tell(found: Answer) -> None:
        if form == "openmetrics":
            print_metrics([("query", found)])
        else:
            print_answer(found, form)

    put(query, sources, options, spark, tell)
