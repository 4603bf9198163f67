"""``help TOPIC`` has every page that a message or a help text cites."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from kproto.cli.help_topics import help_topics
from tests.cli.programs import PROGRAMS

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"docs/|\bhelp\b")
"""What every module that cites a page or a topic contains, even in a text over several lines."""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it."""
    with context:
        yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            inner = found.context_class(found, info_name=name, parent=context)
            yield from commands(found, inner)


@cache
def helps() -> dict[str, str]:
    """The help of every command."""
    return {
        path: text
        for name, program in PROGRAMS.items()
        for path, text in commands(program, click.Context(program, info_name=name))
    }


def strings() -> Iterator[tuple[str, str]]:
    """Every string of the packages that is not a docstring, with its place."""
    for package in PROGRAMS:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            if not CITATION.search(text):
                continue
            tree = ast.parse(text)
            alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                    continue
                if id(node) not in alone:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


@cache
def texts() -> list[tuple[str, str]]:
    return [*strings(), *helps().items()]


@pytest.mark.slow
def test_no_message_cites_a_file_of_the_repository() -> None:
    assert len(helps()) > 80
    assert [place for place, text in texts() if re.search(r"\bdocs/[\w/-]+\.md", text)] == []


@pytest.mark.slow
def test_every_topic_that_is_cited_exists() -> None:
    cited = {
        (place, program, topic)
        for place, text in texts()
        for program, topic in re.findall(rf"\b({'|'.join(PROGRAMS)})\s+help\s+([\w-]+)", text)
    }
    assert {topic for _, _, topic in cited} >= {"faults", "adapters", "vectors"}
    assert [each for each in cited if each[2] not in help_topics()] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_topics_are_listed_and_printed(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli = PROGRAMS[program]
    cli.main(["help"], standalone_mode=False)
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(help_topics())
    assert all(len(line.split()) > 1 for line in listed), "a page without a title"
    cli.main(["help", "faults"], standalone_mode=False)
    assert capsys.readouterr().out == help_topics()["faults"].read_text("utf-8")
    with pytest.raises(click.UsageError, match=r"no topic 'bogus'; the topics are .*faults"):
        cli.main(["help", "bogus"], standalone_mode=False)
