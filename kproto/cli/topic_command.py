"""``kproto admin topics``: kafka-topics as Kafka ships it, and with KIP-455's drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from kproto.cli.tool_command import (
    bootstrap_server,
    checked,
    command_config,
    flag,
    run_with_access,
    value,
)
from kproto.tools import topic_table, topics
from kproto.tools.access import Access
from kproto.tools.options import check_topics

__all__ = ["topics_command", "topics_of"]


@click.command("topics")
@flag("list", "List topics.")
@flag("describe", "Describe topics and their partitions.")
@flag("create", "Create a topic.")
@flag("alter", "Add partitions.")
@flag("delete", "Delete topics.")
@bootstrap_server
@command_config
@value("topic", "The topic; a regular expression except with --create.", "NAME")
@value("topic-id", "The id of the topic to describe.", "ID")
@click.option(
    "--config", metavar="NAME=VALUE", multiple=True, help="A config of the topic to create."
)
@value("partitions", "The number of partitions.", "N", type=int)
@value("replication-factor", "The number of replicas of each partition.", "N", type=int)
@value("replica-assignment", "The replicas of each partition.", "ID:ID:...,ID:ID:...")
@flag("under-replicated-partitions", "Describe only partitions that lack in-sync replicas.")
@flag("unavailable-partitions", "Describe only partitions whose leader is not available.")
@flag("under-min-isr-partitions", "Describe only partitions below min.insync.replicas.")
@flag("at-min-isr-partitions", "Describe only partitions exactly at min.insync.replicas.")
@flag("topics-with-overrides", "Describe only topics that have configs of their own.")
@flag("if-exists", "Do nothing if no topic matches.")
@flag("if-not-exists", "Do nothing if the topic already exists.")
@flag("exclude-internal", "Leave out Kafka's internal topics.")
@click.pass_context
def topics_command(context: click.Context, /, **given: Any) -> None:
    """Create, delete, list, describe and extend topics, like kafka-topics."""
    _topics(context, given, "kafka")


def topics_of(draft: str) -> click.Command:
    """Return the command for brokers that speak a draft of KIP-455: a partition that is being
    reassigned is described by its ``targetReplicas``."""

    def command(context: click.Context, /, **given: Any) -> None:
        _topics(context, given, draft)

    return click.Command(
        topics_command.name,
        callback=click.pass_context(command),
        params=topics_command.params,
        help=topics_command.help,
    )


def _topics(context: click.Context, given: dict[str, Any], dialect: str) -> None:
    action = checked(context, check_topics)

    async def work(access: Access, write: Callable[[str], None]) -> None:
        await _TOPIC_ACTIONS[action](access, write, given)

    run_with_access(
        context,
        work,
        given,
        failure=lambda error: f"Error while executing topic command : {error}",
        dialect=dialect,
    )


async def _list(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    exclude = given["exclude_internal"]
    await topics.list_topics(access, write, given["topic"], exclude_internal=exclude)


async def _describe(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    topic_id = given["topic_id"]
    await topic_table.describe(
        access,
        write,
        pattern=given["topic"],
        topic_id=None if topic_id is None else topic_table.parse_topic_id(topic_id),
        if_exists=given["if_exists"],
        exclude_internal=given["exclude_internal"],
        reports=topic_table.DescribeFilters(
            under_replicated=given["under_replicated_partitions"],
            unavailable=given["unavailable_partitions"],
            under_min_isr=given["under_min_isr_partitions"],
            at_min_isr=given["at_min_isr_partitions"],
            overridden_configs=given["topics_with_overrides"],
        ),
    )


async def _create(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.create(
        access,
        write,
        given["topic"],
        partitions=given["partitions"],
        replication_factor=given["replication_factor"],
        assignment=_assignment(given),
        configs=topics.parse_configs(given["config"]),
        if_not_exists=given["if_not_exists"],
    )


async def _alter(access: Access, _write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.add_partitions(
        access,
        given["topic"],
        given["partitions"],
        assignment=_assignment(given),
        if_exists=given["if_exists"],
    )


async def _delete(access: Access, _write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.delete(access, given["topic"], if_exists=given["if_exists"])


_TOPIC_ACTIONS: Final = {
    "list": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}


def _assignment(given: dict[str, Any]) -> dict[int, list[int]] | None:
    text = given["replica_assignment"]
    return topics.parse_replica_assignment(text) if text else None
