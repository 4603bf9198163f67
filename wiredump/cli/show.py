"""``wiredump show``: print the exchanges of captures and journals, one per line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from kproto.cli.completing import api_names
from kproto.cli.dialect_option import named_dialect
from kproto.dialects import Dialect
from kproto.durations import parse_duration
from wiredump.cli.collector import collect_seldom
from wiredump.cli.damage import check_read
from wiredump.cli.output import Output
from wiredump.cli.progress import Bar
from wiredump.cli.source_options import (
    SourceOptions,
    dialect_option,
    expanded,
    port_option,
    source_options,
)
from wiredump.model import Connection, Exchange, Item
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.filters import Filters, Moment, api_keys, moment
from wiredump.show.lines import DEFAULT_WIDTH, LineWriter
from wiredump.show.records import anomaly_record, exchange_record, json_line
from wiredump.show.summary import Summary
from wiredump.sources import open_sources

__all__ = ["Show", "show_command"]


def _read(read: Callable[[str], Any]) -> Callable[..., Any]:
    """Make a click callback of ``read``, which raises ValueError."""

    def callback(context: click.Context, option: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx=context, param=option) from None

    return callback


@dataclass
class Show:
    """Prints items as they arrive: ``add`` each, then ``finish``."""

    output: Output
    filters: Filters
    codec: Dialect | None = None
    width: int | None = DEFAULT_WIDTH
    dates: bool = False
    secrets: bool = False
    as_json: bool = False
    as_hex: bool = False
    unfold: bool = False
    bodies: bool = False
    connections: Callable[[], Mapping[int, Connection]] = dict
    """Returns the connections that are known by now."""

    def __post_init__(self) -> None:
        self.summary = Summary()
        self.shown = 0
        self._lines = LineWriter(width=self.width, dates=self.dates, styled=self.output.coloured)
        self._started = False

    def add(self, item: Item) -> None:
        if isinstance(item, Exchange):
            view = ExchangeView(item, self.codec, secrets=self.secrets)
            self._start(view.timestamp_ns)
            if self.filters.passes(view, self._lines.start_ns):
                self._exchange(view)
            return
        self._start(item.timestamp_ns)
        if self.filters.passes_anomaly(item, self._lines.start_ns):
            self.shown += 1
            self.summary.anomaly(item)
            if self.as_json:
                self.output.plain(json_line(anomaly_record(item)))
            else:
                self.output.line(self._lines.anomaly(item))

    def _start(self, timestamp_ns: int) -> None:
        """Count times from the first packet, as far as the connections that are known by then show
        it, or from the first item."""
        if not self._started:
            self._started = True
            opened = (each.opened_ns for each in self.connections().values())
            times = [each for each in opened if 0 < each < timestamp_ns]
            self._lines.start_ns = min(times, default=timestamp_ns)

    def _exchange(self, view: ExchangeView) -> None:
        self.shown += 1
        self.summary.exchange(view)
        if self.as_json:
            record = exchange_record(view)
            if self.as_hex:
                # Imported late, here and below: annotation needs construct.
                from wiredump.show.hexes import field_rows

                for direction, rows in field_rows(view).items():
                    record[direction]["fields"] = rows
            self.output.plain(json_line(record))
            return
        self.output.line(self._lines.exchange(view))
        if self.bodies:
            for line in self._lines.bodies(view):
                self.output.line(line)
        if self.as_hex:
            from wiredump.show.hexes import annotated

            for line in annotated(view, unfold=self.unfold):
                self.output.line(line)

    def finish(self, account: Mapping[str, int], connections: Iterable[Connection]) -> None:
        """Print the summary, with the source's account of bytes and its connections."""
        self.summary.account = account
        self.summary.ended(connections)
        if self.as_json:
            self.output.plain(json_line(self.summary.record()))
            return
        for each in self.summary.render():
            self.output.render(each)


@click.command("show")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--api", "apis", multiple=True, metavar="NAME|KEY",
              shell_complete=api_names,
              help="Show only requests of this API. Repeatable.")  # fmt: skip
@click.option("--errors", is_flag=True,
              help="Show only failures: errors, unanswered requests and anomalies.")  # fmt: skip
@click.option("--client-id", help="Show only requests with this client id.")
@click.option("--software",
              help="Show only clients with this software name, optionally followed by a "
                   "version.")  # fmt: skip
@click.option("--connection", "connections", type=click.IntRange(0), multiple=True,
              help="Show only the connection with this number. Repeatable.")  # fmt: skip
@click.option("--min-latency", callback=_read(parse_duration), metavar="DURATION",
              help="Show only exchanges that took at least this long: 100ms, 1.5s.")  # fmt: skip
@click.option("--from", "since", callback=_read(moment), metavar="TIME",
              help="Start here: seconds as shown, or a date and time.")  # fmt: skip
@click.option("--to", "until", callback=_read(moment), metavar="TIME", help="End here.")
@click.option("--grep", default="", metavar="TEXT",
              help="Show only exchanges whose JSON contains this text.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help="Stop after this many lines.")
@click.option("--width", type=click.IntRange(0), default=DEFAULT_WIDTH, show_default=True,
              help="Maximum characters of each body in a line; 0 for no limit.")  # fmt: skip
@click.option("--bodies", is_flag=True, help="Print whole bodies, indented, below each line.")
@click.option("--hex", "as_hex", is_flag=True, help="Print the frames' bytes, one field per line.")
@click.option("--all", "unfold", is_flag=True,
              help="With --hex: print every element and every byte.")  # fmt: skip
@click.option("--dates", is_flag=True,
              help="Print dates and times in UTC, not seconds since the first.")  # fmt: skip
@click.option("--secrets", is_flag=True, help="Show passwords, tokens and keys.")
@click.option("--follow", is_flag=True,
              help="Continue as the capture grows, until interrupted.")  # fmt: skip
@dialect_option()
@port_option()
@click.option("--summary/--no-summary", default=True, help="Print totals at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@source_options
def show_command(
    captures: tuple[str, ...],
    apis: tuple[str, ...],
    errors: bool,
    client_id: str | None,
    software: str | None,
    connections: tuple[int, ...],
    min_latency: int | None,
    since: Moment | None,
    until: Moment | None,
    grep: str,
    limit: int | None,
    width: int,
    bodies: bool,
    as_hex: bool,
    unfold: bool,
    dates: bool,
    secrets: bool,
    follow: bool,
    summary: bool,
    as_json: bool,
    options: SourceOptions,
) -> int:
    """Print the requests in CAPTUREs with their responses, one exchange per line.

    A CAPTURE is a pcap or pcapng file, optionally compressed, a journal, a broker's request log,
    or - for standard input.
    """
    captures = expanded(captures)
    codec = named_dialect(options.dialect_name)
    filters = Filters(
        api_keys=frozenset().union(*(api_keys(api, codec) for api in apis)),
        errors=errors,
        client_id=client_id,
        software=software,
        connections=frozenset(connections),
        min_latency_ns=min_latency or 0,
        since=since,
        until=until,
        grep=grep,
    )
    bar = Bar([] if follow else captures)
    output = Output(flush=follow, before=bar.hide)
    show = Show(
        output,
        filters,
        codec=codec,
        width=width or None,
        dates=dates,
        secrets=secrets,
        as_json=as_json,
        as_hex=as_hex,
        unfold=unfold,
        bodies=bodies,
    )
    source = open_sources(
        captures, codec=codec, follow=follow, progress=bar.update, **options.reading
    )
    show.connections = lambda: source.connections
    ended = interrupted = False
    collect_seldom()
    try:
        for item in source:
            show.add(item)
            if limit is not None and show.shown >= limit:
                break
        else:
            ended = True
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bar.close()
    if summary:
        # The account of bytes adds up only at the end of the source.
        show.finish(source.account if ended else {}, source.connections.values())
    output.end()
    if ended or follow:
        check_read(source.unread, source.account, "judged" if errors else None)
    elif not interrupted:
        # What follows the last line of --limit was not looked at: there is no verdict on it.
        check_read({}, source.account)
    # An interrupt is the regular end of --follow.
    return 130 if interrupted and not follow else 0
