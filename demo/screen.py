"""The demo on a terminal: calls, frames, outcomes, and the table at the end.

This module only shows what it is given. Everything that a peer sent goes through ``printable``,
since a client id may contain terminal escapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from demo.annotate import Span, annotate
from demo.catalog import ALTER_REASSIGNMENTS, API_VERSIONS, Client
from demo.drivers import Answer
from demo.story import BROKERS, CONTROLLER, STEPS, Mark, Outcome, Step
from demo.wire import CONTROLLER_APIS, Profile, api_name
from kproto.cli.console import Console
from kproto.journal import Entry
from kproto.records.summaries import summarize_batches
from kproto.safe_text import printable

__all__ = ["MARKS", "Terminal"]

MARKS: Mapping[Mark, tuple[str, str]] = {
    "right": ("✓", "bold green"),
    "wrong": ("✗", "bold red"),
    "gap": ("!", "bold yellow"),
    "lacking": ("\N{EN DASH}", "dim"),
}

WIDE = 121
"""Columns that the whole table needs; a narrower terminal gets fewer columns, and no frame (78)."""

BODY_INDENT = 10

BYTES_WIDTH = 35
"""Columns for bytes in hexadecimal: twelve of them."""

NARROW, NARROW_BYTES_WIDTH = 100, 23
"""Below this many columns, only eight bytes are shown, to leave room for path and value."""

_LANGUAGES = {"python": "Python", "node": "Node.js", "java": "Java", "go": "Go"}


class Terminal:
    """Prints the story as it happens, one line for each fact, cut to the width.

    An arrow to the right is a request, an arrow to the left its response; both have the broker's
    id.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: set[tuple[int | None, int | None]] = set()
        self._annotated = False

    def opening(self, clients: int, profiles: Sequence[Profile]) -> None:
        """Print what the demo is about to show, and how to read it."""
        releases = " and of ".join(profile.name for profile in profiles)
        for line in (
            f"{clients} client{'s' * (clients != 1)}, each on a mock cluster of {releases}.",
            f"{BROKERS} brokers, {CONTROLLER} is the controller, and only `cluster` lines move"
            " anything.",
            "→ is a request, ← its response, decoded from what went over the socket.",
        ):
            self._console.print(line)

    def client(self, client: Client, version: str, profile: Profile) -> None:
        """Print the heading of one client on one cluster."""
        self._told.clear()
        self._console.print()
        title = Text.assemble(
            (client.name, "bold"),
            f" {printable(version)} ({_LANGUAGES[client.language]}) against ",
            (profile.name, "bold"),
        )
        self._console.print(Rule(title, align="left", style="blue"))

    def note(self, text: str) -> None:
        self._line(("  ", ""), (text, "dim"))

    def step(self, title: str) -> None:
        self._line(("■ ", "blue"), (title, "bold"))

    def call(self, text: str) -> None:
        self._line(("  client  ", "dim"), (text, "cyan"))

    def move(self, text: str) -> None:
        self._line(("  cluster ", "dim"), (text, "magenta"))

    def wire(self, entries: Sequence[Entry]) -> None:
        """Print requests to the controller and the first of each kind in full, and count the
        others."""
        again: Counter[str] = Counter()
        shown: set[tuple[int, int, int | None]] = set()
        for entry in entries:
            exchange = (entry.broker_id, entry.connection_id, entry.correlation_id)
            kind = (entry.api_key, entry.api_version)
            if entry.direction == "event":
                if entry.event not in ("connected", "disconnected"):
                    self._line(("          ", ""), (f"{entry.event} {entry.note}", "yellow"))
            elif entry.direction == "response":
                if exchange in shown:
                    self._response(entry)
            elif kind in self._told and entry.api_key not in CONTROLLER_APIS:
                again[f"{api_name(entry.api_key)} v{entry.api_version}"] += 1
            else:
                shown.add(exchange)
                self._told.add(kind)
                self._request(entry)
        if again:
            times = ", ".join(f"{name} \N{MULTIPLICATION SIGN}{n}" for name, n in again.items())
            self._line(("          also ", "dim"), (times, "dim"))

    def produced(self, entries: Sequence[Entry]) -> None:
        """Print Produce requests of one batch and their responses, and the bytes of the last
        request."""
        for entry in entries:
            if entry.direction == "event":
                self._line(("          ", ""), (f"{entry.event}: {entry.note}", "yellow"))
                continue
            partition = _partition(entry)
            if entry.direction == "request":
                (batch,) = summarize_batches(partition.records)
                text = (
                    f"producer {batch['producer']}, base sequence {batch['sequence']}:"
                    f" {', '.join(repr(record['value']) for record in batch['records'])}"
                )
            else:
                text = f"error code {partition.error_code}, base offset {partition.base_offset}"
            self._exchange(entry, text)
        sent = [entry for entry in entries if entry.direction == "request"]
        if sent:
            self._line(("          ", ""), ("the last request, byte by byte:", "dim"))
            self._bytes(annotate(sent[-1]))

    def _exchange(self, entry: Entry, text: str) -> None:
        arrow, style = (
            ("→", "bright_blue") if entry.direction == "request" else ("←", "bright_green")
        )
        self._line(
            (f"     {arrow} {entry.broker_id}  ", style),
            (f"{api_name(entry.api_key)} v{entry.api_version} ", "bold"), (text, ""),
        )  # fmt: skip

    def answer(self, answer: Answer) -> None:
        style = "green" if answer.ok else "yellow"
        self._line(("  answer  ", "dim"), (str(answer), style))

    def outcome(self, step: Step, outcome: Outcome) -> None:
        if outcome.mark == "lacking":
            return
        sign, style = MARKS[outcome.mark]
        note = step.holds if outcome.mark == "right" else printable(outcome.note)
        self._console.print(Text.assemble(("  " + sign, style), " " + note))

    def _request(self, entry: Entry) -> None:
        head = Text.assemble(
            (f"     → {entry.broker_id}  ", "bright_blue"),
            (f"{api_name(entry.api_key)} v{entry.api_version} ", "bold"),
            (f"[{entry.event}: {printable(entry.note)}] " if entry.event else "", "yellow"),
        )
        self._frame(head, entry)
        if entry.api_key == ALTER_REASSIGNMENTS and not self._annotated:
            self._annotated = True
            self._bytes(annotate(entry))

    def _response(self, entry: Entry) -> None:
        self._frame(Text.assemble((f"     ← {entry.broker_id}  ", "bright_green")), entry)

    def _frame(self, head: Text, entry: Entry) -> None:
        """Return the body behind ``head``: whole if the demo is about its API, otherwise one
        line."""
        body = printable(_body(entry))
        if entry.api_key not in CONTROLLER_APIS:
            self._console.print(head + Text(body), no_wrap=True, overflow="ellipsis", crop=True)
            return
        first, *rest = _wrapped(
            body, self._console.width - head.cell_len, self._console.width - BODY_INDENT
        )
        self._console.print(head + Text(first), no_wrap=True, crop=True)
        for line in rest:
            self._console.print(" " * BODY_INDENT + line)

    def _bytes(self, spans: Sequence[Span]) -> None:
        """Print a request field by field."""
        narrow = self._console.width < NARROW
        width = NARROW_BYTES_WIDTH if narrow else BYTES_WIDTH
        for span in spans:
            raw = span.raw.hex(" ")
            shown = raw if len(raw) <= width else raw[: width - 1] + "…"
            kind = f"  {span.type}" if span.type in ("count", "tag count") else ""
            before = f"          {span.offset:3} "
            is_batch = span.type == "records"
            value = f"a batch of {len(span.raw) - 1} bytes" if is_batch else f"{span.value}"
            taken = len(before) + width + len(value) + len(kind) + 2
            self._line(
                (before, "dim"), (f"{shown:{width}}", "bright_blue"),
                (f" {_short(span.path, self._console.width - taken)} ", "dim"),
                (value, ""), (kind, "dim"),
            )  # fmt: skip

    def _line(self, *parts: tuple[str, str]) -> None:
        text = Text.assemble(*((printable(part), style) for part, style in parts))
        self._console.print(text, no_wrap=True, overflow="ellipsis", crop=True)

    # ---- the end ------------------------------------------------------------------------------

    def table(
        self,
        rows: Sequence[tuple[Client, Profile, Mapping[str, Outcome]]],
        absent: Mapping[str, str],
        clients: Sequence[Client],
    ) -> None:
        """Print one row for each client and profile, one column for each step, and the notes
        below."""
        wide = self._console.width >= WIDE
        table = Table(title="What came of it", title_style="bold", header_style="bold")
        if not wide:
            table.box, table.padding, table.show_edge = box.SIMPLE_HEAD, (0, 0), False
        for column in ("client", "release", "language") if wide else ("client",):
            table.add_column(column, no_wrap=True)
        table.add_column("broker", no_wrap=True)
        for step in STEPS:
            table.add_column(step.name, justify="center", no_wrap=True)
        for client in clients:
            facts: tuple[str, ...] = (client.name,)
            if wide:
                facts += (client.release, _LANGUAGES[client.language])
            if client.name in absent:
                table.add_row(*facts, "absent", *("" for _ in STEPS), style="dim")
            for owner, profile, outcomes in rows:
                if owner is client:
                    broker = profile.name if wide else profile.name.removeprefix("kafka-")
                    table.add_row(*facts, broker, *_cells(outcomes))
                    facts = ("",) * len(facts)
            if wide:
                table.add_section()
        self._console.print()
        self._console.print(table)
        self._console.print(_legend())
        self._notes(rows, absent)

    def _notes(
        self,
        rows: Sequence[tuple[Client, Profile, Mapping[str, Outcome]]],
        absent: Mapping[str, str],
    ) -> None:
        for name, why in absent.items():
            self._console.print(Text.assemble((f"{name} ", "bold"), printable(why)))
        for client, profile, outcomes in rows:
            for step, outcome in outcomes.items():
                if outcome.mark in ("gap", "wrong"):
                    sign, style = MARKS[outcome.mark]
                    where = f" {client.name} on {profile.name}, {step}: "
                    self._console.print(
                        Text.assemble((sign, style), where, printable(outcome.note))
                    )
        lacking: dict[str, list[str]] = {}
        for client in {id(client): client for client, _, _ in rows}.values():
            for step, why in client.lacks.items():
                lacking.setdefault(f"{client.name} {why}", []).append(step)
        sign, style = MARKS["lacking"]
        for text, steps in lacking.items():
            self._console.print(Text.assemble((sign, style), f" {text}: {', '.join(steps)}"))


def _wrapped(text: str, first: int, others: int) -> list[str]:
    """Wrap a text to ``first`` characters in the first line and ``others`` in the rest, after a
    comma unless one is too near the start."""
    lines = []
    room = max(first, 20)
    while len(text) > room:
        comma = text.rfind(",", room // 3, room)
        end = room if comma < 0 else comma + 1
        lines.append(text[:end])
        text, room = text[end:], max(others, 20)
    return [*lines, text]


def _short(path: str, room: int) -> str:
    """Return the end of a path, which distinguishes its fields."""
    names = path.split(".")
    while len(path) > room and len(names) > 1:
        del names[0]
        path = "…" + ".".join(names)
    return path


def _cells(outcomes: Mapping[str, Outcome]) -> list[Text]:
    return [Text(*MARKS[outcomes[step.name].mark]) for step in STEPS]


def _legend() -> Text:
    meanings: tuple[tuple[Mark, str], ...] = (
        ("right", "as Kafka's rules have it"),
        ("wrong", "differs from what is right"),
        ("gap", "a known shortfall of the client's own; the broker's side is right"),
        ("lacking", "the client has no such call"),
    )
    parts = [Text.assemble(MARKS[mark], (f" {meaning}", "dim")) for mark, meaning in meanings]
    return Text("\n").join(parts)


def _partition(entry: Entry) -> Any:
    """The only partition of a Produce request or response."""
    body: Any = entry.decode().body
    if entry.direction == "request":
        return body.topic_data[0].partition_data[0]
    return body.responses[0].partition_responses[0]


def _body(entry: Entry) -> str:
    """Return the decoded body as JSON; of an ApiVersions response, which has sixty rows, only their
    count."""
    decoded = entry.decode()
    if decoded.error is not None:
        return f"!! {decoded.error}"
    body: Any = decoded.body
    if body is None:
        return f"{len(entry.raw)} bytes"
    if entry.api_key == API_VERSIONS and entry.direction == "response" and not body.error_code:
        return f"the version ranges of {len(body.api_keys)} apis"
    return str(body.to_json(decoded.version))
