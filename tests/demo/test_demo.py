"""The demo itself: real clients on the mock come out right, and nothing wrong passes as right."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from demo.__main__ import main
from demo.annotate import annotate
from demo.catalog import CLIENTS, Client, client
from demo.cluster import start
from demo.drivers import Answer, DriverError, drive
from demo.screen import Terminal
from demo.story import STEPS, Driver, Outcome, run
from demo.wire import PROFILES, Profile
from kproto.errors import AbsentError
from kspec.runner import install
from tests.support import toolchain
from tests.support.full import quickly_drawn

OLD, NEW = PROFILES

MARKERS = {
    "python": [],
    "node": [pytest.mark.node, pytest.mark.slow],
    "java": [pytest.mark.java, pytest.mark.slow],
    "go": [pytest.mark.go, pytest.mark.slow],
}


class Silent:
    """A screen for nobody."""

    def step(self, title): ...
    def call(self, text): ...
    def move(self, text): ...
    def wire(self, entries): ...
    def answer(self, answer): ...
    def outcome(self, step, outcome): ...


def play(
    which: Client,
    profile: Profile,
    wrap: Callable[[Any], Any] = lambda driver: driver,
    tamper: Callable[[Any], None] = lambda mock: None,
) -> Mapping[str, Outcome]:
    """The story of one client; ``wrap`` stands between it and the demo, ``tamper`` gets at the
    mock cluster before it starts."""
    toolchain.require(*which.toolchains)
    try:
        launch = install.install(which.installed)
    except AbsentError as error:
        toolchain.absent(which.name, str(error))
    with start(profile.name) as cluster:
        cluster._on_loop(lambda: tamper(cluster._mock))
        with drive(launch, cluster.bootstrap) as driver:
            return run(which, profile, wrap(driver), cluster, Silent())


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@pytest.mark.parametrize(
    "which", [pytest.param(each, id=each.name, marks=MARKERS[each.language]) for each in CLIENTS]
)
def test_every_step_a_client_has_the_calls_for_comes_out_right(which, profile):
    outcomes = play(which, profile)
    assert list(outcomes) == [step.name for step in STEPS]
    for step, outcome in outcomes.items():
        if step in which.lacks:
            assert outcome == Outcome("lacking", which.lacks[step])
        elif step == "guard" and outcome.mark == "gap":
            assert which.guard != "raises"
        else:
            assert outcome == Outcome("right"), step


class Lying:
    """Passes calls on and changes the answer to one operation, the ``nth`` time it is asked."""

    def __init__(self, driver: Driver, op: str, nth: int, answer: Answer) -> None:
        self._driver, self._op, self._nth, self._answer = driver, op, nth, answer

    def call(self, op: str, **arguments: Any) -> Answer:
        answer = self._driver.call(op, **arguments)
        if op == self._op:
            self._nth -= 1
            if self._nth == 0:
                return self._answer
        return answer


OK = Answer(ok=True)
REFUSED = Answer(ok=False, error="SomeError", code=42, message="no")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "nth", "lie", "step"),
    [
        ("describe_cluster", 1, REFUSED, "negotiate"),
        ("describe_cluster", 1, Answer(True, {"brokers": [1], "controller": 3}), "negotiate"),
        ("describe_cluster", 1, Answer(True, {}), "negotiate"),
        ("alter", 1, REFUSED, "reassign"),
        ("list", 1, Answer(True, {}), "list"),
        ("list", 2, Answer(True, {}), "complete"),
        ("list", 3, Answer(True, {"foo-0": {}}), "complete"),
        ("alter", 3, REFUSED, "cancel"),
        ("alter", 4, OK, "cancel"),
        ("alter", 4, REFUSED, "cancel"),
        ("elect", 1, REFUSED, "elect"),
        ("elect", 2, OK, "elect"),
    ],
)
def test_a_wrong_answer_fails_its_step_and_no_other(op, nth, lie, step):
    outcomes = play(client("kafka-python"), OLD, wrap=lambda driver: Lying(driver, op, nth, lie))
    assert [name for name, outcome in outcomes.items() if outcome.mark == "wrong"] == [step]
    assert outcomes[step].note


def empty_list(mock) -> None:
    mock.script(46, {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "topics": []})


def accepts_all(mock) -> None:
    """Says yes to every alteration and does nothing."""
    row = {"partitionIndex": 0, "errorCode": 0, "errorMessage": None}
    reply = {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "responses": [{"name": "foo", "partitions": [row]}],
    }
    mock.script(45, reply)


def elects_nobody(mock) -> None:
    mock.script(43, {"throttleTimeMs": 0, "errorCode": 0, "replicaElectionResults": []})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tamper", "steps"),
    [
        (empty_list, {"list", "complete"}),
        (accepts_all, {"reassign", "list", "complete", "cancel"}),
        (elects_nobody, {"elect"}),
        (lambda mock: mock.failover(2), {"negotiate", "reassign", "list", "complete", "cancel",
                                         "elect"}),
    ],
)  # fmt: skip
def test_a_broker_that_does_other_than_it_should_is_noticed(tamper, steps):
    outcomes = play(client("kafka-python"), OLD, tamper=tamper)
    assert {name for name, outcome in outcomes.items() if outcome.mark == "wrong"} == steps


@pytest.mark.slow
def test_a_client_that_is_known_for_another_version_is_noticed():
    other = dataclasses.replace(client("aiokafka"), offers=3)
    assert play(other, OLD)["negotiate"].mark == "wrong"
    other = dataclasses.replace(client("aiokafka"), highest={3: 4})
    assert "both sides know v4" in play(other, NEW)["negotiate"].note


class Dying:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def call(self, op: str, **arguments: Any) -> Answer:
        if op == "list":
            raise DriverError("the driver ended")
        return self._driver.call(op, **arguments)


def test_a_driver_that_dies_fails_the_steps_that_are_left():
    outcomes = play(client("kafka-python"), OLD, wrap=Dying)
    marks = [outcomes[step.name].mark for step in STEPS]
    assert marks == ["right", "lacking", "right", "wrong", "wrong", "wrong", "wrong"]


# ---- the command ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_shows_the_wire_the_table_and_writes_json(tmp_path):
    path = tmp_path / "outcome.json"
    arguments = ["--client", "kafka-python", "--profile", "kafka-2.4", "--json", str(path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    for text in (
        '{"errorCode":35,"apiKeys":[{"apiKey":18,"minVersion":0,"maxVersion":3}]}',
        'AlterPartitionReassignments v0 {"timeoutMs":8000,"topics":[{"name":"foo",',
        " request_api_key 45",
        "join-isr foo-0 6",
        "All checks passed.",
    ):
        assert text in done.output
    written = json.loads(path.read_text())
    assert written["right"] is True
    (row,) = written["rows"]
    assert row["profile"] == "kafka-2.4"
    assert row["outcomes"]["cancel"] == {"mark": "right", "note": ""}


@pytest.mark.slow
def test_the_command_fails_where_an_outcome_is_wrong(monkeypatch, tmp_path):
    wrong = {step.name: Outcome("wrong", "on purpose") for step in STEPS}
    monkeypatch.setattr("demo.__main__.run", lambda *_: wrong)
    path = tmp_path / "outcome.json"
    done = CliRunner().invoke(main, ["--client", "aiokafka", "--json", str(path)])
    assert done.exit_code == 1
    assert "✗ aiokafka on kafka-4.4, elect: on purpose" in done.output
    assert json.loads(path.read_text())["right"] is False


@pytest.mark.slow
def test_absent_toolchains_are_told_and_fail_only_where_asked_for(monkeypatch):
    monkeypatch.setattr("kspec.runner.install.toolchains.find", lambda name: None)
    monkeypatch.delenv("KPROTO_REQUIRE", raising=False)
    right = {step.name: Outcome("right") for step in STEPS}
    monkeypatch.setattr("demo.__main__._play", lambda *_: right)
    done = CliRunner().invoke(main, ["--quiet"])
    assert done.exit_code == 0, done.output
    assert "franz-go go is absent: install Go" in " ".join(done.output.split())
    assert CliRunner().invoke(main, ["--quiet", "--client", "franz-go"]).exit_code == 1
    for required in ("all", "java,go"):
        monkeypatch.setenv("KPROTO_REQUIRE", required)
        assert CliRunner().invoke(main, ["--quiet"]).exit_code == 1


def test_the_list_names_every_client_and_bad_usage_is_two():
    done = CliRunner().invoke(main, ["--list"])
    assert done.exit_code == 0
    assert all(each.name in done.output for each in CLIENTS)
    assert CliRunner().invoke(main, ["--client", "telnet"]).exit_code == 2


# ---- showing --------------------------------------------------------------------------------


def test_annotated_bytes_leave_no_gap():
    with start("kafka-4.4") as cluster:
        launch = install.install(client("kafka-python").installed)
        with drive(launch, cluster.bootstrap) as driver:
            driver.call("alter", topic="foo", partition=0, replicas=[4, 5, 6])
        entries = [entry for entry in cluster.entries() if entry.direction == "request"]
    assert any(entry.api_key == 45 for entry in entries)
    for entry in entries:
        assert b"".join(span.raw for span in annotate(entry)) == entry.raw


@pytest.mark.slow
@pytest.mark.parametrize("width", quickly_drawn("widths", [80, 100, 140], 1))
def test_on_any_terminal_every_field_has_its_value_and_every_step_its_name(monkeypatch, width):
    """Bodies of the story's own requests are there to the last character, over as many lines as
    they need."""
    out = StringIO()
    screen = Terminal(Console(file=out, width=width))
    which = client("kafka-python")
    with start("kafka-2.4") as cluster:
        with drive(install.install(which.installed), cluster.bootstrap) as driver:
            driver.call("alter", topic="foo", partition=0, replicas=[4, 5, 6])
        (entry,) = [e for e in cluster.entries() if (e.direction, e.api_key) == ("request", 45)]
        screen.wire([entry])
    outcomes = {step.name: Outcome("right") for step in STEPS}
    screen.table([(which, OLD, outcomes)], {}, [which])
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = "".join(line.strip() for line in lines)
    assert entry.decode().body.to_json(0) in shown
    for span in annotate(entry):
        name = span.path.rpartition(".")[2]
        assert any(f"{name} {span.value}" in line for line in lines), span
    head = next(line for line in lines if "negotiate" in line)
    assert [step.name for step in STEPS if step.name not in head] == []


def test_what_a_peer_sent_reaches_no_terminal_unescaped():
    out = StringIO()
    screen = Terminal(Console(file=out, width=80))
    screen.answer(Answer(ok=False, error="E", message="\x1b[2J\nok"))
    screen.outcome(STEPS[0], Outcome("wrong", "\x1b]0;title\x07"))
    text = out.getvalue()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2J" in text
