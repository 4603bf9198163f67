"""Every scenario succeeds, and a story detects a false claim."""

import pytest

from mockbroker.cli import main
from mockbroker.scenarios import SCENARIOS, Scenario, ScenarioError, Story
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.requirement(*each.requirements)])
        for each in SCENARIOS.values()
    ],
)
async def test_a_scenario_runs_without_a_false_claim(scenario: Scenario) -> None:
    lines: list[str] = []
    story = Story(lines.append)
    await scenario.run(story)
    assert story.facts >= 1
    assert all("\n" not in line for line in lines)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["scenario", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.requirement("K455-64")
def test_the_command_prints_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "stuck-reassignment") == 0
    out = capsys.readouterr().out
    order = [
        "An admin client asks for foo-0 on brokers 3, 4 and 5.",
        "controller -> 1,2,3,4  LeaderAndIsr v3; 5  LeaderAndIsr v2",
        "Broker 5 is upgraded.",
        "[ok] the reassignment is still listed: stuck",
        "broker 2 is the controller, epoch 2",
        "LeaderAndIsr v3",
        "[ok] foo-0 is on 3, 4, 5",
    ]
    at = 0
    for each in order:
        at = out.index(each, at)


def test_the_list_names_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == list(SCENARIOS)


def test_an_unknown_scenario_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "nope") == 2
    assert "unknown scenario 'nope'; the scenarios are " in capsys.readouterr().err


def test_a_false_claim_ends_the_story() -> None:
    story = Story(lambda line: None)
    with pytest.raises(ScenarioError, match="this is false: pigs fly"):
        story.check("pigs fly", False)
    with pytest.raises(ScenarioError, match="it is refused"), story.check_refused("it is refused"):
        pass


def test_a_refusal_shows_its_reason() -> None:
    lines: list[str] = []
    story = Story(lines.append)
    with story.check_refused("a broker that is none"):
        Operations(Cluster(1)).stop_broker(7)
    assert lines == ["   [ok] a broker that is none: there is no broker 7; the cluster has 1"]
    assert story.facts == 1


def test_a_scenario_that_fails_ends_with_one(monkeypatch, capsys):
    async def fails(story: Story) -> None:
        story.check("pigs fly", False)

    monkeypatch.setitem(SCENARIOS, "fails", Scenario("fails", "", (), fails))
    assert run("run", "fails") == 1
    assert "fails: step 0: this is false: pigs fly" in capsys.readouterr().err
