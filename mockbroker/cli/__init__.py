"""The ``mockbroker`` command: ``serve``, ``proxy``, ``ctl``, ``profiles``, ``scenario`` and
``fuzz``.

``kproto.cli.run`` handles errors and exit codes. ``fuzz`` belongs to kspec, which is built on this
package, so it is imported by name when it is used.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Final, NoReturn

from kproto.cli.program import program
from kproto.cli.run import run

__all__ = ["cli", "main"]

cli = program(
    "mockbroker",
    "A mock Kafka cluster: real clients connect, negotiate and reassign partitions.",
    {
        "ctl": "mockbroker.cli.ctl:ctl",
        "fuzz": "kspec.clientfuzz.cli:fuzz",
        "profiles": "mockbroker.cli.profiles:profiles",
        "proxy": "mockbroker.cli.proxy:proxy",
        "scenario": "mockbroker.cli.scenario:scenario",
        "serve": "mockbroker.cli.serve:serve",
    },
)


_COLLECT_AFTER: Final = 20_000
"""New objects after which the garbage collector runs. An import makes thousands that all stay: with
Python's 700 a tenth of the time of a start went into collections."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    run(cli, "mockbroker", arguments)
