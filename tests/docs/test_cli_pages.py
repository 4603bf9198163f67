"""The pages of the command lines show every option that ``--help`` shows.

mkdocs-click reads a command's parameters and does not run it, which differs where a command parses
its arguments in a way of its own.
"""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from tests.docs.shell import ROOT, TOOLS


def commands(tool: str) -> Iterator[tuple[list[str], click.Command, click.Context]]:
    """Every command of a tool: its path below the tool, itself, and its context."""
    root = TOOLS[tool][0]
    waiting: list[tuple[list[str], click.Command, click.Context | None]] = [([], root, None)]
    while waiting:
        path, command, parent = waiting.pop()
        context = click.Context(command, parent=parent, info_name=command.name)
        yield path, command, context
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                waiting.append(([*path, name], found, context))


@pytest.mark.parametrize("tool", TOOLS)
def test_each_option_of_the_help_is_a_parameter(tool: str) -> None:
    page = (ROOT / "docs/reference/cli" / f"{tool}.md").read_text()
    assert f":prog_name: {tool}\n" in page
    for path, command, context in commands(tool):
        if "ctl" in path[:-1]:
            continue  # its commands follow a URL; they are plain click commands
        shown = CliRunner().invoke(TOOLS[tool][0], [*path, "--help"])
        assert shown.exit_code == 0, path
        named = set(re.findall(r"^  (?:-\w, )?(--[\w.-]*\w)", shown.output, re.M))
        parameters = command.get_params(context)
        known = {option for each in parameters for option in (*each.opts, *each.secondary_opts)}
        if path[:1] == ["admin"]:
            known |= {"--profile", "--dialect"}  # of the text below the options
        assert named - known == set(), path
