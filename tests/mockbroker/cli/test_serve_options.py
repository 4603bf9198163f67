"""Options of ``mockbroker serve``: their flags, and values for single brokers and features."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from mockbroker.cli import cli
from mockbroker.cli.cluster_flags import flags_of, values_of
from mockbroker.cli.ctl_clusters import add
from mockbroker.cli.serve import serve
from mockbroker.errors import ClusterError
from mockbroker.options import ClusterOptions
from mockbroker.simulation.releases.fixes import FIXES
from mockbroker.simulation.state.option_declarations import option, options_of
from mockbroker.simulation.state.option_types import feature_level, interval
from tests.mockbroker.wire import PATIENCE


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--rack", "one=a"], "use ID=RACK, such as 1=rack-a"),
        (["--rack", "1"], "use ID=RACK, such as 1=rack-a"),
        (["--rack", "9=a"], "no broker 9: its rack cannot be set"),
        (["--feature", "transaction.version=high"], "use NAME=LEVEL"),
        (["--feature", "transaction.version=7"], "at levels 0 to 2, not 7"),
        (["--fix", "KAFKA-19233"], "use NAME=VALUE, such as KAFKA-19233=off"),
        (["--fix", "KAFKA-19233=no"], "use KAFKA-NUMBER=on or =off"),
        (["--fix", "KAFKA-1=on"], "no fix is named 'KAFKA-1'"),
        (["--named-controller", "follower"], "is not leader, random or a broker id"),
        (["--named-controller", "9"], "there is no broker 9"),
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


def test_the_command_line_and_python_begin_with_the_same() -> None:
    with serve.make_context("serve", []) as context:
        begun = values_of(ClusterOptions, context.params)
    assert len(begun.pop("brokers")) == ClusterOptions().brokers
    default = {name: getattr(ClusterOptions(), name) or None for name in begun}
    assert {name: value or None for name, value in begun.items()} == default


def test_each_declared_option_has_its_flag() -> None:
    """``--listen`` and the like set several options, and stand beside the declared ones."""
    params = {each.name: each for each in serve.params if isinstance(each, click.Option)}
    for each in options_of(ClusterOptions):
        if each.group:
            assert params[each.name].opts == [each.flag]
            assert (params[each.name].help or "").startswith(each.help)
        elif each.flag:
            assert any(each.flag in param.opts for param in params.values())


def test_an_option_is_declared_once() -> None:
    """A new field has a flag, a default and a member of a JSON body."""

    @dataclass(frozen=True)
    class WithPatience(ClusterOptions):
        patience_ms: int | None = option(None, interval(1000), "Wait.", "Time")

    @click.command
    def command(**_: object) -> None: ...

    for flag in flags_of(WithPatience, "Time"):
        command = flag(command)
    declared = options_of(WithPatience)[0]
    for words, value in (["--patience", "1s"], 1000), (["--patience", "off"], None), ([], None):
        with command.make_context("command", [*words]) as context:
            params = {each.name: None for each in options_of(WithPatience)} | context.params
            assert params["patience_ms"] == value
    assert (declared.name, declared.type.from_json("patience_ms", None)) == ("patience_ms", None)
    with pytest.raises(ClusterError, match='"patience_ms" is 0; it must be between 1 and 1000'):
        declared.type.from_json("patience_ms", 0)


def test_flags_that_contradict_each_other() -> None:
    for words, problem in (
        (
            ["--broker-api", "3:kafka-2.3", "--broker-api", "3:4=0-2"],
            "either a release or versions",
        ),
        (["--external-broker", "3=a:1", "--external-broker", "3=b:1"], "--external-broker: a brok"),
    ):
        result = CliRunner().invoke(cli, ["serve", *words])
        assert (result.exit_code, problem in result.output) == (2, True), result.output


def test_cluster_add_takes_texts_and_lists_as_declared() -> None:
    class Client:
        def post(self, path: str, body: object) -> object:
            assert path == "/clusters"
            assert body == {
                "brokers": 2, "profile": "kafka-2.4", "clock": "manual", "scram_final": "1",
                "oauth_clients": ["a:1", "b:2"], "racks": {"1": "a"}, "port": 0,
            }  # fmt: skip
            return {
                "id": "2", "profile": "kafka-2.4", "brokers": {}, "bootstrap": "", "labels": {},
            }  # fmt: skip

    words = [
        "brokers=2", "profile=kafka-2.4", "clock=manual", "scram_final=1", "oauth_clients=a:1",
        "oauth_clients=b:2", 'racks={"1": "a"}', "port=0",
    ]  # fmt: skip
    result = CliRunner().invoke(add, words, obj=Client(), catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_fixes_are_listed_with_their_releases() -> None:
    listed = CliRunner().invoke(cli, ["profiles", "--fixes", "--json"])
    rows = {each["issue"]: each for each in json.loads(listed.output)}
    assert rows.keys() == FIXES.keys()
    row = rows["KAFKA-12890"]
    assert (row["since"], row["says"]) == (["2.8.1", "3.0"], FIXES["KAFKA-12890"].says)
    assert "kafka-2.7" in row["without"]
    assert "kafka-2.8" not in row["without"], "which is 2.8.2"
    table = CliRunner().invoke(cli, ["profiles", "--fixes"]).output
    assert all(issue in table for issue in FIXES)
