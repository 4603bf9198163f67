"""``kspec fuzz broker``: damaged requests at a broker, or at the mock and Kafka side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click
from rich.console import Console

import kproto
from kproto.client import Connection
from kproto.errors import KprotoError
from kproto.journal import printable
from kproto.schema.versions import Versions
from kspec.clientfuzz.bases import bases_of
from kspec.clientfuzz.brokers.address import Address, parse_address
from kspec.clientfuzz.brokers.exchange import Reply
from kspec.clientfuzz.brokers.run import WAITING, Aimed, Finding, play
from kspec.clientfuzz.decoders.cli import api_key
from kspec.clientfuzz.decoders.show import annotated
from kspec.clientfuzz.progress import Ticker
from kspec.errors import KspecError
from kspec.runner.processes import interruptible

__all__ = ["broker", "run_broker"]

MOST_CAUSES = 40


@click.command("broker")
@click.argument("address")
@click.option("--against", help="HOST:PORT of another; ADDRESS is the mock then, this is Kafka.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--api", "apis", multiple=True, help="An api key or name; several may be given.")
@click.option("--version", "version", type=int, help="This api version alone.")
@click.option("--cases", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--only", type=click.IntRange(min=0), help="The case of this number alone.")
@click.option("--not-loopback", is_flag=True, help="Aim at a broker of another machine.")
@click.option("--known", is_flag=True, help="Show the differences that are expected, too.")
@click.option("--json", "to_json", is_flag=True)
def broker(address: str, **options: Any) -> None:
    """Send damaged requests to the broker at ADDRESS, HOST:PORT, and see that it stays up.

    Exit status 1 where it does not answer a good request any more, where a whole request hangs, or
    where --against does another thing and no expected difference says why.
    """
    run_broker(address=address, **options)


def run_broker(
    *,
    address: str,
    against: str | None,
    seed: int,
    apis: Sequence[str],
    version: int | None,
    cases: int,
    only: int | None,
    not_loopback: bool,
    known: bool,
    to_json: bool,
) -> None:
    """What ``broker`` does; ends by ``sys.exit``."""
    dialect = kproto.dialect("kafka")
    try:
        targets = {"broker": parse_address(address, anywhere=not_loopback)}
        if against is not None:
            targets = {
                "mock": targets["broker"],
                "kafka": parse_address(against, anywhere=not_loopback),
            }
    except KspecError as error:
        raise click.UsageError(str(error)) from None
    keys = [api_key(each) for each in apis]
    first, count = (0, cases) if only is None else (only, 1)
    ticker = Ticker(_so_far)
    aimed: Aimed | None = None
    try:
        aimed = interruptible(_play(dialect, targets, keys, version, seed, count, first, ticker))
    except KprotoError as error:
        raise click.ClickException(printable(str(error))) from None
    finally:  # However it ends: what the whole batches came to is no less true.
        made = ticker.so_far if aimed is None else aimed
        if aimed is None and made is not None:
            click.echo(f"ended before its time: {made.cases} of {count} requests", err=True)
        if made is not None and to_json:
            click.echo(json.dumps(_as_json(made)))
        elif made is not None:
            _show(dialect, made, known or only is not None)
    sys.exit(1 if aimed.findings or aimed.down else 0)


def _so_far(aimed: Aimed) -> str:
    return f"{aimed.cases} requests: {len(aimed.findings)} causes to look at"


async def _play(
    dialect: kproto.Dialect,
    targets: Mapping[str, Address],
    keys: Sequence[int],
    version: int | None,
    seed: int,
    cases: int,
    first: int,
    told: Callable[[Aimed], None],
) -> Aimed:
    served: list[Mapping[int, Versions]] = [await _served(each) for each in targets.values()]
    chosen = [
        base
        for base in bases_of(dialect, keys, "request", version)
        if keys or base.api_key not in WAITING
        if all(base.version in each.get(base.api_key, Versions.NONE) for each in served)
    ]
    if not chosen:
        raise KspecError("no api and version of those asked for is served there")
    return await play(dialect, chosen, targets, seed=seed, cases=cases, first=first, told=told)


async def _served(address: Address) -> Mapping[int, Versions]:
    """Raises KspecError where nothing answers there."""
    try:
        async with await Connection.open(address.host, address.port, timeout=10.0) as connection:
            return dict(connection.peer_versions or {})
    except (OSError, KprotoError) as error:
        raise KspecError(f"{address} does not answer: {error}") from None


def _show(dialect: kproto.Dialect, aimed: Aimed, known: bool) -> None:
    console = Console(soft_wrap=True, highlight=False)
    shown = [*aimed.findings, *(aimed.known if known else [])]
    for finding in shown[:MOST_CAUSES]:
        for line in _lines(dialect, finding, aimed.seed):
            console.print(line, markup=False)
        for text in annotated(dialect, finding.case.base, finding.case.mutation.frame):
            console.print(text)
        console.print()
    if len(shown) > MOST_CAUSES:
        console.print(f"... and {len(shown) - MOST_CAUSES} more causes; --json has all\n")
    rate = aimed.cases / aimed.seconds if aimed.seconds else 0.0
    console.print(
        f"{aimed.cases} requests of seed {aimed.seed} in {aimed.seconds:.1f} s "
        f"({rate:.0f} a second)"
    )
    for name, counts in aimed.became.items():
        told = ", ".join(f"{became} {number}" for became, number in counts.most_common())
        console.print(f"  {name}: {told}")
    if aimed.down is None:
        console.print("  a good request was answered after every batch: stays up")
    else:
        name, numbers = aimed.down
        console.print(
            f"  {name} answers no good request after cases {numbers[0]} to {numbers[-1]}: down"
        )
    explained = sum(each.count for each in aimed.known)
    console.print(
        f"  {len(aimed.findings)} causes to look at, in "
        f"{sum(each.count for each in aimed.findings)} cases; expected differences in {explained}"
    )


def _lines(dialect: kproto.Dialect, finding: Finding, seed: int) -> Iterator[str]:
    base, case = finding.case.base, finding.case
    yield f"{finding.count} x {finding.cause}"
    yield (
        f"  the first: seed {seed}, case {case.number}: {dialect.api(base.api_key).name} request "
        f"v{base.version}, values {base.pattern}"
    )
    yield printable(f"  done to it: {case.mutation.detail}")
    for name, reply in finding.replies.items():
        yield f"  {name:<8} {_told(reply)}"
    if finding.expected is not None:
        yield f"  expected ({finding.expected.id}): {finding.expected.reason}"


def _told(reply: Reply) -> str:
    code = "" if reply.code is None else f", error {reply.code}"
    return f"{reply.became}{code}"


def _as_json(aimed: Aimed) -> dict[str, Any]:
    return {
        "seed": aimed.seed,
        "cases": aimed.cases,
        "seconds": round(aimed.seconds, 3),
        "became": {name: dict(counts) for name, counts in aimed.became.items()},
        "down": None if aimed.down is None else [aimed.down[0], list(aimed.down[1])],
        "findings": [_finding(each) for each in aimed.findings],
        "known": [_finding(each) for each in aimed.known],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "what": finding.cause.what,
        "api_key": finding.cause.api_key,
        "version": finding.case.base.version,
        "kind": finding.cause.kind,
        "path": finding.cause.shape,
        "count": finding.count,
        "case": finding.case.number,
        "detail": finding.case.mutation.detail,
        "frame": finding.case.mutation.frame.hex(),
        "replies": {name: _told(reply) for name, reply in finding.replies.items()},
        "expected": None if finding.expected is None else finding.expected.id,
    }
