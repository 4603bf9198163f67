"""The group ``kproto admin``; its commands are in ``kafka_tools``.

They are imported on use because they need asyncio and TLS, which would slow the start of all other
commands.
"""

from __future__ import annotations

import click

__all__ = ["admin_group"]


class _KafkaTools(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Any command line of Kafka's tools may follow "kproto admin" unchanged.
        return _commands().get(cmd_name.removeprefix("kafka-").removesuffix(".sh"))


def _commands() -> dict[str, click.Command]:
    from kproto.cli.kafka_tools import COMMANDS

    return COMMANDS


@click.group("admin", cls=_KafkaTools, no_args_is_help=False)
def admin_group() -> None:
    """Run Kafka's command-line tools, with their options, output and exit codes.

    Each command is also available under Kafka's name, such as kafka-topics or kafka-topics.sh.
    """
