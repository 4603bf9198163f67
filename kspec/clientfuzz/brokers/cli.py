"""``mockbroker fuzz broker``: mutated requests to a broker, or to the mock and Kafka together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

import kproto
from kproto.cli.console import Console
from kproto.cli.terminal import echo, echo_json
from kproto.client import Connection
from kproto.errors import KprotoError
from kproto.schema.versions import Versions
from kspec.clientfuzz.bases import bases_of
from kspec.clientfuzz.brokers.address import Address, parse_address
from kspec.clientfuzz.brokers.exchange import Reply
from kspec.clientfuzz.brokers.run import EXCLUDED_APIS, BrokerComparison, play
from kspec.clientfuzz.comparison import Finding
from kspec.clientfuzz.comparison_report import finding_document, print_findings, summary
from kspec.clientfuzz.options import api_key, chosen_dialect, frame_options
from kspec.clientfuzz.progress import Progress
from kspec.errors import KspecError
from kspec.runner.processes import interruptible

__all__ = ["broker"]


@click.command("broker")
@click.argument("address")
@click.option(
    "--against",
    metavar="HOST:PORT",
    help="Compare with the Kafka broker at this address; ADDRESS is then the mock.",
)
@frame_options(cases=500)
@click.option("--not-loopback", is_flag=True,
              help="Allow a broker on another machine.")  # fmt: skip
def broker(
    address: str,
    against: str | None,
    seed: int,
    apis: Sequence[str],
    dialect_name: str,
    version: int | None,
    cases: int,
    only: int | None,
    not_loopback: bool,
    known: bool,
    to_json: bool,
) -> None:
    """Send mutated requests to the broker at ADDRESS (HOST:PORT) and check that it stays up.

    The exit status is 1 if the broker stops answering valid requests, if a complete request hangs,
    or if the broker given by --against behaves differently and no expected difference explains it.
    """
    try:
        targets = {"broker": parse_address(address, anywhere=not_loopback)}
        if against is not None:
            targets = {
                "mock": targets["broker"],
                "kafka": parse_address(against, anywhere=not_loopback),
            }
    except KspecError as error:
        raise click.UsageError(str(error)) from None
    dialect = chosen_dialect(dialect_name)
    keys = [api_key(each, dialect) for each in apis]
    first, count = (0, cases) if only is None else (only, 1)
    progress = Progress(_progress_line)
    comparison: BrokerComparison | None = None
    try:
        comparison = interruptible(
            _play(dialect, targets, keys, version, seed, count, first, progress)
        )
    except KprotoError as error:
        raise click.ClickException(str(error)) from None
    finally:  # Whole batches are reported even if the run is interrupted.
        reported = progress.latest if comparison is None else comparison
        if comparison is None and reported is not None:
            echo(f"interrupted after {reported.cases} of {count} requests", err=True)
        if reported is not None and to_json:
            echo_json(_document(reported))
        elif reported is not None:
            _show(dialect, reported, known or only is not None)
    sys.exit(1 if comparison.findings or comparison.down else 0)


def _progress_line(comparison: BrokerComparison) -> str:
    return f"{comparison.cases} requests: {len(comparison.findings)} unexpected causes"


async def _play(
    dialect: kproto.Dialect,
    targets: Mapping[str, Address],
    keys: Sequence[int],
    version: int | None,
    seed: int,
    cases: int,
    first: int,
    on_batch: Callable[[BrokerComparison], None],
) -> BrokerComparison:
    served: list[Mapping[int, Versions]] = [await _served(each) for each in targets.values()]
    chosen = [
        base
        for base in bases_of(dialect, keys, "request", version)
        if keys or base.api_key not in EXCLUDED_APIS
        if all(base.version in each.get(base.api_key, Versions.NONE) for each in served)
    ]
    if not chosen:
        raise KspecError("the broker serves none of the requested API versions")
    return await play(
        dialect, chosen, targets, seed=seed, cases=cases, first=first, on_batch=on_batch
    )


async def _served(address: Address) -> Mapping[int, Versions]:
    """Return the API versions a broker advertises. Raises KspecError if it does not answer."""
    try:
        async with await Connection.open(address.host, address.port, timeout=10.0) as connection:
            return dict(connection.peer_versions or {})
    except (OSError, KprotoError) as error:
        raise KspecError(f"{address} does not answer: {error}") from None


def _show(dialect: kproto.Dialect, comparison: BrokerComparison, known: bool) -> None:
    console = Console(soft_wrap=True)
    print_findings(console, dialect, comparison, _describe, known=known)
    console.print(summary(comparison))
    for name, counts in comparison.outcomes.items():
        text = ", ".join(f"{outcome} {number}" for outcome, number in counts.most_common())
        console.print(f"  {name}: {text}")
    if comparison.down is None:
        console.print("  stays up: a valid request was answered after every batch")
    else:
        name, numbers = comparison.down
        console.print(
            f"  down: {name} answers no valid request after cases {numbers[0]} to {numbers[-1]}"
        )
    console.print(
        f"  {len(comparison.findings)} unexpected causes in "
        f"{sum(each.count for each in comparison.findings)} cases; expected differences in "
        f"{sum(each.count for each in comparison.known)}"
    )


def _describe(reply: Reply) -> str:
    code = "" if reply.code is None else f", error {reply.code}"
    return f"{reply.outcome}{code}"


def _document(comparison: BrokerComparison) -> dict[str, Any]:
    return {
        "seed": comparison.seed,
        "cases": comparison.cases,
        "seconds": round(comparison.seconds, 3),
        "became": {name: dict(counts) for name, counts in comparison.outcomes.items()},
        "down": None if comparison.down is None else [comparison.down[0], list(comparison.down[1])],
        "findings": [_finding(each) for each in comparison.findings],
        "known": [_finding(each) for each in comparison.known],
    }


def _finding(finding: Finding[Reply]) -> dict[str, Any]:
    return {
        "what": finding.cause.what,
        **finding_document(finding),
        "replies": {name: _describe(reply) for name, reply in finding.results.items()},
        "expected": finding.expected[0].id if finding.expected else None,
    }
