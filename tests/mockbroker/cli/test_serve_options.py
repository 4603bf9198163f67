"""Options of ``mockbroker serve`` for single brokers and for features."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from mockbroker.cli import cli
from mockbroker.cli.option_types import feature_level
from mockbroker.errors import ClusterError
from tests.mockbroker.wire import PATIENCE


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--rack", "one=a"], "use ID=RACK, such as 1=rack-a"),
        (["--rack", "1"], "use NAME=VALUE, such as 1=rack-a"),
        (["--rack", "9=a"], "no broker 9: its rack cannot be set"),
        (["--feature", "transaction.version=high"], "use NAME=LEVEL"),
        (["--feature", "transaction.version=7"], "at levels 0 to 2, not 7"),
        (["--broker-config", "2:log.dirs"], "such as 2:log.dirs=/a,/b"),
        (["--broker-config", "9:log.dirs=/a"], "there is no broker 9"),
        (["--broker-config", "1:log.dirs=,"], "log.dirs names no directory"),
    ],
)
def test_values_that_do_not_fit(words: list[str], problem: str) -> None:
    result = CliRunner().invoke(cli, ["serve", *words])
    assert (result.exit_code, problem in result.output) == (2, True), result.output


@pytest.mark.slow
def test_they_are_set() -> None:
    words = [
        "--brokers", "2", "--rack", "1=a", "--feature", "transaction.version=0",
        "--broker-config", "2:log.dirs=/x,/y", "--broker-config", "made.up=1",
        "--control", "127.0.0.1:0",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "mockbroker", "serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        control = json.loads(process.stdout.readline())["control"]
        for words in (["fail-log-dir", "2", "/y"], ["fail-log-dir", "1", "/y"]):
            done = subprocess.run(
                [sys.executable, "-m", "mockbroker", "ctl", control, *words],
                capture_output=True,
                text=True,
                timeout=6 * PATIENCE,
            )
            told = done.stdout + done.stderr
            assert (done.returncode == 0) == (words[1] == "2"), told
        assert "broker 1 has no log directory '/y'; it has /var/lib/kafka/data" in told
    finally:
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=6 * PATIENCE)
    assert "the mock does not know have no effect: made.up" in complaints


def test_the_level_of_a_feature() -> None:
    assert feature_level("transaction.version=1") == ("transaction.version", 1)
    assert feature_level("x=32767") == ("x", 32767)
    for text in ("transaction.version", "=1", "x=y", "x=-1", "x=32768"):
        with pytest.raises(ClusterError, match=r"such as transaction\.version=1"):
            feature_level(text)
