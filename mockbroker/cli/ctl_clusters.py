"""``mockbroker ctl URL cluster`` and ``scenario``: the clusters and scenarios of a control port."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from kproto.cli.terminal import echo, echo_json
from mockbroker.cli.control_client import ControlClient, shows
from mockbroker.cli.option_types import json_option, parse_members
from mockbroker.simulation.state.option_declarations import options_of

__all__ = ["cluster", "scenario"]


@click.group("cluster")
def cluster() -> None:
    """List, create and remove clusters."""


@shows("list", "/clusters")
def list_clusters(answer: Any) -> None:
    """List the clusters and their addresses."""
    for each in answer["clusters"]:
        _show(each, as_json=False)


cluster.add_command(list_clusters)


@cluster.command("add")
@click.argument("options", nargs=-1, metavar="[NAME=VALUE|JSON]...")
@json_option
@click.pass_obj
def add(client: ControlClient, options: tuple[str, ...], as_json: bool) -> None:
    """Create and start a cluster.

    The options are those of MockCluster, such as brokers=5 profile=kafka-2.4 topics=foo:2:3
    topics=bar=1,2. A VALUE that is neither a number nor a string is JSON; so is an argument that
    starts with a brace, which holds several options.
    """
    from mockbroker.options import ClusterOptions  # here: the other commands do without

    kinds = {each.name: each.type.schema["type"] for each in options_of(ClusterOptions)}
    lists = {name for name, kind in kinds.items() if kind == "array"}
    strings = lists | {name for name, kind in kinds.items() if "string" in kind}
    body: dict[str, Any] = {}
    for name, value in parse_members(options, strings=strings, example="brokers=5"):
        if name in lists and isinstance(value, str):
            body.setdefault(name, []).append(value)
        else:
            body[name] = value
    _show(client.post("/clusters", body), as_json)


@cluster.command("remove")
@click.argument("cluster_id", metavar="ID")
@json_option
@click.pass_obj
def remove(client: ControlClient, cluster_id: str, as_json: bool) -> None:
    """Stop a cluster.

    Exits with 1 if it was created with strict_faults=true and one of its fault rules was not hit,
    or could not do what it is for.
    """
    answer = client.delete(f"/clusters/{quote(cluster_id, safe='')}")
    if as_json:
        echo_json(answer)
    if answer["problems"]:
        raise click.ClickException("; ".join(answer["problems"]))


def _show(each: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(each)
        return
    brokers = f"{len(each['brokers'])} brokers"
    labels = "".join(f"  {name}={value}" for name, value in each["labels"].items())
    echo(f"{each['id']:>3}  {each['profile']}  {brokers}  {each['bootstrap']}{labels}")


@click.group("scenario")
def scenario() -> None:
    """Run scenarios on the server."""


@shows("list", "/scenarios")
def list_scenarios(answer: Any) -> None:
    """List the scenarios."""
    width = max(len(each["name"]) for each in answer["scenarios"])
    for each in answer["scenarios"]:
        echo(f"{each['name']:<{width}}  {each['title']}")


scenario.add_command(list_scenarios)


@scenario.command("run")
@click.argument("name")
@json_option
@click.pass_obj
def run_scenario(client: ControlClient, name: str, as_json: bool) -> None:
    """Run a scenario on its own clusters.

    Exits with 1 if one of its claims is false.
    """
    answer = client.post(f"/scenarios/{quote(name, safe='')}", {})
    if as_json:
        echo_json(answer)
    else:
        for line in (f"{answer['name']}: {answer['title']}", *answer["lines"]):
            echo(line)
    if not answer["ok"]:
        raise click.ClickException(f"{name}: {answer['error']}")
    if not as_json:
        echo()
        echo(f"   {answer['facts']} claims checked.")
