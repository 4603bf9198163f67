"""``kproto admin``: the group; its commands are in ``kafka_tools``.

Loaded when one of them is asked for: they bring asyncio and TLS along, and everything else that
``kproto`` does starts quicker without.
"""

from __future__ import annotations

import click

__all__ = ["admin_group"]


class _KafkaTools(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # A command line of Kafka's can stand behind "kproto admin" as it is.
        return _commands().get(cmd_name.removeprefix("kafka-").removesuffix(".sh"))


def _commands() -> dict[str, click.Command]:
    from kproto.cli.kafka_tools import COMMANDS

    return COMMANDS


@click.group("admin", cls=_KafkaTools, no_args_is_help=False)
def admin_group() -> None:
    """Kafka's command-line tools: their options, their output, their exit codes.

    Each also goes by its name there, kafka-topics or kafka-topics.sh.
    """
