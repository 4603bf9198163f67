"""``python -m fuzz.planted --seconds 600``: measure which planted bugs are found, and how soon.

The exit status is 1 if fewer than eight of ten are found in the client or in the decoder, or if
anything is found in a sample without a bug.
"""

from __future__ import annotations

import sys

import click

from fuzz.planted.run import BUGS, NEVER, Hunt, Sample, hunt, hunts
from kproto.cli.terminal import echo

ENOUGH = 8
SAMPLES: tuple[Sample, ...] = ("decoder", "client")


@click.command()
@click.option(
    "--seconds", type=float, default=600.0, show_default=True, help="Time for each bug, in seconds."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--sample", "samples", type=click.Choice(SAMPLES), multiple=True,
              help="Run only this sample.")  # fmt: skip
@click.option("--right", type=int, default=300, show_default=True,
              help="Number of cases for the samples without a bug.")  # fmt: skip
def main(seconds: float, seed: int, samples: tuple[Sample, ...], right: int) -> None:
    failed = False
    for sample in samples or SAMPLES:
        calm = hunt(sample, 0, seed=seed, cases=right, seconds=seconds)
        echo(f"{sample} without a bug: {calm.how or 'nothing found'} in {calm.cases} cases")
        found = 0
        for each in hunts(sample, seed=seed, cases=NEVER, seconds=seconds):
            found += each.found
            echo(_line(each))
        echo(f"{sample}: {found} of {len(BUGS[sample])} found")
        echo()
        failed |= calm.found or found < ENOUGH
    sys.exit(failed)


def _line(each: Hunt) -> str:
    about = BUGS[each.sample][each.bug]
    text = f"case {each.cases}, {each.seconds:.1f} s: {each.how}" if each.found else "NOT FOUND"
    return f"  {each.bug:>2} {about}\n     {text}"


if __name__ == "__main__":
    main()
