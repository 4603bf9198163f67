"""The options of ``mockbroker serve`` that answer from a transcript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from cloup import option_group

from kproto.errors import KprotoError
from kproto.os_errors import os_error_text

if TYPE_CHECKING:
    from mockbroker.running.mock_cluster import MockCluster

__all__ = ["replay_into", "replay_options"]


replay_options = option_group(
    "Replay",
    click.option(
        "--replay",
        metavar="FILE",
        help="Answer from a transcript that `wiredump extract` has written. Requests without a "
        "recorded answer are answered as usual.",
    ),
    click.option("--replay-latency", is_flag=True, help="Repeat the recorded response times."),
)


def replay_into(mock: MockCluster, options: dict[str, Any]) -> None:
    """Raises click.UsageError for a file that is not a transcript."""
    file = options["replay"]
    if file is None:
        if options["replay_latency"]:
            raise click.UsageError("--replay-latency needs --replay")
        return
    from kproto.transcript import read_transcript

    try:
        with Path(file).open(encoding="utf-8", errors="surrogateescape") as lines:
            transcript = read_transcript(lines)
    except OSError as error:
        raise click.UsageError(f"--replay: {os_error_text(error)}") from None
    except KprotoError as error:
        raise click.UsageError(f"--replay {file}: {error}") from None
    mock.replay(transcript, latency=options["replay_latency"])
