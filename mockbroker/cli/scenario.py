"""``mockbroker scenario``: narrated and checked scenarios of reassignments and of data."""

from __future__ import annotations

import asyncio

import click

from kproto.cli.terminal import echo, echo_json
from kproto.errors import KprotoError

__all__ = ["scenario"]


def _names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from mockbroker.scenarios import SCENARIOS

    return [name for name in ("all", *SCENARIOS) if name.startswith(incomplete)]


@click.group("scenario", no_args_is_help=False)
def scenario() -> None:
    """Run narrated scenarios of reassignments and of data on mock clusters."""


@scenario.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_scenarios(as_json: bool) -> None:
    """List the scenarios."""
    from mockbroker.scenarios import SCENARIOS

    if as_json:
        echo_json([each.to_dict() for each in SCENARIOS.values()])
        return
    width = max(map(len, SCENARIOS))
    for each in SCENARIOS.values():
        echo(f"{each.name:<{width}}  {each.title}")


@scenario.command("run")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_names)
def run_scenarios(names: tuple[str, ...]) -> None:
    """Run scenarios by name, or `all` of them.

    Exits with 1 if a claim is false.
    """
    from mockbroker.scenarios import SCENARIOS, Scenario, ScenarioError, Story, find

    async def narrate(each: Scenario) -> None:
        story = Story(echo)
        echo(f"{each.name}: {each.title}")
        await each.run(story)
        echo()
        echo(f"   {story.facts} claims checked.")
        echo()

    try:
        chosen = list(SCENARIOS.values()) if names == ("all",) else [find(name) for name in names]
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    for each in chosen:
        try:
            asyncio.run(narrate(each))
        except ScenarioError as error:
            raise click.ClickException(f"{each.name}: {error}") from None
