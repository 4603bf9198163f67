"""Long runs: ``python -m fuzz.stateful --seconds 900 --seed 1``.

Takes the profiles in turn, in an order given by the seed, with a batch of examples each, until the
time is up. Prints the number of steps, how often each rule had an effect, and which rows of the
controllers' tables were used. A failure is minimised and printed, followed by the command that
reproduces it, and ends the run with status 1.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import traceback
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz.stateful.machine import ClusterMachine, machine_of
from fuzz.stateful.rows import RowCounts
from fuzz.stateful.transaction_rules import data_machine_of, data_profiles
from mockbroker.profiles import all_profiles, profile


def main(arguments: list[str] | None = None) -> int:
    """Return 0, or 1 if an invariant does not hold."""
    options = _parser().parse_args(arguments)
    logging.getLogger("mockbroker").setLevel(logging.CRITICAL)
    known = [profile(name) for name in options.profile] if options.profile else all_profiles()
    if options.data and not options.profile:
        known = data_profiles()
    random.Random(options.seed).shuffle(known)
    made = data_machine_of if options.data else machine_of
    machines = {each.name: made(each) for each in known}
    tally: Counter[str] = Counter()
    failed: list[str] = []
    with RowCounts() as rows:
        until, batch = time.monotonic() + options.seconds, 0
        while (options.keep_going or not failed) and time.monotonic() < until:
            name, number = list(machines)[batch % len(machines)], options.seed + batch
            shrink = not options.keep_going
            if not run(machines[name], number, options.examples, options.length, shrink=shrink):
                failed.append(
                    f"python -m fuzz.stateful {'--data ' if options.data else ''}"
                    f"--profile {name} --seed {number} "
                    f"--examples {options.examples} --length {options.length}"
                )
            batch += 1
    for machine in machines.values():
        tally.update(machine.tally)
    _report(tally, rows, batch, verbose=options.verbose)
    for each in failed:
        print(f"failed: {each}", file=sys.stderr)
    return int(bool(failed))


def run(
    machine: type[ClusterMachine], number: int, examples: int, length: int, *, shrink: bool
) -> bool:
    """Run one batch and return whether everything held. Hypothesis prints failures."""
    seeded = seed(number)(type(machine.__name__, (machine,), {}))
    try:
        run_state_machine_as_test(
            seeded,
            settings=settings(
                max_examples=examples,
                stateful_step_count=length,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        print("".join(traceback.format_tb(error.__traceback__)[-3:]), file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(note, file=sys.stderr)
        return False
    return True


def _report(tally: Counter[str], rows: RowCounts, batches: int, *, verbose: bool) -> None:
    steps = tally.pop("steps", 0)
    print(f"{batches} batches, {steps} steps")
    for name, count in sorted(tally.items()):
        print(f"{count:8} {name}")
    taken = len(rows.places) - len(rows.untaken)
    print(f"{taken} of {len(rows.places)} rows of the controllers' tables used")
    for line in rows.lines() if verbose else [f"   never {each}" for each in rows.untaken]:
        print(line)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz.stateful", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="approximate duration in seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="append", help="profile to run; repeat it for several")
    parser.add_argument(
        "--data", action="store_true", help="producers, consumers and groups join in"
    )
    parser.add_argument("--examples", type=int, default=10, help="a batch")
    parser.add_argument("--length", type=int, default=40, help="number of rules per example")
    parser.add_argument(
        "--keep-going", action="store_true", help="continue after a failure, without minimising it"
    )
    parser.add_argument("--verbose", action="store_true", help="print every row's count")
    return parser


if __name__ == "__main__":
    sys.exit(main())
