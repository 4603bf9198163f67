"""Every command of the four programs, found in their trees of commands."""

from collections.abc import Iterator

import click

from tests.cli.programs import PROGRAMS

__all__ = ["commands"]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something by itself, by its full name."""
    for name, program in PROGRAMS.items():
        yield from _leaves(name, program)


def _leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    if command.invoke_without_command:
        yield name, command
    for each in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), each)
        assert found is not None
        yield from _leaves(f"{name} {each}", found)
