"""``mockbroker fuzz diff``: the same mutated frames decoded by many decoders."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

import kproto
from kproto.cli.console import Console
from kproto.cli.terminal import echo, echo_json
from kproto.errors import AbsentError, KprotoError
from kproto.oracle.oracle import RELEASES
from kspec.client_catalog import CLIENTS, Client
from kspec.client_catalog import client as client_named
from kspec.clientfuzz.bases import Base, bases_of
from kspec.clientfuzz.comparison import Finding
from kspec.clientfuzz.comparison_report import annotated, finding_document, print_findings, summary
from kspec.clientfuzz.decoders.calls import CALLS, base_of
from kspec.clientfuzz.decoders.client_decoder import ClientDecoder
from kspec.clientfuzz.decoders.codecs import Decoder, codecs
from kspec.clientfuzz.decoders.kafka_classes import KafkaClasses
from kspec.clientfuzz.decoders.program_decoder import ProgramDecoder
from kspec.clientfuzz.decoders.run import DecoderComparison, play
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import case_of
from kspec.clientfuzz.options import api_key, chosen_dialect, frame_options, split_names
from kspec.clientfuzz.progress import Progress
from kspec.runner import toolchains
from kspec.runner.clients import words_of
from kspec.runner.install import install
from kspec.runner.processes import Interrupted, interrupted

__all__ = ["diff"]

_LONGEST: Final = 160


@click.command("diff")
@frame_options(cases=1000)
@click.option(
    "--request",
    is_flag=True,
    help="Mutate requests instead of responses. Clients cannot take part.",
)
@click.option(
    "--clients",
    default="",
    metavar="NAME,...",
    help="Real clients to include; `kspec clients` lists them.",
)
@click.option(
    "--decoder",
    "programs",
    multiple=True,
    metavar="CMD",
    help="A decoder of your own: a program; see `kspec help fuzz-differential`.",
)
@click.option("--kafka", default=",".join(RELEASES), show_default=True, metavar="RELEASE,...",
              help="Kafka releases whose own classes take part; empty for none.")  # fmt: skip
def diff(
    seed: int,
    apis: Sequence[str],
    dialect_name: str,
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
    """Give the same mutated frames to many decoders and show where they disagree.

    The decoders are kproto's engines and reference codec, Kafka's own classes and real clients. The
    exit status is 1 if an unexpected disagreement was found.
    """
    dialect = chosen_dialect(dialect_name)
    keys = [api_key(each, dialect) for each in apis]
    names = split_names(clients)
    if names and request:
        raise click.UsageError("--request: clients decode responses only")
    if names and (len(keys) != 1 or keys[0] not in CALLS):
        raise click.UsageError(
            f"--clients needs exactly one --api that clients can call: {sorted(CALLS)}"
        )
    chosen: list[Base]
    try:
        if names:
            chosen = [base_of(dialect, keys[0], version)]
        else:
            chosen = bases_of(dialect, keys, "request" if request else "response", version)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    first, count = (0, cases) if only is None else (only, 1)
    progress = Progress(_progress_line)
    ended: Interrupted | None = None
    try:
        with (
            interrupted(),
            _decoders(dialect, chosen[0], names, split_names(kafka), programs) as decoders,
        ):
            comparison = play(
                dialect, chosen, decoders, seed=seed, cases=count, first=first,
                batch=25 if names else 250, on_batch=progress,
            )  # fmt: skip
    except Interrupted as signal:  # whole batches are reported
        ended, comparison = signal, progress.latest or DecoderComparison(seed)
        echo(f"interrupted by {ended} after {comparison.cases} of {count} cases", err=True)
    if to_json:
        echo_json(_document(comparison))
    else:
        _show(dialect, chosen, comparison, known=known, only=None if ended else only)
    sys.exit(ended.status if ended else 1 if comparison.findings else 0)


def _progress_line(comparison: DecoderComparison) -> str:
    return (
        f"{comparison.cases} cases: {comparison.agreed} without a disagreement, "
        f"{len(comparison.findings)} unexpected causes"
    )


def _show(
    dialect: kproto.Dialect,
    chosen: Sequence[Base],
    comparison: DecoderComparison,
    *,
    known: bool,
    only: int | None,
) -> None:
    """``only`` is the number of the only case that was played."""
    console = Console(soft_wrap=True)
    shown = print_findings(console, dialect, comparison, _describe, known=known or only is not None)
    if only is not None and not shown:
        case = case_of(dialect, chosen, comparison.seed, only)
        console.print(f"all agree: {case.mutation.detail}")
        for line in annotated(dialect, case.base, case.mutation.frame):
            console.print(line)
    console.print(f"{summary(comparison)}: {comparison.agreed} without a disagreement")
    for name, rows in sorted(comparison.rows.items(), key=lambda item: -item[1]):
        console.print(f"  expected {rows:>6}  {name}")
    total = sum(each.count for each in comparison.findings)
    console.print(f"{len(comparison.findings)} unexpected causes in {total} cases")


def _describe(verdict: Verdict) -> str:
    value = verdict.value if len(verdict.value) <= _LONGEST else verdict.value[: _LONGEST - 1] + "…"
    text = "; ".join(part for part in (value, verdict.text) if part)
    return f"{verdict.outcome}{': ' if text else ''}{text}"


def _document(comparison: DecoderComparison) -> dict[str, Any]:
    return {
        "seed": comparison.seed,
        "cases": comparison.cases,
        "agreed": comparison.agreed,
        "seconds": round(comparison.seconds, 3),
        "expected": comparison.rows,
        "findings": [_finding(each) for each in comparison.findings],
        "known": [_finding(each) for each in comparison.known],
    }


def _finding(finding: Finding[Verdict]) -> dict[str, Any]:
    return {
        "who": finding.cause.what,
        **finding_document(finding),
        "direction": finding.case.base.direction,
        "verdicts": {who: verdict._asdict() for who, verdict in finding.results.items()},
        "expected": [row.id for row in finding.expected],
    }


@contextmanager
def _decoders(
    dialect: kproto.Dialect,
    base: Base,
    clients: Sequence[str],
    releases: Sequence[str],
    programs: Sequence[str],
) -> Iterator[list[Decoder]]:
    """Start the decoders and stop them on exit. Those this machine cannot run are reported."""
    decoders: list[Decoder] = [*codecs(dialect)]
    chosen = [_client(name) for name in clients]
    try:
        missing = toolchains.missing(["java", "maven"]) if releases else []
        for problem in missing:
            echo(f"without Kafka's classes: {problem}", err=True)
        for release in [] if missing else releases:
            if release not in RELEASES:
                raise click.UsageError(f"--kafka: {release} is not one of {', '.join(RELEASES)}")
            decoders.append(KafkaClasses(release, dialect))
        for number, command in enumerate(programs, 1):
            label = "decoder" if len(programs) == 1 else f"decoder {number}"
            decoders.append(ProgramDecoder(label, list(words_of("--decoder", command)), dialect))
        for client in chosen:
            try:
                launch = install(client)
            except AbsentError as error:
                echo(f"without {client.name}: {error}", err=True)
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
        raise click.UsageError(f"{name!r} is not a known client; known are {known}") from None
