"""``wiredump spark --follow`` without Spark: wrong usage, durations, and how it is stopped."""

from __future__ import annotations

import os
import signal

import click
import pytest

from tests.wiredump.cli.test_spark_command import wiredump
from wiredump.cli.following import seconds, stopping


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "Name at least one CAPTURE, or use --follow."),
        (("a.pcap", "--available-now"), "need --follow"),
        (("a.pcap", "--end"), "need --follow"),
        (("--follow", "c", "--checkpoint", "p", "--idle", "long"), "'long' is not a duration"),
        (("--follow", "c", "a.pcap"), "cannot be combined with CAPTUREs"),
        (("--follow", "c"), "needs --checkpoint"),
        (("--follow", "c", "--checkpoint", "p", "--trigger", "soon"), "'soon' is not a duration"),
        (("--follow", "c", "--checkpoint", "p", "--max-bytes", "0"), "0 is not in the range"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    code, _, err = wiredump(capsys, "spark", "--out", "x", *arguments)
    assert code == 2
    assert problem in err


@pytest.mark.parametrize(
    ("text", "expected"), [("500ms", 0.5), ("10s", 10), ("2m", 120), ("1.5h", 5400)]
)
def test_durations(text: str, expected: float) -> None:
    option = click.Option(["--trigger"])
    assert seconds(click.Context(click.Command("x")), option, text) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_batch(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    said: list[str] = []
    with stopping(0.0, said.append) as wait:
        assert wait()
        os.kill(os.getpid(), number)
        assert not wait()
        assert said == ["stopping after this batch; interrupt again to stop at once"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
