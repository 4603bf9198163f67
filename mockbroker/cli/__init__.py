"""The ``mockbroker`` command: ``serve``, ``proxy``, ``ctl``, ``profiles``, ``scenario`` and
``fuzz``.

``kproto.cli.run`` handles errors and exit codes. ``fuzz`` belongs to kspec, which is built on this
package, so it is imported by name when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from kproto.cli.program import program
from kproto.cli.run import run
from mockbroker.cli.collector import collect_seldom

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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    collect_seldom()
    run(cli, "mockbroker", arguments)
