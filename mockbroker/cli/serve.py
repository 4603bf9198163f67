"""``mockbroker serve``: runs a cluster until a signal stops it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import cloup
from click.core import ParameterSource
from cloup import option_group

from kproto.cli.terminal import echo, echo_json
from kproto.errors import KprotoError, MissingExtraError
from kproto.os_errors import os_error_text
from mockbroker.cli.allocator import reuse_freed_memory
from mockbroker.cli.background_stderr import background_stderr
from mockbroker.cli.cluster_flags import flags_of, values_of
from mockbroker.cli.collector import keep_what_is_loaded
from mockbroker.cli.faults import fault_options, faults_into, report_unused
from mockbroker.cli.journals import JOURNAL_OPTIONS, journal_sink
from mockbroker.cli.option_types import ParsedOption, dialect_of
from mockbroker.cli.parent import parent_options
from mockbroker.cli.replaying import replay_into, replay_options
from mockbroker.cli.running import (
    CONTROL_OPTIONS,
    listen_address,
    log_to_stderr,
    naming_the_option,
    raise_file_limit,
    random_token,
    report_file_limit,
    run_loop,
    stop_requested,
)
from mockbroker.cli.security import SECURITY_OPTIONS, security_of
from mockbroker.errors import ClusterError
from mockbroker.options import ClusterOptions
from mockbroker.options.addresses import parse_endpoint
from mockbroker.options.listener_configs import ListenerConfigError
from mockbroker.options.versions import versions
from mockbroker.simulation.state.option_types import name_and_value

if TYPE_CHECKING:
    from kproto.dialects import Dialect
    from mockbroker.control import ControlServer
    from mockbroker.options.properties_file import Property
    from mockbroker.running.mock_cluster import MockCluster

__all__ = ["serve"]

T = TypeVar("T")


def _advertise(text: str) -> str | tuple[str, int | None]:
    return text if text == "implemented" else parse_endpoint(text)


def _config(text: str) -> tuple[int | None, str, str]:
    """The broker id, None for every broker, the name and the value."""
    broker, colon, rest = text.partition(":")
    if colon and broker.isascii() and broker.isdigit():
        return (int(broker), *name_and_value(rest, "2:log.dirs=/a,/b"))
    return (None, *name_and_value(text, "min.insync.replicas=2"))


def _reply(text: str) -> tuple[int, str]:
    key, equals, file = text.partition("=")
    if not equals or not (key.isascii() and key.isdigit()):
        raise ClusterError(f"{text!r}: use KEY=FILE.json, where KEY is an API key")
    try:
        reply = Path(file).read_text(encoding="utf-8")
        parsed = json.loads(reply)
    except OSError as error:
        raise ClusterError(f"{text!r}: {os_error_text(error)}") from None
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"{text!r}: not JSON: {error}") from None
    # Whether it fits the response depends on the requested version.
    if not isinstance(parsed, dict):
        raise ClusterError(f"{text!r}: the file must hold a JSON object")
    return int(key), reply


def _kip_240(text: str) -> Dialect:
    from kproto.dialects import kip_240

    keys = text.split(",")
    if len(keys) != 2 or not all(key.isascii() and key.isdigit() for key in keys):
        raise ClusterError(f"{text!r}: use LIST,DESCRIBE, two API keys such as 32240,32241")
    return kip_240(list_key=int(keys[0]), describe_key=int(keys[1]))


@cloup.command(show_constraints=False)
@option_group(
    "Cluster",
    *flags_of(ClusterOptions, "Cluster"),
    click.option(
        "--broker-config",
        "broker_configs",
        type=ParsedOption("[ID:]NAME=VALUE", _config),
        multiple=True,
        help="Set a static config of every broker, by Kafka's name, such as "
        "min.insync.replicas=2, or of one broker: 2:log.dirs=/a,/b. Repeatable.",
    ),
    click.option(
        "--properties",
        "properties_file",
        metavar="FILE",
        help="Read the static configs of every broker from Kafka's server.properties. "
        "--broker-config takes precedence.",
    ),
)
@option_group("Behaviour", *flags_of(ClusterOptions, "Behaviour"))
@option_group("Time", *flags_of(ClusterOptions, "Time"))
@option_group(
    "Addresses",
    click.option(
        "--listen",
        type=ParsedOption("HOST:PORT", listen_address),
        default="127.0.0.1:0",
        show_default=True,
        help="The address of broker 1. Broker n listens on PORT + n - 1, or on a free "
        "port if PORT is 0.",
    ),
    click.option(
        "--advertise",
        type=ParsedOption("HOST[:PORT]|implemented", _advertise),
        multiple=True,
        help="The address of broker 1 in Metadata; broker n has PORT + n - 1, or its own "
        "port. `implemented` advertises only APIs with a handler. Can be given twice, "
        "once for each.",
    ),
    *CONTROL_OPTIONS,
    click.option(
        "--no-cluster",
        is_flag=True,
        help="Start without a cluster: programs create theirs at the control port, and the options "
        "of clusters are those of POST /clusters.",
    ),
)
@option_group(
    "Protocol",
    *flags_of(ClusterOptions, "Protocol"),
    click.option(
        "--reply",
        "replies",
        type=ParsedOption("KEY=FILE.json", _reply),
        multiple=True,
        help="Answer an API key with this response. Repeatable.",
    ),
    click.option(
        "--dialect",
        type=ParsedOption("FOLDER|NAME", dialect_of),
        help="A folder of message schemas that extend the released ones, or the name of a dialect. "
        "auto accepts released requests and those of KIP-455's drafts. Default: the profile's.",
    ),
    click.option(
        "--kip-240-keys",
        type=ParsedOption("LIST,DESCRIBE", _kip_240),
        help="The two API keys of the dialect kip-240, which the proposal does not assign. "
        "Default: 32240,32241.",
    ),
)
@option_group("ZooKeeper", *flags_of(ClusterOptions, "ZooKeeper"))
@option_group("Recording", *JOURNAL_OPTIONS)
@replay_options
@fault_options
@option_group("Inter-broker requests", *flags_of(ClusterOptions, "Inter-broker requests"))
@option_group("Security", *flags_of(ClusterOptions, "Security"), *SECURITY_OPTIONS)
@option_group("Limits", *flags_of(ClusterOptions, "Limits"))
@parent_options
def serve(**options: Any) -> None:
    """Run a mock cluster until interrupted.

    The first line on stdout, once every listener is up, is
    {"bootstrap": "127.0.0.1:NNNNN,...", "brokers": {"1": "127.0.0.1:NNNNN"}, "control": URL|null,
    "listeners": {"1": {"PLAINTEXT": "127.0.0.1:NNNNN"}}, "versions": {"kproto": ...}}. If a random
    control token was made, the object also has the member "control_token".
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(background_stderr())
        log_to_stderr()
        raise_file_limit(
            len(options["brokers"]) * options["max_connections"],
            more=options["control"] is not None,
        )
        brokers, most = len(options["brokers"]), options["max_connections"]
        report_file_limit(
            brokers * most, brokers, f"the {most} of --max-connections to each of {brokers} brokers"
        )
        token = random_token(options)
        if options["no_cluster"]:
            _check_alone(click.get_current_context())
            mock, control = None, _control(None, options["control"], options["control_token"])
        else:
            mock, control = _build(options, stack)
        run_loop(_serve(mock, control, token, options))
        if mock is not None:
            report_unused(mock, must_hit=options["faults_must_hit"])


_OF_THE_PROCESS: Final = frozenset(
    {"no_cluster", "control", "control_token", "exit_with_parent", "exit_on_stdin_eof"}
)
"""What can be given with --no-cluster."""


def _check_alone(context: click.Context) -> None:
    """Raises click.UsageError for options of a cluster, and without a control port."""
    if context.params["control"] is None:
        raise click.UsageError("--no-cluster needs --control")
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in _OF_THE_PROCESS and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{parameter.opts[0]} is an option of a cluster, which --no-cluster leaves out; "
                "give it to POST /clusters"
            )


def _build(
    options: dict[str, Any], stack: contextlib.ExitStack
) -> tuple[MockCluster, ControlServer | None]:
    """Check all options before any socket opens."""
    from mockbroker.running.mock_cluster import MockCluster

    endpoint, implemented_only = _split_advertise(options["advertise"])
    host, port = options["listen"]
    ports = len(options["brokers"])
    if port and port + ports - 1 > 65535:
        raise click.UsageError(f"--listen: {ports} ports from {port} exceed 65535")
    configs: dict[Any, dict[str, str]] = {None: {}}
    """By broker id; None for every broker."""
    for broker_id, name, value in options["broker_configs"]:
        configs.setdefault(broker_id, {})[name] = value
    journal, overwrite = options["journal"], options["overwrite_journal"]
    written: Sequence[Property] = ()
    try:
        written = _properties(options["properties_file"], options["profile"])
        configs[None] = {each.name: each.value for each in written} | configs[None]
        sink = journal and stack.enter_context(journal_sink(journal, overwrite=overwrite))
        cluster_options = ClusterOptions(
            **values_of(ClusterOptions, options),
            **security_of(options),
            host=host,
            port=port,
            advertise=endpoint,
            implemented_only=implemented_only,
            dialect=_dialect(options["dialect"], options["kip_240_keys"]),
            broker_configs=configs.pop(None),
            own_broker_configs=configs,
        )
        mock = MockCluster.from_options(cluster_options)
        mock.journal.sink = sink
        for api_key, reply in options["replies"]:
            mock.script(api_key, reply)
            _check_reply(mock, api_key, reply)
        replay_into(mock, options)
        faults_into(mock, options)
    except MissingExtraError as error:
        raise click.ClickException(str(error)) from None
    except ListenerConfigError as error:
        raise click.UsageError(_with_line(error, options["properties_file"], written)) from None
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    return mock, _control(mock, options["control"], options["control_token"])


def _with_line(error: ListenerConfigError, path: str, written: Sequence[Property]) -> str:
    """The refusal of a config with the place where the file sets it, if it does."""
    names = (error.config, re.sub(r"^listener\.name\.[^.]*\.", "", error.config))
    for name in names:
        for each in written:
            if each.name == name:
                return f"{path}:{each.line}: {name}: {error.problem}"
    return str(error)


def _properties(path: str | None, profile_name: str) -> Sequence[Property]:
    """Read configs, and refuse values that the release of the profile refuses."""
    if path is None:
        return ()
    from mockbroker.options.properties_file import parse_properties
    from mockbroker.profiles import profile
    from mockbroker.simulation.configs.definitions import config_definitions
    from mockbroker.simulation.configs.values import config_problem

    known = config_definitions(profile(profile_name).software).broker
    try:
        text = Path(path).read_bytes().decode("latin-1")
    except OSError as error:
        raise ClusterError(f"{path}: {os_error_text(error)}") from None
    found = parse_properties(text, path)
    for line, name, value in found:
        problem = config_problem(known[name], value) if name in known else ""
        if problem:
            raise ClusterError(f"{path}:{line}: {name}: {problem}")
    return found


def _check_reply(mock: MockCluster, api_key: int, reply: str) -> None:
    """Refuse a response that fits no version, and report those that it does not fit."""
    api, versions = mock.dialect.api(api_key), mock.served[api_key]
    fitting: list[int] = []
    problem: KprotoError | None = None
    for version in versions:
        try:
            api.response.from_json(reply, version, fill=True)
            fitting.append(version)
        except KprotoError as error:
            problem = error
    if not fitting:
        raise click.UsageError(f"--reply {api_key}: {problem}")
    if problem is not None:
        fits = ", ".join(map(str, fitting))
        echo(
            f"mockbroker: --reply {api_key} fits versions {fits} of {api.name}, not all of "
            f"{versions}; requests at the others fail: {problem}",
            err=True,
        )


def _dialect(named: Dialect | None, renumbered: Dialect | None) -> Dialect | None:
    if named is not None and renumbered is not None and named.name != renumbered.name:
        raise click.UsageError(f"--kip-240-keys needs the dialect kip-240, not {named.name}")
    return renumbered or named


def _split_advertise(
    values: tuple[str | tuple[str, int | None], ...],
) -> tuple[tuple[str, int | None] | None, bool]:
    endpoints = [value for value in values if isinstance(value, tuple)]
    if len(endpoints) > 1:
        raise click.UsageError(
            "--advertise: give only one HOST[:PORT]; the other brokers' follow from it"
        )
    return (endpoints[0] if endpoints else None), "implemented" in values


def _control(
    mock: MockCluster | None, address: tuple[str, int] | None, token: str | None
) -> ControlServer | None:
    if address is None:
        return None
    host, port = address
    from mockbroker.control import ControlServer  # here: aiohttp takes long to import
    from mockbroker.scenarios import SCENARIOS

    return ControlServer(mock, host=host, port=port, token=token or None, scenarios=SCENARIOS)


def _listen_option(mock: MockCluster) -> str:
    return "listeners" if "listeners" in mock.options.broker_configs else "--listen"


def _by_id(addresses: Mapping[int, T]) -> dict[str, T]:
    return {str(broker_id): each for broker_id, each in addresses.items()}


async def _serve(
    mock: MockCluster | None,
    control: ControlServer | None,
    token: dict[str, str],
    options: dict[str, Any],
) -> None:
    reuse_freed_memory()
    stopped = stop_requested(options)
    async with contextlib.AsyncExitStack() as stack:
        if mock is not None:
            with naming_the_option(_listen_option(mock)):
                await stack.enter_async_context(mock)
        if control is not None:
            with naming_the_option("--control"):
                await control.start()
        try:
            ready = {
                "bootstrap": "" if mock is None else mock.bootstrap,
                "brokers": {} if mock is None else _by_id(mock.addresses),
                "control": None if control is None else control.url,
                "listeners": {} if mock is None else _by_id(mock.listeners),
                "versions": versions(),
                **token,
            }
            keep_what_is_loaded()
            echo_json(ready)
            await stopped.wait()
        finally:
            if control is not None:
                await control.stop()
