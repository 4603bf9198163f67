"""One line an exchange, one an anomaly, for example::

    0.004100 c0 kafka-python 3.0.12 (acc) 10.0.0.1:50000 > 10.0.0.2:9092
        AlterPartitionReassignments v0 #5 {"timeoutMs":60000,...}
        -> 4.1 ms NO_REASSIGNMENT_IN_PROGRESS foo-0: No partition reassignment is in progress.

in one line. ``!!`` marks what is not as it should be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias

from rich.text import Text

from kproto.safe_text import printable
from wiredump.bodies import ErrorFound
from wiredump.model import Anomaly, Connection, Exchange, Frame
from wiredump.show.exchange_view import ExchangeView, seconds

__all__ = ["DEFAULT_WIDTH", "Line", "LineWriter", "PlainLine"]

DEFAULT_WIDTH: Final = 200
MOST_ERRORS: Final = 5


class PlainLine:
    """What ``LineWriter`` needs of ``Text``, without styles."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def plain(self) -> str:
        return "".join(self._parts)

    def append(self, text: str, style: str | None = None) -> None:
        self._parts.append(text)


Line: TypeAlias = Text | PlainLine


def _styled() -> Text:
    return Text(no_wrap=True, overflow="ignore")


class LineWriter:
    """Formats lines. ``width`` limits each body, in characters; None means no limit. Times are
    seconds since ``start_ns``, or dates if ``dates``. Lines are ``Text`` if ``styled``, which takes
    several times as long as a ``PlainLine``."""

    def __init__(
        self, *, width: int | None = DEFAULT_WIDTH, dates: bool = False, styled: bool = True
    ) -> None:
        self._line = _styled if styled else PlainLine
        self.width = width
        self.dates = dates
        self.start_ns = 0

    # -- exchanges ---------------------------------------------------------------------------

    def exchange(self, view: ExchangeView) -> Line:
        exchange = view.exchange
        line = self._begin(view.timestamp_ns, exchange.connection)
        self._who(line, exchange)
        self._request(line, view)
        self._response(line, view)
        return line

    def _begin(self, timestamp_ns: int, connection: Connection | None) -> Line:
        line = self._line()
        line.append(self.time(timestamp_ns), style="dim")
        if connection is not None:
            line.append(f" c{connection.number}", style="cyan")
        return line

    def time(self, timestamp_ns: int) -> str:
        if timestamp_ns == 0 < self.start_ns:
            return "-"  # of a place in the file, such as its cut end
        if not self.dates:
            return f"{(timestamp_ns - self.start_ns) / 1e9:.6f}"
        whole, rest = divmod(timestamp_ns, 10**9)
        try:
            date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        except (ValueError, OverflowError, OSError):
            return f"{whole}.{rest // 1000:06}"  # a time outside of the calendar
        return f"{date}.{rest // 1000:06}Z"

    def _who(self, line: Line, exchange: Exchange) -> None:
        connection = exchange.connection
        software = exchange.software or connection.software
        if software is not None:
            line.append(f" {printable(str(software))}")
        if exchange.client_id:
            line.append(f" ({printable(exchange.client_id)})")
        self._ends(line, connection)

    def _ends(self, line: Line, connection: Connection) -> None:
        ends = f" {connection.client} > {connection.broker}"
        line.append(printable(ends), style="dim")

    def _request(self, line: Line, view: ExchangeView) -> None:
        exchange = view.exchange
        if exchange.request is None:
            self._mark(line, "no request was seen")
            line.append(f" #{exchange.correlation_id}")
            return
        if exchange.request.sasl:
            line.append(" SASL token", style="bold")
        elif exchange.api_key < 0:
            self._mark(line, "no header")
        else:
            line.append(f" {view.api}", style="bold")
            line.append(f" v{exchange.api_version} #{exchange.correlation_id}")
        if exchange.dialect != "kafka":
            line.append(f" [{printable(exchange.dialect)}]", style="magenta")
        self._body(line, self._texts(view)[0])
        self._problem(line, exchange.request, view.problems[0])

    def _response(self, line: Line, view: ExchangeView) -> None:
        exchange = view.exchange
        if exchange.response is None:
            if not exchange.expected:
                wanted = "acks=0" if exchange.api_key == 0 else "none due"
                line.append(f" -> none wanted ({wanted})", style="dim")
            else:
                line.append(" ->", style="bold red")
                self._mark(line, "no answer was seen")
            return
        latency = exchange.latency_ns
        line.append(" ->", style="bold red" if view.failed else "bold green")
        if latency is not None:
            line.append(f" {seconds(latency)}", style="red" if view.failed else "green")
        elif exchange.request is not None:
            self._mark(line, "before its request, by the capture's clock")
        if view.fell_back:
            line.append(f" [falls back to v{exchange.response_version}]", style="yellow")
        if not exchange.in_order:
            line.append(" [out of order]", style="yellow")
        if exchange.response_version is None and not exchange.response.sasl:
            line.append(f" {exchange.response.size} bytes")
            return
        if view.errors:
            self._errors(line, view.errors)
        else:
            self._body(line, self._texts(view)[1])
        self._problem(line, exchange.response, view.problems[1])

    def _errors(self, line: Line, errors: list[ErrorFound]) -> None:
        for number, error in enumerate(errors[:MOST_ERRORS]):
            line.append("; " if number else " ")
            line.append(error.name, style="bold red")
            if error.where:
                line.append(f" {printable(error.where)}")
            if error.message:
                line.append(f": {self._cut(error.message)}")
        if len(errors) > MOST_ERRORS:
            line.append(f"; and {len(errors) - MOST_ERRORS} more errors", style="red")

    def _body(self, line: Line, text: str) -> None:
        if text:
            line.append(f" {self._cut(text)}")

    def _texts(self, view: ExchangeView) -> tuple[str, str]:
        return view.texts if self.width is None else view.short_texts

    def _cut(self, text: str) -> str:
        """Return ``text`` with unprintable characters escaped, and cut to the width."""
        if self.width is None or len(text) <= self.width:
            return printable(text)
        return printable(text[: max(0, self.width - 1)]) + "…"

    def _problem(self, line: Line, frame: Frame, problem: str) -> None:
        if not (problem or frame.missing):
            return
        parts = []
        if not frame.whole:
            parts.append(f"cut: {len(frame.raw)} of {frame.size} bytes")
        if frame.salvaged:
            parts.append(f"{frame.salvaged_batches} whole batches")
        if problem and problem != "cut":
            parts.append(problem)
        self._mark(line, "; ".join(parts))

    def _mark(self, line: Line, text: str) -> None:
        line.append(f" !! {printable(text)}", style="red")

    def bodies(self, view: ExchangeView) -> Iterator[Line]:
        """Yield both bodies, indented, in lines of their own."""
        for name, side in (("request", view.bodies.request), ("response", view.bodies.response)):
            if side is not None and side.body is not None:
                text = json.dumps(side.body, indent=2, ensure_ascii=False)
                for number, row in enumerate(text.split("\n")):
                    head = f"    {name} " if not number else "    "
                    line = self._line()
                    line.append(head + printable(row))
                    yield line

    # -- anomalies ---------------------------------------------------------------------------

    def anomaly(self, anomaly: Anomaly) -> Line:
        line = self._begin(anomaly.timestamp_ns, anomaly.connection)
        if anomaly.connection is not None:
            self._ends(line, anomaly.connection)
        line.append(f" !! {anomaly.kind}", style="bold yellow")
        if anomaly.direction is not None:
            at = f" at byte {anomaly.offset}" if anomaly.offset is not None else ""
            line.append(f" ({anomaly.direction}s{at})")
        line.append(f": {printable(anomaly.reason)}", style="yellow")
        if anomaly.size:
            line.append(f" ({anomaly.size} bytes)", style="yellow")
        capture, offset = anomaly.place
        line.append(f" [capture {capture}, byte {offset}]", style="dim")
        return line
