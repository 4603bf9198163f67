"""The differential's command: who takes part, how many cases, and what is printed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console

import kproto
from kproto.errors import KprotoError
from kspec.catalog import CLIENTS, Client
from kspec.catalog import client as client_named
from kspec.clientfuzz.bases import Base, bases_of
from kspec.clientfuzz.decoders.calls import CALLS, base_of
from kspec.clientfuzz.decoders.client_decoder import ClientDecoder
from kspec.clientfuzz.decoders.codecs import Decoder, codecs
from kspec.clientfuzz.decoders.kafka_classes import KafkaClasses
from kspec.clientfuzz.decoders.program_decoder import ProgramDecoder
from kspec.clientfuzz.decoders.run import Outcome, play
from kspec.clientfuzz.decoders.show import annotated, as_json, finding_lines, summary_lines
from kspec.clientfuzz.frame_cases import case_of
from kspec.clientfuzz.progress import Ticker
from kspec.errors import AbsentError
from kspec.oracle.oracle import RELEASES
from kspec.reading import api_key as key_of
from kspec.runner import toolchains
from kspec.runner.install import install
from kspec.runner.processes import Interrupted, interrupted

__all__ = ["api_key", "diff", "run_diff"]

MOST_CAUSES = 40


@click.command("diff")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--api", "apis", multiple=True, help="An api key or name; several may be given.")
@click.option("--version", "version", type=int, help="This api version alone.")
@click.option("--request", is_flag=True, help="Requests; responses otherwise. Codecs only.")
@click.option("--cases", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--only", type=click.IntRange(min=0), help="The case of this number alone.")
@click.option("--clients", default="", help="Real clients, comma-separated; see `kspec clients`.")
@click.option("--decoder", "programs", multiple=True, metavar="CMD",
              help="A decoder of yours: a program of docs/fuzz-differential.md.")  # fmt: skip
@click.option("--kafka", default=",".join(RELEASES), show_default=True,
              help="Releases whose own classes take part; empty for none.")  # fmt: skip
@click.option("--known", is_flag=True, help="Show the causes that are expected, too.")
@click.option("--json", "to_json", is_flag=True)
def diff(
    seed: int,
    apis: Sequence[str],
    version: int | None,
    request: bool,
    cases: int,
    only: int | None,
    clients: str,
    kafka: str,
    programs: Sequence[str],
    known: bool,
    to_json: bool,
) -> None:
    """Give the same damaged frames to many decoders, and show where they disagree.

    Our own engines and the reference codec, Kafka's own classes, and real clients. Exit status 1
    where a disagreement is not among the expected ones.
    """
    run_diff(
        seed=seed, apis=apis, version=version, request=request, cases=cases, only=only,
        clients=_names(clients), releases=_names(kafka), programs=programs,
        known=known, to_json=to_json,
    )  # fmt: skip


def run_diff(
    *,
    seed: int,
    apis: Sequence[str],
    version: int | None,
    request: bool,
    cases: int,
    only: int | None,
    clients: Sequence[str],
    releases: Sequence[str],
    programs: Sequence[str],
    known: bool,
    to_json: bool,
) -> None:
    """What ``diff`` does; ends by ``sys.exit``."""
    dialect = kproto.dialect("kafka")
    keys = [api_key(each) for each in apis]
    if clients and request:
        raise click.UsageError("--request: clients decode responses, and not requests")
    if clients and (len(keys) != 1 or keys[0] not in CALLS):
        raise click.UsageError(
            f"--clients: name one --api of those a client has a call for: {sorted(CALLS)}"
        )
    chosen: list[Base]
    try:
        if clients:
            chosen = [base_of(dialect, keys[0], version)]
        else:
            chosen = bases_of(dialect, keys, "request" if request else "response", version)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    first, count = (0, cases) if only is None else (only, 1)
    ticker = Ticker(_so_far)
    ended: Interrupted | None = None
    try:
        with (
            interrupted(),
            _taking_part(dialect, chosen[0], clients, releases, programs) as decoders,
        ):
            outcome = play(
                dialect, chosen, decoders, seed=seed, cases=count, first=first,
                batch=25 if clients else 250, told=ticker,
            )  # fmt: skip
    except Interrupted as signal:
        # What the last whole batch came to is no less true.
        ended, outcome = signal, ticker.so_far or Outcome(seed)
        click.echo(f"ended before its time: {ended}, {outcome.cases} of {count} cases", err=True)
    if to_json:
        click.echo(json.dumps(as_json(outcome)))
    else:
        _show(dialect, chosen, outcome, known=known, only=None if ended else only)
    sys.exit(ended.status if ended else 1 if outcome.findings else 0)


def _so_far(outcome: Outcome) -> str:
    return f"{outcome.cases} cases: {outcome.agreed} agreed, {len(outcome.findings)} causes"


def _show(
    dialect: kproto.Dialect,
    chosen: Sequence[Base],
    outcome: Outcome,
    *,
    known: bool,
    only: int | None,
) -> None:
    """``only``: the number of the single case that was played."""
    console = Console(soft_wrap=True, highlight=False)
    shown = [*outcome.findings, *(outcome.known if known or only is not None else [])]
    for finding in shown[:MOST_CAUSES]:
        for line in finding_lines(dialect, finding, outcome.seed):
            console.print(line)
        console.print()
    if only is not None and not shown:
        case = case_of(dialect, chosen, outcome.seed, only)
        console.print(f"all agree: {case.mutation.detail}", markup=False)
        for line in annotated(dialect, case.base, case.mutation.frame):
            console.print(line)
    if len(shown) > MOST_CAUSES:
        console.print(f"... and {len(shown) - MOST_CAUSES} more causes; --json has all\n")
    for text in summary_lines(outcome):
        console.print(text, markup=False)


@contextmanager
def _taking_part(
    dialect: kproto.Dialect,
    base: Base,
    clients: Sequence[str],
    releases: Sequence[str],
    programs: Sequence[str],
) -> Iterator[list[Decoder]]:
    """Started, and ended whatever happens. What this machine cannot have is said and left out."""
    decoders: list[Decoder] = [*codecs(dialect)]
    chosen = [_client(name) for name in clients]
    try:
        missing = toolchains.missing(["java", "maven"]) if releases else []
        for problem in missing:
            click.echo(f"without Kafka's classes: {problem}", err=True)
        for release in [] if missing else releases:
            if release not in RELEASES:
                raise click.UsageError(f"--kafka: {release} is none of {', '.join(RELEASES)}")
            decoders.append(KafkaClasses(release, dialect))
        for number, command in enumerate(programs, 1):
            label = "decoder" if len(programs) == 1 else f"decoder {number}"
            decoders.append(ProgramDecoder(label, shlex.split(command), dialect))
        for client in chosen:
            try:
                launch = install(client)
            except AbsentError as error:
                click.echo(f"without {client.name}: {error}", err=True)
                continue
            decoders.append(ClientDecoder(client.name, launch, base.api_key, base.version))
        yield decoders
    finally:
        for decoder in decoders:
            decoder.close()


def _client(name: str) -> Client:
    try:
        return client_named(name)
    except KeyError:
        known = ", ".join(each.name for each in CLIENTS)
        raise click.UsageError(f"no client is {name!r}; there are {known}") from None


def api_key(text: str) -> int:
    found = key_of(int(text) if text.isdigit() else text)
    if found is None:
        raise click.UsageError(f"--api: {text!r} is no api of Kafka's")
    return found


def _names(text: str) -> list[str]:
    return [part for part in (each.strip() for each in text.split(",")) if part]
