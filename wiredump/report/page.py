"""The page: all sections in one file, without scripts, that loads nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import kproto
from kproto.dialects import dialect
from wiredump.report.html import (
    STYLE,
    count,
    details,
    duration,
    figure,
    moment,
    section,
    table,
    text,
)
from wiredump.report.measured import Cut, Measured, Row
from wiredump.report.network import network_section
from wiredump.report.plots import errors_plot, latency_plot, reassignments_plot, traffic_plot
from wiredump.report.requests import QUANTILES, Client

__all__ = ["SECTIONS", "page"]

_TO: Final = "\N{EN DASH}"

_NOTHING: Final = '<p class="soft">None.</p>\n'


def page(measured: Measured, title: str = "Kafka traffic") -> str:
    """The whole document."""
    body = "".join(
        section(name, heading, _missing(measured, needs) or make(measured))
        for name, (heading, needs, make) in SECTIONS.items()
    )
    links = "".join(
        f'<a href="#{name}">{text(heading)}</a>' for name, (heading, _, _) in SECTIONS.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{text(title)}</h1>\n{_span(measured)}{_facts(measured)}"
        f'<nav aria-label="Sections">{links}</nav></header>\n<main>\n{body}</main>\n'
        f'<footer><p class="soft">kproto {text(kproto.__version__)}</p></footer>\n'
        "</body>\n</html>\n"
    )


def _missing(measured: Measured, needs: str) -> str:
    if needs in measured.tables:
        return ""
    return f'<p class="soft">The table {text(needs)} was not made.</p>\n'


def _span(measured: Measured) -> str:
    requests = measured.requests
    if requests.first_ns is None or requests.last_ns is None:
        return ""
    lasted = duration(requests.last_ns - requests.first_ns)
    return (
        f'<p class="soft">Requests from {moment(requests.first_ns)} to '
        f"{moment(requests.last_ns)} UTC, {lasted}.</p>\n"
    )


def _facts(measured: Measured) -> str:
    requests = measured.requests
    facts = {
        "requests": requests.total,
        "with errors": requests.failed,
        "not answered": requests.unanswered,
        "connections": measured.network.connections,
        "reassignments": measured.reassignments.total,
        "anomalies": measured.anomalies.total,
    }
    rows = "".join(
        f"<div><dt>{text(name)}</dt><dd>{count(value)}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="facts" id="facts">{rows}</dl>\n'


def _more(cut: Cut) -> str:
    if len(cut.rows) == cut.total or not cut.rows:
        return ""
    return f'<p class="soft">The first {count(len(cut.rows))} of {count(cut.total)}.</p>\n'


def _api(key: int | None) -> str:
    found = dialect("kafka").apis.get(key) if key is not None else None
    if found is None:
        return "unknown" if key is None else f"api {key}"
    return found.request.MESSAGE_NAME.removesuffix("Request")


def _who(row: Row) -> str:
    software = " ".join(filter(None, (row["software_name"], row["software_version"])))
    return " · ".join(filter(None, (software, row["client_id"]))) or "not told"


# ---- sections --------------------------------------------------------------------------------


def _traffic(measured: Measured) -> str:
    traffic = measured.requests.traffic
    rows = [
        (each.api or _api(each.api_key), each.api_key, each.version, each.requests, each.failed,
         each.unanswered, each.request_bytes, each.response_bytes)
        for each in traffic
    ]  # fmt: skip
    heads = (
        "api", "key#", "version#", "requests#", "with errors#", "not answered#", "bytes sent#",
        "bytes received#",
    )  # fmt: skip
    return figure("traffic", traffic_plot(traffic), "Requests by api") + table(
        "traffic", heads, rows
    )


def _latency(measured: Measured) -> str:
    latencies = measured.requests.latencies
    if not latencies:
        return _NOTHING
    rows = [
        (each.api, each.answers, *(duration(each.quantiles[q]) for q in QUANTILES),
         duration(each.greatest))
        for each in latencies
    ]  # fmt: skip
    heads = ("api", "answers#", "median#", "90 %#", "99 %#", "99.9 %#", "slowest#")
    told = (
        '<p class="soft">From the first byte of the request to the last of the response, as the '
        "capture saw them. Percentiles are within 2 %.</p>\n"
    )
    plot = figure("latency", latency_plot(latencies), "Latency by api")
    return told + plot + table("latency", heads, rows)


def _errors(measured: Measured) -> str:
    errors = measured.requests.errors
    if errors is None or not errors.counts:
        return _NOTHING
    plot = figure("errors", errors_plot(errors), "Errors over time")
    rows = [(name, sum(counts)) for name, counts in errors.counts.items()]
    return plot + table("errors", ("error", "responses#"), rows)


def _clients(measured: Measured) -> str:
    clients = measured.requests.clients
    if not clients:
        return _NOTHING
    told = (
        '<p class="soft">The versions each client used, and the ranges that brokers offered it '
        "or others in this traffic.</p>\n"
    )
    ranges = {
        _api(key): ", ".join(f"{low}{_TO}{high}" for low, high in sorted(found))
        for key, found in measured.offered.items()
    }
    rows = [
        (each.software, each.version, each.client_id, len(each.versions), each.requests)
        for each in clients
    ]
    heads = ("software", "version", "client id~", "apis#", "requests#")
    return (
        told
        + table("clients", heads, rows)
        + "".join(_client(number, each, ranges) for number, each in enumerate(clients))
    )


def _client(number: int, client: Client, ranges: dict[str, str]) -> str:
    rows = [
        (api, ", ".join(f"v{version} ({used:,})" for version, used in versions.items()),
         ranges.get(api))
        for api, versions in client.versions.items()
    ]  # fmt: skip
    named = {
        "software_name": client.software,
        "software_version": client.version,
        "client_id": client.client_id,
    }
    heads = ("api", "used (requests)", "offered")
    return details(_who(named), table(f"client-{number}", heads, rows))


def _unsupported(measured: Measured) -> str:
    if not measured.unsupported.rows:
        return _NOTHING
    rows = [
        (moment(row["first_ns"]), row["event"], _api(row["api_key"]), row["api_version"],
         "" if row["lowest"] is None else f"{row['lowest']}{_TO}{row['highest']}", _who(row),
         row["count"])
        for row in measured.unsupported.rows
    ]  # fmt: skip
    heads = ("first (UTC)", "event", "api", "version asked#", "offered#", "client~", "times#")
    return table("unsupported", heads, rows)


def _reassignments(measured: Measured) -> str:
    cut = measured.reassignments
    if not cut.rows:
        return _NOTHING
    outcomes = ", ".join(f"{name}: {count(n)}" for name, n in sorted(measured.outcomes.items()))
    plot = reassignments_plot(cut.rows, measured.requests.last_ns)
    rows = [
        (moment(row["asked_ns"] or row["first_listed_ns"] or row["ended_ns"]),
         f"{row['topic'] or '?'}-{'?' if row['partition'] is None else row['partition']}",
         row["outcome"], _why(row), _brokers(row["before"]), _brokers(row["target"]),
         row["rf_change"], _lasted(row), _who(row) if row["asked_ns"] else "before the capture",
         row["cluster"])
        for row in cut.rows
    ]  # fmt: skip
    heads = (
        "asked (UTC)", "partition", "outcome", "why", "before", "target", "RF change#", "took#",
        "client", "cluster%",
    )  # fmt: skip
    return (
        f'<p id="outcomes">{text(outcomes)}</p>\n'
        + figure("reassignments", plot, "Reassignments over time")
        + table("reassignments", heads, rows)
        + _more(cut)
    )


def _brokers(replicas: list[int] | None) -> str:
    return "" if replicas is None else ", ".join(map(str, replicas))


def _why(row: Row) -> str:
    """The error and the broker's own words, or what shows that it ended."""
    return ": ".join(filter(None, (row["error"], row["error_message"]))) or row["evidence"] or ""


def _lasted(row: Row) -> str:
    if row["asked_ns"] is None or row["ended_ns"] is None:
        return ""
    return duration(row["ended_ns"] - row["asked_ns"])


def _elections(measured: Measured) -> str:
    cut = measured.elections
    if not cut.rows:
        return _NOTHING
    rows = [
        (moment(row["requested_ns"]), row["type"],
         "all" if row["topic"] is None else f"{row['topic']}-{row['partition']}",
         row["error"] if row["answered"] else "not answered", row["error_message"],
         row["client_id"])
        for row in cut.rows
    ]  # fmt: skip
    heads = ("asked (UTC)", "type", "partition", "result", "message~", "client id~")
    return table("elections", heads, rows) + _more(cut)


def _anomalies(measured: Measured) -> str:
    if not measured.anomaly_kinds:
        return _NOTHING
    kinds = [
        (row["kind"], row["count"], row["bytes"], row["missing"]) for row in measured.anomaly_kinds
    ]
    rows = [
        (moment(row["timestamp_ns"]), row["kind"], row["reason"],
         None if row["connection"] is None else f"c{row['connection']}", row["direction"],
         row["offset"], f"{row['capture']}:{row['packet']}")
        for row in measured.anomalies.rows
    ]  # fmt: skip
    heads = ("time (UTC)", "kind", "reason~", "connection", "direction", "offset#", "packet#")
    return (
        table("anomaly-kinds", ("kind", "anomalies#", "bytes#", "bytes missing#"), kinds)
        + "<h3>Each</h3>\n"
        + table("anomalies", heads, rows)
        + _more(measured.anomalies)
    )


def _account(measured: Measured) -> str:
    account = measured.account
    if not account:
        return '<p class="soft">No source was a capture of packets.</p>\n'
    placed = sum(count for what, count in account.items() if what not in ("payload", "missing"))
    agrees = placed == account.get("payload")
    told = (
        f"<p>{count(account.get('payload'))} bytes of TCP payload, {count(placed)} accounted for."
        "</p>\n"
        if agrees
        else f'<p class="bad">{count(account.get("payload"))} bytes of TCP payload, but '
        f"{count(placed)} accounted for.</p>\n"
    )
    told += table("account", ("what", "bytes#"), account.items())
    if not measured.skipped:
        return told
    total = count(sum(measured.skipped.values()))
    told += f"<p>{total} packets carry no TCP that could be read.</p>\n"
    return told + table("skipped", ("packets of", "packets#"), measured.skipped.items())


def _lineage(measured: Measured) -> str:
    rows = [
        (row["capture"], row["source"], row["kind"], row["bytes"], moment(row["first_ns"]),
         moment(row["last_ns"]), row["software"], str(row["schema"]))
        for row in measured.lineage
    ]  # fmt: skip
    heads = (
        "number#", "source", "kind", "bytes read#", "from (UTC)", "to (UTC)", "made by", "schema#",
    )  # fmt: skip
    return table("lineage", heads, rows)


SECTIONS: Final[dict[str, tuple[str, str, Callable[[Measured], str]]]] = {
    "traffic": ("Traffic", "requests", _traffic),
    "latency": ("Latency", "requests", _latency),
    "errors": ("Errors", "requests", _errors),
    "clients": ("Clients", "requests", _clients),
    "unsupported": ("Unsupported versions", "negotiations", _unsupported),
    "reassignments": ("Reassignments", "reassignments", _reassignments),
    "elections": ("Elections", "elections", _elections),
    "network": ("Network", "connections", lambda measured: network_section(measured.network)),
    "anomalies": ("Anomalies", "anomalies", _anomalies),
    "account": ("Byte account", "account", _account),
    "lineage": ("Lineage", "lineage", _lineage),
}
"""By id: the heading, the table it takes, and what makes it."""
