"""The plan of a package: rooms, arrows and floors."""

import json

import pytest

from scripts import house


@pytest.mark.slow
def test_the_house_has_few_rooms_and_floors(capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(["mockbroker", "mockbroker.simulation", "--json"]) == 0
    for plan in json.loads(capsys.readouterr().out):
        assert plan["rooms"] <= 18, plan["lines"]
        assert len(plan["floors"]) <= 10, plan["floors"]


@pytest.mark.slow
def test_a_room_stands_above_what_it_imports() -> None:
    plan = house.plan_of("mockbroker")
    floor = {room: number for number, rooms in enumerate(plan.floors) for room in rooms}
    assert plan.arrows["apis"] >= {"simulation", "profiles"}
    for room, below in plan.arrows.items():
        assert all(floor[each] < floor[room] for each in below)
    assert sum(plan.lines.values()) > 70_000
