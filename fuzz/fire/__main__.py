"""``python -m fuzz.fire``: run a trial and report it. The exit status is 1 on any violation.

Linux only, as a process's resources are read from /proc.
"""

from __future__ import annotations

import asyncio
import sys
import time

import click

from fuzz.fire.trial import Outcome, Settings, under_fire
from kproto.cli.terminal import echo
from mockbroker.profiles import DEFAULT_PROFILE

_MEBIBYTE = 1024 * 1024


@click.command()
@click.option("--frames", type=click.IntRange(1), default=1_000_000, show_default=True,
              help="Number of malformed frames, each of which must be rejected.")  # fmt: skip
@click.option("--connections", type=click.IntRange(1, 900), default=300, show_default=True,
              help="Number of sockets open at a time.")  # fmt: skip
@click.option("--senders", type=click.IntRange(1, 16), default=2, show_default=True,
              help="Number of sender processes.")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--profile", default=DEFAULT_PROFILE, show_default=True)
@click.option("--tls", is_flag=True, help="Send to TLS listeners, mostly plaintext.")
@click.option("--sasl", is_flag=True, help="Send to SASL listeners, including tokens.")
@click.option("--messages", type=click.IntRange(1),
              help="Use the vectors of only this many requests, for a quicker start.")  # fmt: skip
@click.option("--most-memory", type=click.IntRange(1), default=512, show_default=True,
              help="Memory limit of the server in MiB.")  # fmt: skip
def main(
    frames: int,
    connections: int,
    senders: int,
    seed: int,
    profile: str,
    tls: bool,
    sasl: bool,
    messages: int | None,
    most_memory: int,
) -> None:
    settings = Settings(
        frames=frames, connections=connections, seed=seed, profile=profile, tls=tls, sasl=sasl,
        senders=senders, messages=messages, most_memory=most_memory * _MEBIBYTE,
    )  # fmt: skip
    began = time.monotonic()
    last = began

    def on_progress(outcome: Outcome) -> None:
        nonlocal last
        if time.monotonic() - last >= 30:
            last = time.monotonic()
            echo(f"{last - began:6.0f} s  {outcome.malformed.total()} rejected", err=True)

    outcome = asyncio.run(under_fire(settings, on_progress))
    _print(settings, outcome, time.monotonic() - began)
    sys.exit(1 if outcome.violations else 0)


def _print(settings: Settings, outcome: Outcome, seconds: float) -> None:
    echo(f"seed {settings.seed}, {settings.profile}, {seconds:.0f} s")
    echo(f"malformed frames, each rejected: {outcome.malformed.total()}")
    for kind, count in sorted(outcome.malformed.items()):
        echo(f"  {kind:24} {count}")
    for kind, count in sorted(outcome.other.items()):
        echo(f"{kind}: {count}")
    for kind, count in sorted(outcome.did.items()):
        echo(f"{kind}: {count}")
    for way, sent in outcome.sent.items():
        echo(f"probes, {way}: {sent} sent, {outcome.correct[way]} answered correctly")
    echo(
        f"server memory: {_mebibytes(outcome.memory_before)} before, "
        f"{_mebibytes(outcome.memory_at_a_quarter)} after a quarter, "
        f"{_mebibytes(outcome.memory_after)} after, {_mebibytes(outcome.memory_peak)} peak"
    )
    echo(
        f"server files: {outcome.files_before} before, {outcome.files_peak} peak, "
        f"{outcome.files_after} after"
    )
    echo(f"server CPU share when idle: {outcome.quiet_share:.1%}")
    for violation in outcome.violations:
        echo(f"VIOLATION {violation}")


def _mebibytes(count: int) -> str:
    return f"{count / _MEBIBYTE:.0f} MiB"


if __name__ == "__main__":
    main()
