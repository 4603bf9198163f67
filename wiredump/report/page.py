"""The page: all sections in one file that loads nothing, and whose script only sorts tables."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from markupsafe import Markup

import kproto
from kproto.pages import Pages
from kproto.safe_text import printable_lines
from wiredump.questions.saved import FINDINGS
from wiredump.report.answers import MOST_LISTED, answer_blocks, api_name
from wiredump.report.blocks import (
    NOTHING,
    Block,
    Cell,
    Details,
    Figure,
    Note,
    Table,
    count,
    cut,
    duration,
    moment,
)
from wiredump.report.measured import Measured, Row
from wiredump.report.network import network_section
from wiredump.report.plots import (
    Plots,
    errors_plot,
    latency_plot,
    latency_times_plot,
    reassignments_plot,
    traffic_plot,
)
from wiredump.report.requests import MOST_CLIENTS, OTHERS, QUANTILES, Client
from wiredump.report.upgrade import upgrade_section
from wiredump.skipped import bytes_of, distinct_of, unread_of
from wiredump.unread import unread_line

__all__ = ["SECTIONS", "page"]

_TO: Final = "\N{EN DASH}"
_BETWEEN_PARTS: Final = re.compile(r"(?<=[_.-])(?=.)|(?<=[a-z])(?=[A-Z])")

ERRORS_SHOWN: Final = 100
CLIENTS_SHOWN: Final = 200
MOST_NAMES: Final = 20
"""Versions, ranges or errors in one cell."""


class Section(NamedTuple):
    name: str
    heading: str
    blocks: list[Block]


@cache
def _pages() -> Pages:
    made = Pages("wiredump.report")
    made.environment.filters["separable"] = _separable
    return made


def _separable(value: Any) -> Any:
    """Let a line end between the parts of a name, rather than within one."""
    if type(value) is not str:
        return value
    return Markup("<wbr>").join(_BETWEEN_PARTS.split(printable_lines(value)))


def page(measured: Measured, title: str = "Kafka traffic") -> str:
    """Return the whole document."""
    requests = measured.requests
    sections = [
        Section(name, heading, _missing(measured, needs) or make(measured) or [NOTHING])
        for name, (heading, needs, make) in SECTIONS.items()
    ]
    facts = {
        "requests": requests.total,
        "with errors": requests.failed,
        "not answered": requests.unanswered,
        "connections": measured.network.connections,
        "reassignments": measured.answers["reassignments"].total,
        "anomalies": measured.answers["anomalies"].total,
    }
    return _pages().render(
        "report.html",
        scripts=("tables.js",),
        title=title,
        span=_span(measured),
        facts=facts,
        sections=sections,
        version=kproto.__version__,
    )


def _missing(measured: Measured, needs: str) -> list[Block]:
    return [] if needs in measured.tables else [Note(f"The table {needs} was not made.")]


def _span(measured: Measured) -> str:
    first, last = measured.requests.first_ns, measured.requests.last_ns
    if first is None or last is None:
        return ""
    lasted = duration(last - first).text
    return f"Requests from {moment(first).text} to {moment(last).text} UTC, {lasted}."


def _figure(name: str, plots: Plots | None, label: str) -> list[Block]:
    return [] if plots is None else [Figure(name, (Markup(plots[0]), Markup(plots[1])), label)]


def _who(row: Row) -> str:
    software = " ".join(filter(None, (row["software_name"], row["software_version"])))
    return " · ".join(filter(None, (software, row["client_id"]))) or "unknown"


# ---- sections --------------------------------------------------------------------------------


def _timeline(measured: Measured) -> list[Block]:
    requests = measured.requests
    times = _figure(
        "latency-times", latency_times_plot(requests.latency_times), "Latency over time"
    )
    if times:
        times.insert(0, Note("Latencies leave out Fetch, JoinGroup and SyncGroup, which wait."))
    return [*_figure("errors", errors_plot(requests.errors), "Errors over time"), *times]


def _traffic(measured: Measured) -> list[Block]:
    traffic = measured.requests.traffic
    most = set(heapq.nlargest(MOST_LISTED, traffic, key=lambda each: each.requests))
    rows = [
        (each.api or api_name(each.api_key), each.api_key, each.version, each.requests, each.failed,
         each.unanswered, each.request_bytes, each.response_bytes)
        for each in traffic if each in most
    ]  # fmt: skip
    heads = (
        "api", "key#", "version#", "requests#", "with errors#", "not answered#", "bytes sent#",
        "bytes received#",
    )  # fmt: skip
    return [
        *_figure("traffic", traffic_plot(traffic), "Requests by api"),
        Table("traffic", heads, rows),
        *cut(len(rows), len(traffic), "most frequent"),
    ]


def _latency(measured: Measured) -> list[Block]:
    latencies = measured.requests.latencies
    if not latencies:
        return []
    rows = [
        (each.api, each.answers, *(duration(each.quantiles[q]) for q in QUANTILES),
         duration(each.greatest))
        for each in latencies
    ]  # fmt: skip
    heads = ("api", "answers#", "median#", "90 %#", "99 %#", "99.9 %#", "slowest#")
    return [
        Note(
            "From the first byte of the request to the last of the response, as the capture saw "
            "them."
        ),
        *_figure("latency", latency_plot(latencies), "Latency by api"),
        Table("latency", heads, rows),
    ]


def _errors(measured: Measured) -> list[Block]:
    errors = measured.requests.errors
    if errors is None or not errors.counts:
        return []
    names = list(errors.counts)[:ERRORS_SHOWN]
    rows = [
        (Cell(name, None, f"error-{number}" * (name in errors.examples)), sum(errors.counts[name]))
        for number, name in enumerate(names)
    ]
    heads = (
        "time (UTC)", "api", "version#", "correlation id#", "client id", "client", "broker",
        "latency#", "other errors%",
    )  # fmt: skip
    return [
        Table("errors", ("error", "responses#"), rows),
        *cut(len(rows), len(errors.counts), "most frequent"),
        *answer_blocks("errors", measured.answers["errors"], "errors-by-client"),
        Note(
            "An error links to its first requests. The command wiredump show CAPTURE --errors "
            "prints all of them."
        ),
        *(
            Details(
                f"error-{number}",
                f"Requests with {name}: {count(sum(errors.counts[name]))}",
                [
                    Table(f"error-{number}", heads, [_failed(row, name) for row in examples]),
                    *cut(len(examples), sum(errors.counts[name])),
                ],
            )
            for number, name in enumerate(names)
            if (examples := errors.examples.get(name))
        ),
    ]


def _failed(row: Row, error: str) -> tuple[Any, ...]:
    return (
        moment(row["requested_ns"]), row["api"] or "unknown", row["api_version"],
        row["correlation_id"], row["client_id"], row["client"], row["broker"],
        duration(row["latency_ns"]),
        ", ".join(name for name in row["errors"][:MOST_NAMES] if name != error),
    )  # fmt: skip


def _clients(measured: Measured) -> list[Block]:
    clients = measured.requests.clients
    if not clients:
        return []
    most = set(heapq.nlargest(CLIENTS_SHOWN, range(len(clients)), lambda at: clients[at].requests))
    shown = [each for at, each in enumerate(clients) if at in most]
    ranges = {
        api_name(key): ", ".join(f"{low}{_TO}{high}" for low, high in sorted(found)[:MOST_NAMES])
        for key, found in measured.offered.items()
    }
    rows = [
        (each.software, each.version, each.client_id, len(each.versions), each.requests)
        for each in shown
    ]
    heads = ("software", "version", "client id~", "apis#", "requests#")
    return [
        Note(
            "The versions each client used, and the ranges that brokers offered it or others in "
            "this traffic."
        ),
        Table("clients", heads, rows),
        *[Note(f"{OTHERS}: all clients after the first {count(MOST_CLIENTS)}.")]
        * (measured.requests.all_clients > MOST_CLIENTS),
        *cut(len(rows), measured.requests.all_clients, "busiest", "clients"),
        *(_client(number, each, ranges) for number, each in enumerate(shown)),
    ]


def _client(number: int, client: Client, ranges: dict[str, str]) -> Block:
    rows = [
        (api, _versions(versions), ranges.get(api))
        for api, versions in client.versions.items()
    ]  # fmt: skip
    named = {
        "software_name": client.software,
        "software_version": client.version,
        "client_id": client.client_id,
    }
    heads = ("api", "used (requests)", "offered")
    return Details(f"client-{number}", _who(named), [Table(f"client-{number}", heads, rows)])


def _versions(used: dict[int, int]) -> str:
    named = [f"v{version} ({times:,})" for version, times in used.items()]
    hidden = len(named) - MOST_NAMES
    return ", ".join(named[:MOST_NAMES]) + (f" and {count(hidden)} more" if hidden > 0 else "")


def _reassignments(measured: Measured) -> list[Block]:
    if not measured.reassignments:
        return []
    outcomes = ", ".join(f"{name}: {count(n)}" for name, n in sorted(measured.outcomes.items()))
    plots = reassignments_plot(measured.reassignments, measured.requests.last_ns)
    return [
        Note(outcomes, "", "outcomes"),
        *_figure("reassignments", plots, "Reassignments over time"),
        *answer_blocks("reassignments", measured.answers["reassignments"]),
    ]


def _account(measured: Measured) -> list[Block]:
    account = bytes_of(measured.account)
    if not account:
        return [Note("No source was a capture of packets.")]
    unread = unread_line(unread_of(measured.account), distinct_of(measured.account))
    placed = sum(size for what, size in account.items() if what not in ("payload", "missing"))
    agrees = placed == account.get("payload")
    blocks: list[Block] = [
        Note(
            f"{count(account.get('payload'))} bytes of TCP payload, {'' if agrees else 'but '}"
            f"{count(placed)} accounted for.",
            "" if agrees else "bad",
        ),
        *([Note(f"{unread}.", "bad")] if unread else []),
        Table("account", ("what", "bytes#"), list(measured.account.items())),
    ]
    if measured.skipped:
        total = count(sum(measured.skipped.values()))
        blocks += [
            Note(f"{total} packets carry no TCP that could be read.", ""),
            Table("skipped", ("packets of", "packets#"), list(measured.skipped.items())),
        ]
    return blocks


_Make: TypeAlias = Callable[[Measured], list[Block]]


def _answer(*names: str) -> _Make:
    """Return what makes the section of saved questions or lists."""
    return lambda measured: [
        block for name in names for block in answer_blocks(name, measured.answers[name])
    ]


SECTIONS: Final[dict[str, tuple[str, str, _Make]]] = {
    FINDINGS: ("Findings", "requests", _answer(FINDINGS)),
    "timeline": ("Time line", "requests", _timeline),
    "traffic": ("Traffic", "requests", _traffic),
    "latency": ("Latency", "requests", _latency),
    "slow-clients": ("Slow clients", "requests", _answer("slow-clients")),
    "slow-brokers": ("Slow brokers", "requests", _answer("slow-brokers")),
    "errors": ("Errors", "requests", _errors),
    "clients": ("Clients", "requests", _clients),
    "unsupported": ("Unsupported versions", "negotiations", _answer("unsupported")),
    "upgrade": ("Upgrade", "requests", lambda measured: upgrade_section(measured.upgrade)),
    "reassignments": ("Reassignments", "reassignments", _reassignments),
    "elections": ("Elections", "elections", _answer("elections")),
    "rebalances": ("Rebalances", "groups", _answer("groups", "rebalances")),
    "lag": ("Lag", "bodies", _answer("lag")),
    "transactions": ("Transactions", "transactions", _answer("transactions")),
    "hot-partitions": ("Hot partitions", "batches", _answer("hot-partitions")),
    "rates": ("Rates", "batches", _answer("rates")),
    "retries": ("Batches sent again", "batches", _answer("retries")),
    "metadata-storms": ("Requests for metadata", "requests", _answer("metadata-storms")),
    "top-talkers": ("Top talkers", "connections", _answer("top-talkers")),
    "throttling": ("Throttling", "requests", _answer("throttling")),
    "network": ("Network", "connections", lambda measured: network_section(measured.network)),
    "attempts": ("Attempts to connect", "connections", _answer("attempts")),
    "hops": ("Hops", "connections", _answer("hops")),
    "anomalies": ("Anomalies", "anomalies", _answer("anomaly-kinds", "anomalies")),
    "account": ("Byte account", "account", _account),
    "lineage": ("Lineage", "lineage", _answer("lineage")),
}
"""By id: the heading, the table it takes, and what makes it."""
