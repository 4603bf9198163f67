"""The common part of the commands of ``kproto admin``: options, errors, ``--profile`` and
``--dialect``.

The commands pass their options to ``kproto.tools`` as arguments. Errors become exit codes here:
what Kafka's tool writes to standard output about a failure goes there, and the failure itself is
one line on standard error. Invalid combinations of options exit with 2, where Kafka's tools exit
with 1.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import click
from click.core import ParameterSource

from kproto.cli.dialect_option import named_dialect
from kproto.cli.terminal import echo
from kproto.cli.waiting import WaitIndicator
from kproto.client import BrokerError
from kproto.errors import KprotoError, UnsupportedVersionError
from kproto.tools.access import Access
from kproto.tools.connecting import connect, read_settings
from kproto.tools.errors import ToolError, ToolUsageError
from kproto.tools.texts import JAVA_ERRORS, java_error

__all__ = [
    "SHIPPED",
    "ProfileCommand",
    "bootstrap_server",
    "checked",
    "command_config",
    "flag",
    "reassign_failure",
    "refuse_dialect",
    "run_tool",
    "run_with_access",
    "value",
]

SHIPPED: Final = "kafka"
"""The profile of the tools as Kafka ships them."""

_DIALECT: Final = f"{__name__}.dialect"
"""The dialect of ``--dialect`` in the ``meta`` of a command's context."""

Work = Callable[[Access, Callable[[str], None]], Awaitable[None]]


def flag(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", is_flag=True, help=text)


def value(name: str, text: str, metavar: str, **kind: Any) -> Callable[[Any], Any]:
    return click.option(f"--{name}", metavar=metavar, help=text, **kind)


bootstrap_server = value("bootstrap-server", "Bootstrap brokers, as HOST:PORT,...", "HOST:PORT,...")
command_config = value(
    "command-config",
    "A properties file for the client. default.api.timeout.ms is how long to keep trying; the "
    "default is 60000, and 30000 for elections.",
    "FILE",
)


class ProfileCommand(click.Command):
    """One tool with several sets of options: ``--profile`` selects the command that parses the
    rest. ``--dialect`` is the brokers' dialect, whatever the options."""

    def __init__(self, surfaces: Mapping[str, click.Command]) -> None:
        self._surfaces = surfaces
        default = surfaces[SHIPPED]
        super().__init__(default.name, help=default.help, short_help=default.get_short_help_str())
        epilog = (
            "--dialect NAME|DIR is the dialect of the brokers: a proposal's draft, or a folder of "
            "your own schemas."
        )
        if len(surfaces) > 1:
            epilog += (
                f" --profile {'|'.join(surfaces)} chooses whose options these are: those of "
                "released Kafka, or of a proposal's draft."
            )
        for surface in surfaces.values():
            surface.epilog = epilog

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of released Kafka, for completion and generated documentation."""
        return self._surfaces[SHIPPED].get_params(ctx)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        name, rest = _without("--profile", args)
        dialect, rest = _without("--dialect", rest)
        surface = self._surfaces.get(SHIPPED if name is None else name)
        if surface is None:
            raise click.UsageError(
                f"--profile {name}: the profiles of this tool are {', '.join(self._surfaces)}",
                parent,
            )
        context = surface.make_context(info_name, rest, parent, **extra)
        if dialect is not None:
            context.meta[_DIALECT] = named_dialect(dialect)
        return context


def _without(option: str, args: list[str]) -> tuple[str | None, list[str]]:
    """Return the value of an option, None without it, and the other arguments."""
    value, rest, given = None, [], iter(args)
    for each in given:
        name, equals, inline = each.partition("=")
        if name != option:
            rest.append(each)
            continue
        value = inline if equals else next(given, "")
    return value, rest


def refuse_dialect(context: click.Context) -> None:
    """Raise UsageError if a command that reaches no broker has ``--dialect``."""
    if _DIALECT in context.meta:
        raise click.UsageError("--dialect is for brokers, and --zookeeper asks none", context)


def checked(context: click.Context, check: Callable[[list[str]], Any]) -> Any:
    """Run ``check`` on the given options, in their order on the command line."""
    long_names = {
        each.name: each.opts[0].removeprefix("--") for each in context.command.params if each.name
    }
    given = [
        long_names[name]
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    try:
        return check(given)
    except ToolUsageError as error:
        raise click.UsageError(str(error), context) from None


def run_with_access(
    context: click.Context,
    work: Work,
    given: dict[str, Any],
    *,
    failure: Callable[[Exception], str | None],
    client_id: str = "kproto",
    timeout_ms: int = 60_000,
    dialect: str = "kafka",
) -> None:
    """Connect and run ``work``. ``failure`` is what Kafka's tool prints for an unexpected error.
    ``dialect`` is the brokers' without ``--dialect``."""
    waiting = WaitIndicator()

    async def session() -> None:
        found = read_settings(given["command_config"])
        controllers = given.get("bootstrap_controller")
        access = connect(
            controllers or given["bootstrap_server"],
            found,
            client_id=client_id,
            timeout_ms=timeout_ms,
            controllers=controllers is not None,
            dialect=context.meta.get(_DIALECT, dialect),
        )
        bootstrap = controllers or given["bootstrap_server"]
        access.doing = lambda what: waiting.doing(f"{bootstrap}: {what}")
        access.doing("connecting")
        async with access:
            await work(access, waiting.write)

    with waiting:
        run_tool(context, lambda: asyncio.run(session()), failure=failure)


def reassign_failure(error: Exception) -> str:
    """Return what kafka-reassign-partitions prints for an error."""
    if isinstance(error, BrokerError):
        return f"Error: {java_error(error.code, str(error))}"
    if isinstance(error, UnsupportedVersionError):
        return f"Error: {JAVA_ERRORS}UnsupportedVersionException: {error}"
    return f"Error: {error}"


def run_tool(
    context: click.Context, work: Callable[[], None], *, failure: Callable[[Exception], str | None]
) -> None:
    """Run ``work`` and turn its errors into exit codes."""
    try:
        work()
    except ToolUsageError as error:
        raise click.UsageError(str(error), context) from None
    except ToolError as error:
        _fail(context, error, error.printed, error.details)
    except (BrokerError, KprotoError, OSError) as error:
        _fail(context, error, failure(error))


def _fail(
    context: click.Context, error: Exception, printed: str | None, details: Sequence[str] = ()
) -> None:
    if printed is not None:
        for line in (printed, *details):
            echo(line)
        if sys.stdout.isatty() and sys.stderr.isatty():
            context.exit(1)  # A reader of both streams has seen it already.
    raise click.ClickException(str(error)) from None
