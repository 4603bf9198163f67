"""``mockbroker ctl URL cluster`` and ``scenario``: what a control port does beside its cluster."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

import click

from mockbroker.cli.control_client import ControlClient

__all__ = ["cluster", "scenario"]

_LISTS: Final = frozenset({"topics", "sasl"})
"""Options that are given once an element."""
_TEXTS: Final = frozenset({"profile", "host", "advertise", "dialect", "clock", "zookeeper"})

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("cluster")
def cluster() -> None:
    """Make clusters in the process that serves this port, and remove them."""


@cluster.command("list")
@_as_json
@click.pass_obj
def list_clusters(client: ControlClient, as_json: bool) -> None:
    """Show every one, and where it is."""
    answer = client.get("/clusters")
    if as_json:
        click.echo(json.dumps(answer))
        return
    for each in answer["clusters"]:
        _show(each, as_json=False)


@cluster.command("add")
@click.argument("options", nargs=-1, metavar="[NAME=VALUE|JSON]...")
@_as_json
@click.pass_obj
def add(client: ControlClient, options: tuple[str, ...], as_json: bool) -> None:
    """Make one and start it.

    Its options are MockCluster's arguments, as in brokers=5 profile=kafka-2.4 topics=foo:2:3
    topics=bar=1,2; what is neither a number nor a text is JSON, or give one JSON object.
    """
    body: dict[str, Any] = {}
    for text in options:
        _take(body, text)
    _show(client.post("/clusters", body), as_json)


def _take(body: dict[str, Any], text: str) -> None:
    if text.lstrip().startswith("{"):
        try:
            body.update(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"{text!r} is no JSON: {error}") from None
        return
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text!r}: use NAME=VALUE, as in brokers=5, or a JSON object")
    if name in _LISTS:
        body.setdefault(name, []).append(value)
    elif name in _TEXTS:
        body[name] = value
    else:
        try:
            body[name] = json.loads(value)
        except (ValueError, RecursionError):
            body[name] = value


@cluster.command("remove")
@click.argument("cluster_id", metavar="ID")
@_as_json
@click.pass_obj
def remove(client: ControlClient, cluster_id: str, as_json: bool) -> None:
    """Stop one that was made here."""
    answer = client.delete(f"/clusters/{quote(cluster_id, safe='')}")
    if as_json:
        click.echo(json.dumps(answer))


def _show(each: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(each))
        return
    brokers = f"{len(each['brokers'])} brokers"
    click.echo(f"{each['id']:>3}  {each['profile']}  {brokers}  {each['bootstrap']}")


@click.group("scenario")
def scenario() -> None:
    """Let the process that serves this port tell and check a known story."""


@scenario.command("list")
@_as_json
@click.pass_obj
def list_scenarios(client: ControlClient, as_json: bool) -> None:
    """Name them."""
    answer = client.get("/scenarios")
    if as_json:
        click.echo(json.dumps(answer))
        return
    width = max(len(each["name"]) for each in answer["scenarios"])
    for each in answer["scenarios"]:
        click.echo(f"{each['name']:<{width}}  {each['title']}")


@scenario.command("run")
@click.argument("name")
@_as_json
@click.pass_obj
def run_scenario(client: ControlClient, name: str, as_json: bool) -> None:
    """Tell one, on clusters of its own. Exit 1 if it does not come out as it has to."""
    answer = client.post(f"/scenarios/{quote(name, safe='')}", {})
    if as_json:
        click.echo(json.dumps(answer))
    else:
        click.echo("\n".join([f"{answer['name']}: {answer['title']}", *answer["lines"]]))
    if not answer["ok"]:
        raise click.ClickException(f"{name}: {answer['error']}")
    if not as_json:
        click.echo(f"\n   {answer['facts']} facts hold.")
