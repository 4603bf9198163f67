"""``wiredump spark --follow``: its options, its progress, and how to stop it."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kproto.cli.outputs import OutputFile
from kproto.cli.terminal import echo
from kproto.durations import DurationError, parse_duration
from wiredump.cli.tables_folder import TablesFolder
from wiredump.tables.making import Made

if TYPE_CHECKING:
    from wiredump.spark.connections import Options
    from wiredump.spark.progress import Follower
    from wiredump.spark.streaming import Stream

__all__ = ["follow", "follow_options", "seconds", "stopping", "stream_of"]

_BATCH_BYTES: Final = 1 << 30
_LOOK: Final = 0.2
"""Seconds between two looks at a query."""
_STARTS: Final = 4
"""Of a query, if Spark's Python process does not start in time."""
CommandT = TypeVar("CommandT", bound=Callable[..., int | None])


def seconds(ctx: click.Context, option: click.Parameter, value: str) -> float:
    """Parse a duration: 500ms, 10s, 2m, 1h. Raises click.BadParameter."""
    try:
        return parse_duration(value) / 10**9
    except DurationError as error:
        raise click.BadParameter(str(error), ctx, option) from None


def _idle(ctx: click.Context, option: click.Parameter, value: str) -> int | None:
    """Parse a duration in nanoseconds, or ``off``."""
    return None if value == "off" else int(seconds(ctx, option, value) * 10**9)


_OPTIONS: Final = (
    click.option("--follow", metavar="DIR|GLOB",
                 help="Read rotating captures as they are closed, instead of CAPTUREs: "
                      "those in a folder, which may be empty, or of a pattern."),
    click.option("--checkpoint", type=TablesFolder(), metavar="DIR",
                 help="With --follow: folder for the progress, a path or a URI that Spark can "
                      "write to, from which another run continues."),
    click.option("--state", type=TablesFolder(), metavar="DIR",
                 help="With --follow: folder for open connections, a path or a URI, if not in "
                      "that of --checkpoint."),
    click.option("--trigger", metavar="DURATION", callback=seconds, default="10s",
                 show_default=True,
                 help="With --follow: how often to look for files, a number and a unit: 500ms, "
                      "10s, 2m, 1h."),
    click.option("--available-now", is_flag=True,
                 help="With --follow: read the files that are complete, bring the tables that "
                      "depend on all of them up to date, and exit."),
    click.option("--end", is_flag=True,
                 help="With --follow: also read the newest file, close what is open, and end the "
                      "stream for good."),
    click.option("--max-files", type=click.IntRange(1), help="With --follow: files in one batch."),
    click.option("--max-bytes", type=click.IntRange(1), default=_BATCH_BYTES, show_default=True,
                 help="With --follow: size of the files in one batch."),
    click.option("--start-after", metavar="FILE",
                 help="With --follow: leave out this file and those before it."),
    click.option("--idle", "idle_ns", metavar="DURATION|off", callback=_idle, default="1h",
                 show_default=True,
                 help="With --follow: a connection without a packet for so long, by the times of "
                      "packets, has ended."),
    click.option("--progress", type=OutputFile(),
                 metavar="FILE|-", default="-",
                 show_default=True,
                 help="With --follow: append a line of JSON for each batch to a file; - is "
                      "standard error."),
)  # fmt: skip


def follow_options(command: CommandT) -> CommandT:
    """Add the options of ``--follow``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def stream_of(options: Options, how: dict[str, Any]) -> Stream:
    """Return the stream that the options describe."""
    from wiredump.spark.streaming import Stream

    return Stream(
        where=how["follow"], checkpoint=how["checkpoint"], state=how["state"], options=options,
        partitions=how["partitions"], split_bytes=how["split_bytes"],
        max_files=how["max_files"], max_bytes=how["max_bytes"], idle_ns=how["idle_ns"],
        start_after=how["start_after"], mode=how["mode"], closed=how["end"],
        on_bad_file=how["on_bad_file"], layout=how["layout"],
    )  # fmt: skip


def follow(spark: Any, options: Options, how: dict[str, Any], say: Callable[[str], object]) -> Made:
    """Run a query until it ends, or until it is to stop, and complete the tables. Raises the
    KprotoError that ended the query, or what Spark raises."""
    from wiredump.spark.progress import Follower
    from wiredump.spark.session import is_starved
    from wiredump.spark.stream_folder import StreamFolder
    from wiredump.spark.streaming import cause_of

    stream = stream_of(options, how)
    first = StreamFolder(stream.folder).batches
    bad: dict[str, str] = {}

    def report(summary: dict[str, Any]) -> None:
        bad.update({each["file"]: each["reason"] for each in summary["bad"]})
        _write(how["progress"], json.dumps(summary))

    at_once = how["available_now"] or how["end"]
    when = {"availableNow": True} if at_once else {"processingTime": f"{how['trigger']} seconds"}
    follower = Follower(stream.folder, first, report)
    for left in reversed(range(_STARTS)):
        try:
            _run(stream, spark, when, follower, say)
            break
        except Exception as error:
            if left == 0 or not is_starved(error):
                raise cause_of(error) or error from error
        echo("wiredump: Python did not start in ten seconds: the query starts again", err=True)
    follower.poll()
    made = stream.complete(spark, ending=how["end"]) if at_once else stream.made()
    return made._replace(unread=bad)


def _run(
    stream: Stream, spark: Any, when: dict[str, Any], follower: Follower,
    say: Callable[[str], object],
) -> None:  # fmt: skip
    query = stream.start(spark, when)
    try:
        with stopping(_LOOK, say) as wait:
            while query.isActive:
                follower.poll()
                if not wait() and not query.status["isTriggerActive"]:
                    query.stop()
        query.awaitTermination()
    finally:
        with suppress(Exception):
            query.stop()


def _write(place: str, line: str) -> None:
    if place == "-":
        echo(line, err=True)
        return
    from wiredump.spark.progress import append_line

    append_line(place, line)


@contextmanager
def stopping(pause: float, say: Callable[[str], object]) -> Iterator[Callable[[], bool]]:
    """Yield a function that waits for ``pause`` seconds and returns whether to go on.

    The first SIGINT or SIGTERM makes it return False, so that the current batch is finished; the
    second raises KeyboardInterrupt.
    """
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        say("stopping after this batch; interrupt again to stop at once")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: not stopped.wait(pause)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
