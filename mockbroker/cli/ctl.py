"""``mockbroker ctl URL COMMAND``: the client of a control port.

The operations of a tester come from ``mockbroker.simulation.operations``; the others read a cluster
or administer the control port. Nothing here imports codecs or aiohttp.
"""

from __future__ import annotations

import json
from typing import Any, Final, TextIO

import click
import cloup

from kproto.cli.terminal import echo, echo_json
from kproto.safe_text import json_text
from mockbroker.cli.control_client import ControlClient, shows
from mockbroker.cli.ctl_clusters import cluster, scenario
from mockbroker.cli.ctl_data import (
    consume,
    data_actions,
    group,
    groups,
    offsets,
    produce,
    show_log,
    telemetry,
    tokens,
    transaction,
    transactions,
    waiting,
)
from mockbroker.cli.ctl_wire import frame, journal
from mockbroker.cli.faults import fault
from mockbroker.cli.option_types import ParsedOption, json_option
from mockbroker.simulation.operations import ALL_OPERATIONS, Argument, Operation
from mockbroker.simulation.state.action_texts import action_text, is_about
from mockbroker.simulation.state.actions import KINDS
from mockbroker.simulation.topics.spec import parse_topic_partition

__all__ = ["ctl"]


_READING: Final = cloup.Section.sorted("What happens on the cluster")
_STEERING: Final = cloup.Section.sorted("Faults, scenarios and clusters")
_TITLES: Final = {"clock": "the clock", "controller": "the controller", "proxy": "a proxy"}
_SUBJECTS: Final = {
    subject: cloup.Section.sorted(f"Operations on {_TITLES.get(subject, subject)}")
    for subject in sorted({each.subject for each in ALL_OPERATIONS.values()})
}


class _Commands(cloup.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in ctx.help_option_names:
            echo(ctx.get_help())
            ctx.exit()
        if args[0].startswith("-"):  # cloup fails on it
            problem = f"{args[0]!r:.80} stands where a command is expected, as in `ctl URL COMMAND`"
            raise click.UsageError(problem, ctx)
        return super().resolve_command(ctx, args)


@cloup.group(
    cls=_Commands,
    sections=[_READING, _STEERING, *_SUBJECTS.values()],
    align_sections=True,
    no_args_is_help=False,
)
@click.argument("url")
@click.option("--token", envvar="MOCKBROKER_TOKEN", show_envvar=True,
              help="The control token, if the port requires one.")  # fmt: skip
@click.option("--cluster", "cluster_id", metavar="ID",
              help="The cluster's id, from `cluster list`. Default: the first.")  # fmt: skip
@click.pass_context
def ctl(context: click.Context, url: str, token: str | None, cluster_id: str | None) -> None:
    """Control a running cluster through its control URL."""
    context.obj = ControlClient(url, token, cluster_id)


def _post(client: ControlClient, operation: str, body: dict[str, Any], as_json: bool) -> None:
    answer = client.post(f"/{operation}", body)
    if as_json:
        echo_json(answer)
        return
    for action in answer["actions"]:
        echo(_describe_action(action))


def _click_type(argument: Argument) -> Any:
    """Numbers are checked here; the server reads everything else."""
    schema = argument.type.schema
    if schema.get("type") != "integer":
        return str
    return click.IntRange(schema["minimum"]) if "minimum" in schema else int


def _add_operation(operation: Operation) -> None:
    def run(client: ControlClient, as_json: bool, **arguments: Any) -> None:
        _post(client, operation.name, arguments, as_json)

    ctl.add_command(
        click.Command(
            operation.name,
            callback=click.pass_obj(run),
            params=[
                *(
                    click.Argument(
                        [each.name],
                        type=_click_type(each),
                        metavar=f"[{each.metavar}]" if each.optional else each.metavar,
                        required=not each.optional,
                    )
                    for each in operation.arguments
                ),
                click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
            ],
            help=f"{operation.help}\n\n{operation.details}",
        ),
        section=_SUBJECTS[operation.subject],
    )


for _operation in ALL_OPERATIONS.values():
    _add_operation(_operation)


@shows("proxy", "/proxy")
def proxy(state: Any) -> None:
    """Show the listeners of a proxy, and what stands behind each."""
    for row in state["listeners"]:
        refused = "  refused" if row["refused"] else ""
        upstream = ", ".join(row["upstream"])
        echo(
            f"{row['name']}  {row['address']} -> {upstream}  {row['connections']} connections"
            f"{refused}"
        )


@ctl.group("znode", section=_SUBJECTS["znodes"])
def znode() -> None:
    """Read and write znodes (ZooKeeper mode)."""


@znode.command("get")
@click.argument("path", default="/")
@json_option
@click.pass_obj
def znode_get(client: ControlClient, path: str, as_json: bool) -> None:
    """Show a znode's text, its stat and its children."""
    answer = client.get("/znode", path=path)
    if as_json:
        echo_json(answer)
        return
    echo(answer["text"])
    echo("  ".join(f"{name}={value}" for name, value in answer["stat"].items()))
    for name in answer["children"]:
        echo(f"  {path.rstrip('/')}/{name}")


@znode.command("set")
@click.argument("path")
@click.argument("text", required=False)
@click.option("--file", "file", type=click.File(encoding="utf-8"), metavar="FILE|-",
              help="Read the text from this file.")  # fmt: skip
@click.option(
    "--sequential", is_flag=True, help="Create a sequential znode: append ten digits to PATH."
)
@json_option
@click.pass_obj
def znode_set(
    client: ControlClient,
    path: str,
    text: str | None,
    file: TextIO | None,
    sequential: bool,
    as_json: bool,
) -> None:
    """Create or change a znode.

    A controller that watches the znode reacts at once.
    """
    if (text is None) == (file is None):
        raise click.UsageError("give either TEXT or --file FILE")
    text = text if file is None else file.read()
    operation = "append-znode" if sequential else "write-znode"
    _post(client, operation, {"path": path, "text": text}, as_json)


@znode.command("delete")
@click.argument("path")
@json_option
@click.pass_obj
def znode_delete(client: ControlClient, path: str, as_json: bool) -> None:
    """Delete a znode."""
    _post(client, "delete-znode", {"path": path}, as_json)


@ctl.command("log", section=_READING)
@click.argument("log_of", metavar="[TOPIC-PARTITION]", required=False)
@click.option("--since", type=click.IntRange(0), help="Start at this offset.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS, case_sensitive=False),
              metavar="KIND",
              help="Show only changes of this kind, such as PartitionChanged; `mockbroker help "
                   "action-log` lists all. Repeatable.")  # fmt: skip
@click.option("--topic", help="Show only changes of this topic.")
@click.option("--partition", type=ParsedOption("TOPIC-N", parse_topic_partition),
              help="Show only changes of this partition.")  # fmt: skip
@click.option("--follow", is_flag=True, help="Print new actions as they happen.")
@json_option
@click.pass_obj
def log(
    client: ControlClient,
    log_of: str | None,
    since: int | None,
    kinds: tuple[str, ...],
    topic: str | None,
    partition: tuple[str, int] | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the action log of the cluster, or the log of a partition.

    With TOPIC-PARTITION: where its log begins and ends, its high watermark, and how far each
    replica has it; `consume` prints the records. Without: everything that happened to the cluster.
    A change is shown as `mockbroker scenario run` shows it: R is the replicas, I the ISR and T the
    target of a partition.
    """
    if log_of is not None:
        if follow or kinds or since is not None or topic is not None or partition is not None:
            raise click.UsageError("the options select actions; a partition's log has none")
        return show_log(client, log_of, as_json=as_json)

    def is_wanted(action: dict[str, Any]) -> bool:
        return (
            (not kinds or action["kind"] in kinds)
            and (topic is None or is_about(action, topic))
            and (partition is None or is_about(action, *partition))
        )

    if follow:
        for event, action in client.follow("/log/stream", since=since):
            if event == "action" and is_wanted(action):
                echo(json_text(action) if as_json else _describe_action(action))
        return None
    actions = [action for action in client.get("/log", since=since) if is_wanted(action)]
    if as_json:
        return echo_json(actions)
    for action in actions:
        echo(_describe_action(action))
    return None


# ---- output --------------------------------------------------------------------------------------


def _describe_action(action: dict[str, Any]) -> str:
    """``12  join_isr  foo-0  R 1,2,3,4  I 1,2,3,4  leader 1 epoch 4``"""
    return f"{action['offset']:>5}  {action['cause']}  {action_text(action)}"


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@shows("state", "/state")
def state(answer: Any) -> None:
    """Show the controller, brokers and partitions."""
    from rich.table import Table

    from kproto.cli.tables import print_table

    echo(
        f"controller {answer['controller']}, epoch {answer['controller_epoch']}; brokers "
        + ", ".join(
            number if broker["live"] else f"{number} (stopped)"
            for number, broker in answer["brokers"].items()
        )
    )
    columns = ("replicas", "isr", "leader", "leader_epoch", "adding", "removing", "target")
    table = Table(box=None, pad_edge=False)
    for title in ("partition", *columns):
        table.add_column(title)
    for name, partitions in answer["topics"].items():
        for index, partition in partitions.items():
            cells = [_short(partition[column]) for column in columns]
            table.add_row(f"{name}-{index}", *cells)
    print_table(table)


for _section, _commands in (
    (_READING, (
        state, journal, frame, consume, group, groups, offsets, transaction, transactions, tokens,
        telemetry, waiting, data_actions, proxy,
    )),
    (_STEERING, (fault, cluster, scenario)),
    (_SUBJECTS["logs"], (produce,)),
):  # fmt: skip
    for _command in _commands:
        ctl.add_command(_command, section=_section)
