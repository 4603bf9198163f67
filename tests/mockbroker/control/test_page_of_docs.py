"""docs/control.md has every route and option, and its commands work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mockbroker.control import ROUTES
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import Route
from tests.mockbroker.control.test_command_line import run_here, serving

PAGE = (Path(__file__).parents[3] / "docs/control.md").read_text()
ROWS = {
    (method, path): takes
    for method, path, takes in re.findall(r"^\| `(GET|POST|DELETE) (\S+)` \| (.*?) ?\|", PAGE, re.M)
}


def test_the_page_documents_every_route_with_its_input():
    assert set(ROWS) == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        described = ROWS[route.method, route.path]
        takes = {each.name for each in route.query}
        if isinstance(route.body, tuple) and route.path != "/clusters":
            takes |= {each.name for each in route.body}
        if described.startswith("the same without"):
            of_all = {each.name for each in _route("GET", "/journal").query}
            assert takes == of_all - set(re.findall(r"`([a-z_]+)`", described))
        else:
            assert set(re.findall(r"`([a-z_]+)`", described)) == takes, route.path


def _route(method: str, path: str) -> Route:
    (found,) = (each for each in ROUTES if (each.method, each.path) == (method, path))
    return found


def test_the_page_documents_every_cluster_option():
    section = PAGE.partition("## Several clusters")[2].partition("\n## ")[0]
    assert {each.name for each in CLUSTER_OPTIONS} <= set(re.findall(r"`([a-z_\d]+)`", section))


@pytest.mark.slow
def test_the_commands_of_the_page_work(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)[0]
    serve, *steps = [shlex.split(line) for line in block.splitlines()]
    place = serve[serve.index("--control") + 1]
    with serving(*(word if word != place else "127.0.0.1:0" for word in serve[2:])) as (_, ready):
        for step in steps:
            words = [ready["control"] if word == f"http://{place}" else word for word in step[1:]]
            assert ready["control"] in words
            assert run_here(words) == 0, capsys.readouterr().err
    capsys.readouterr()
