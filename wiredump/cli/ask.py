"""``wiredump ask``: saved questions about tables or captures."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem
from rich.table import Table

from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, echo_text
from wiredump.cli.answering import answering_options, print_answer, print_metrics, put, put_all
from wiredump.cli.source_options import SourceOptions
from wiredump.cli.spark_tables import SparkOptions
from wiredump.questions.answers import Answer
from wiredump.questions.openmetrics import require_prometheus_client
from wiredump.questions.saved import FINDINGS, question, questions
from wiredump.storage import Location

__all__ = ["ask_command"]


def _names(context: click.Context, option: click.Parameter, text: str) -> list[CompletionItem]:
    return [
        CompletionItem(each.name, help=each.text)
        for each in questions().values()
        if each.name.startswith(text)
    ]


@click.command("ask")
@click.argument("name", required=False, metavar="[QUESTION]", shell_complete=_names)
@click.argument("sources", nargs=-1, metavar="TABLES|CAPTURE...")
@click.option(
    "--limit", type=click.IntRange(1), default=25, show_default=True, help="Most rows to print."
)
@click.option("--show", is_flag=True, help="Print the query instead of the answer.")
@answering_options
def ask_command(
    name: str | None,
    sources: tuple[str, ...],
    limit: int,
    show: bool,
    form: str,
    options: SourceOptions,
    spark: SparkOptions,
) -> None:
    """Answer a saved QUESTION about the traffic in TABLES, a folder that `wiredump table` wrote, or
    in CAPTUREs. Without a question, answer all, beginning with what is wrong; without arguments,
    list the questions.

    With --spark, TABLES may be in any format and store that Spark reads.
    """
    if name is None:
        _list()
        return
    if form == "openmetrics":
        require_prometheus_client()  # before anything is read
    if name not in questions() and ((spark.wanted and not sources) or _is_source(name)):
        if show:
            raise click.UsageError("--show needs a question")
        _answer_all((name, *sources), form, limit, options, spark)
        return
    chosen = question(name)
    if show:
        echo_text(chosen.query)
        return
    if not sources:
        raise click.UsageError("name captures, or a folder of tables")

    def tell(found: Answer) -> None:
        if form == "openmetrics":
            print_metrics([(chosen.name, found)])
            return
        if form == "table":
            echo(chosen.text)
            if chosen.explanation:
                echo(chosen.explanation)
            echo()
        print_answer(found, form, limit=limit)

    put(chosen.query, sources, options, spark, tell, judges=True)


def _is_source(name: str) -> bool:
    return name == "-" or "*" in name or Location(name).exists()


def _answer_all(
    sources: tuple[str, ...], form: str, limit: int, options: SourceOptions, spark: SparkOptions
) -> None:
    """Answer every question, findings first."""
    if form == "csv":
        raise click.UsageError("--format csv prints the answer to one question")
    chosen = sorted(questions().values(), key=lambda each: (each.name != FINDINGS, each.name))

    def tell(answers: Iterator[Answer]) -> None:
        if form == "openmetrics":
            print_metrics((each.name, found) for each, found in zip(chosen, answers, strict=True))
            return
        for each, found in zip(chosen, answers, strict=True):
            if form == "json":
                print_answer(found, form, limit=limit, first={"question": each.name})
                continue
            echo(f"{each.name}: {each.text}")
            if each.name == FINDINGS and not found.rows:
                echo("Nothing.")
            else:
                print_answer(found, form, limit=limit)
            echo()

    put_all([each.query for each in chosen], sources, options, spark, tell, judges=True)


def _list() -> None:
    table = Table("question", "asks", box=None, pad_edge=False)
    for each in questions().values():
        table.add_row(each.name, each.text)
    print_table(table, ("asks",))
