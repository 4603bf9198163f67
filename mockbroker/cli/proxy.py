"""``mockbroker proxy``: stands in front of a cluster until a signal stops it."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option_group

from kproto.cli.terminal import echo, echo_json
from kproto.errors import KprotoError
from mockbroker.cli.background_stderr import background_stderr
from mockbroker.cli.cluster_flags import flags_of, values_of
from mockbroker.cli.collector import keep_what_is_loaded
from mockbroker.cli.faults import fault_options, faults_into, report_unused
from mockbroker.cli.journals import JOURNAL_OPTIONS, journal_sink
from mockbroker.cli.option_types import DURATION, ParsedOption, dialect_of
from mockbroker.cli.parent import parent_options
from mockbroker.cli.profiles import profile_names
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
from mockbroker.cli.security import server_tls
from mockbroker.errors import ClusterError
from mockbroker.options import Limits
from mockbroker.options.addresses import parse_endpoint
from mockbroker.options.listener_configs import PROTOCOLS
from mockbroker.options.versions import versions
from mockbroker.profiles import DEFAULT_PROFILE
from mockbroker.simulation.state.option_types import feature_level, parse_size

if TYPE_CHECKING:
    from kproto.client import SaslMechanism
    from mockbroker.proxy.kafka_proxy import KafkaProxy
    from mockbroker.proxy.server_names import NamePattern
    from mockbroker.proxy.targets import UpstreamListener

__all__ = ["proxy"]

_DEFAULT_PORT = 9092
_MOST_BROKERS = 100
"""Brokers for which the limit of open files is raised."""
_KEPT_BYTES = 16 << 20
"""Once glibc has freed a block of this size, it keeps twice as much of freed memory. Otherwise it
returns to the system what a large Fetch took, and takes it again for the next."""


def _upstream(text: str) -> UpstreamListener:
    from mockbroker.proxy.targets import UpstreamListener

    name, _, rest = text.rpartition("=")
    protocol, _, listed = rest.rpartition("://")
    if protocol and (not name or protocol.upper() not in PROTOCOLS):
        raise ClusterError(
            f"{text!r}: use NAME=PROTOCOL://HOST:PORT with the protocol {', '.join(PROTOCOLS)}"
        )
    addresses = [parse_endpoint(each.strip()) for each in listed.split(",") if each.strip()]
    if not addresses:
        raise ClusterError(f"{text!r}: use HOST:PORT, or several with commas between")
    return UpstreamListener(
        name.upper(),
        [(host, _DEFAULT_PORT if port is None else port) for host, port in addresses],
        protocol.upper() or None,
    )


def _listeners(upstreams: Sequence[UpstreamListener]) -> dict[str, Any]:
    if len(upstreams) == 1 and not upstreams[0].name:
        return {"upstream": upstreams[0].addresses}
    if not all(each.name for each in upstreams):
        raise ClusterError("several --upstream need names: --upstream NAME=HOST:PORT")
    return {"listeners": upstreams}


def _name_pattern(text: str) -> NamePattern:
    from mockbroker.proxy.server_names import NamePattern

    return NamePattern(text)


def _keys(text: str) -> list[int]:
    keys = text.split(",")
    if not all(key.isascii() and key.isdigit() for key in keys):
        raise ClusterError(f"{text!r}: use API keys with commas between, such as 45,46")
    return [int(key) for key in keys]


@cloup.command(show_constraints=False)
@option_group(
    "Upstream",
    click.option(
        "--upstream",
        "upstreams",
        type=ParsedOption("[NAME=[PROTOCOL://]]HOST:PORT[,HOST:PORT]", _upstream),
        required=True,
        multiple=True,
        help="The cluster's bootstrap addresses. Its brokers are found in its answers. Repeatable "
        "with the names of several listeners, also of controllers, such as EXTERNAL=broker:9094: "
        "each has its own ports here, 100 above those of the one before. With a PROTOCOL of "
        "Kafka's, TLS and SASL are used as it says, otherwise as the options say.",
    ),
    click.option(
        "--upstream-tls",
        metavar="CA|system",
        help="Use TLS to the upstream, whose certificates these authorities (PEM) or the system's "
        "have signed.",
    ),
    click.option(
        "--upstream-tls-cert",
        metavar="CERT[:KEY]",
        help="With --upstream-tls: the proxy's own certificate and private key, in one PEM file or "
        "two.",
    ),
    click.option(
        "--upstream-tls-any-name",
        is_flag=True,
        help="With --upstream-tls: accept certificates for other host names.",
    ),
    click.option(
        "--send-proxy-header",
        is_flag=True,
        help="Name each client to the upstream by a header of the PROXY protocol, version 2. "
        "Kafka's brokers do not take one; gateways in front of them do.",
    ),
)
@option_group(
    "Addresses",
    click.option(
        "--listen",
        type=ParsedOption("HOST:PORT", listen_address),
        default="127.0.0.1:0",
        show_default=True,
        help="The address for bootstrapping, and the host of all listeners.",
    ),
    click.option(
        "--broker-port-base",
        type=click.IntRange(1, 65535),
        help="Broker n listens on this port + n. Default: on a free port.",
    ),
    *CONTROL_OPTIONS,
    click.option(
        "--advertise",
        type=ParsedOption("HOST[:BASE]", parse_endpoint),
        help="The host that answers name in place of the brokers', and the port less n of broker "
        "n. Default: where the proxy listens.",
    ),
    click.option(
        "--sni",
        type=ParsedOption("HOST[:PORT]", _name_pattern),
        help="With --tls: answers name broker n by this host, with n for {id}, as in "
        "broker-{id}.test, and the port for bootstrapping. The name that a client asks for in the "
        "TLS handshake (SNI) leads to the broker.",
    ),
)
@option_group(
    "Protocol",
    click.option(
        "--profile",
        metavar="NAME",
        shell_complete=profile_names,
        help="Let clients see only the versions and features of this release; see `mockbroker "
        "profiles`. Requests above are refused as by a broker.",
    ),
    click.option(
        "--feature",
        "features",
        type=ParsedOption("NAME=LEVEL", feature_level),
        multiple=True,
        help="Let clients see at most this level of a feature, such as transaction.version=1. "
        "Repeatable.",
    ),
    click.option(
        "--unknown-keys",
        type=click.Choice(["pass", "hide"]),
        default="pass",
        show_default=True,
        help="What becomes of API keys that this program has no schema of.",
    ),
    click.option(
        "--serve",
        type=ParsedOption("KEY[,KEY]", _keys),
        help="Let a mock cluster with the upstream's brokers and topics answer these API keys, "
        "such as 45,46. The upstream gets no such requests.",
    ),
    click.option(
        "--serve-profile",
        default=DEFAULT_PROFILE,
        show_default=True,
        metavar="NAME",
        shell_complete=profile_names,
        help="With --serve: the release that the mock cluster behaves as.",
    ),
    click.option(
        "--dialect",
        type=ParsedOption("FOLDER|NAME", dialect_of),
        help="A folder of message schemas that extend the released ones, or the name of a dialect. "
        "Default: the profile's.",
    ),
)
@option_group(
    "Recording",
    *JOURNAL_OPTIONS,
    click.option(
        "--journal-detail",
        type=click.Choice(["frames", "headers", "events"]),
        help="What the journal keeps: whole frames, the heads of requests, or only connections. "
        "Default: frames with --journal, otherwise headers.",
    ),
)
@option_group(
    "Security",
    click.option(
        "--tls",
        metavar="CERT[:KEY]",
        help="Serve TLS with this certificate chain and private key, in one PEM file or two.",
    ),
    click.option(
        "--tls-client-ca",
        metavar="FILE",
        help="With --tls: require client certificates of these authorities (PEM).",
    ),
    click.option(
        "--sasl",
        multiple=True,
        metavar="MECHANISM:USER:PASSWORD",
        help="Let clients authenticate to the proxy instead of the cluster, and add a user. "
        "MECHANISM is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Repeatable.",
    ),
    click.option(
        "--upstream-sasl",
        metavar="MECHANISM:USER:PASSWORD",
        envvar="MOCKBROKER_UPSTREAM_SASL",
        show_envvar=True,
        help="The proxy's own credentials for the cluster, in the place of the clients'. Needs "
        "--sasl or --open-to-all.",
    ),
    click.option(
        "--open-to-all",
        is_flag=True,
        help="With --upstream-sasl: let clients use it without authenticating.",
    ),
)
@option_group(
    "Speed",
    click.option(
        "--latency",
        type=DURATION,
        default="0",
        help="Delay everything that passes, in each direction, such as by 50ms.",
    ),
    click.option(
        "--bandwidth",
        type=ParsedOption("SIZE", parse_size),
        help="The most bytes a second of each connection, in each direction, such as 1MiB.",
    ),
)
@fault_options
@option_group(
    "Limits",
    *flags_of(Limits, "Limits"),
    click.option(
        "--max-targets",
        type=click.IntRange(1, 100_000),
        default=1000,
        show_default=True,
        help="The most brokers and controllers that the upstream may name, each of which gets a "
        "listener. A connection whose answer names more is closed.",
    ),
)
@parent_options
def proxy(**options: Any) -> None:
    """Stand between clients and a Kafka cluster until interrupted.

    Answers name the proxy's listeners in place of the brokers, so that all traffic passes through
    it. The first line on stdout is {"bootstrap": "127.0.0.1:NNNNN", "brokers": {"1":
    "127.0.0.1:NNNNN"}, "control": URL|null}; brokers that come later get a listener of their own.
    With --serve and --control the object also has the member "serve_control", the control port of
    the mock cluster.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(background_stderr())
        log_to_stderr()
        raise_file_limit(2 * _MOST_BROKERS * options["max_connections"], more=False)
        most = options["max_connections"]
        permitted = f"the {most} of --max-connections to one broker and as many to the upstream"
        report_file_limit(2 * most, 1, permitted)
        bytes(_KEPT_BYTES)
        running = _build(options, stack)
        token = random_token(options)
        run_loop(_proxy(running, options, token))
        report_unused(running, must_hit=options["faults_must_hit"])


def _build(options: dict[str, Any], stack: contextlib.ExitStack) -> KafkaProxy:
    """Check all options before any socket opens."""
    from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions

    journal, overwrite = options["journal"], options["overwrite_journal"]
    host, port = options["listen"]
    try:
        sink = journal and stack.enter_context(journal_sink(journal, overwrite=overwrite))
        running = KafkaProxy(
            ProxyOptions(
                **_listeners(options["upstreams"]),
                host=host,
                port=port,
                broker_port_base=options["broker_port_base"],
                advertise=options["advertise"],
                profile=options["profile"],
                features=dict(options["features"]),
                unknown_keys=options["unknown_keys"],
                serve=options["serve"] or (),
                serve_profile=options["serve_profile"],
                dialect=options["dialect"],
                detail=options["journal_detail"] or ("frames" if journal else "headers"),
                limits=Limits(**values_of(Limits, options)),
                tls=server_tls(options["tls"], options["tls_client_ca"]),
                upstream_tls=_upstream_tls(options),
                sni=options["sni"],
                send_proxy_header=options["send_proxy_header"],
                sasl=options["sasl"],
                upstream_sasl=_mechanism(options["upstream_sasl"]),
                open_to_all=options["open_to_all"],
                latency_ms=options["latency"],
                bandwidth=options["bandwidth"] or 0,
                max_targets=options["max_targets"],
            )
        )
        faults_into(running, options)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    running.journal.sink = sink
    return running


def _mechanism(text: str | None) -> SaslMechanism | None:
    """Raises ClusterError."""
    if text is None:
        return None
    from kproto.client import SaslPlain, SaslScram
    from mockbroker.simulation.security.sasl import PLAIN, parse_credentials

    mechanism, user, password = parse_credentials(text)
    if mechanism == PLAIN:
        return SaslPlain(user, password)
    return SaslScram(mechanism, user, password)


def _upstream_tls(options: dict[str, Any]) -> ssl.SSLContext | None:
    authorities, own = options["upstream_tls"], options["upstream_tls_cert"]
    if authorities is None:
        for name in ("upstream_tls_cert", "upstream_tls_any_name"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --upstream-tls")
        return None
    context = ssl.create_default_context()
    try:
        if authorities != "system":
            context = ssl.create_default_context(cafile=authorities)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--upstream-tls: {authorities!r} cannot be used: {error}") from None
    if own is not None:
        certificate, colon, key = own.rpartition(":")
        try:
            context.load_cert_chain(certificate if colon else own, key if colon else None, "")
        except (OSError, ValueError) as error:
            raise click.UsageError(
                f"--upstream-tls-cert: {own!r} cannot be used: {error}"
            ) from None
    context.check_hostname = not options["upstream_tls_any_name"]
    return context


async def _proxy(running: KafkaProxy, options: dict[str, Any], token: dict[str, str]) -> None:
    stopped = stop_requested(options)
    control = None
    if options["control"] is not None:
        from mockbroker.control.proxy_port import ProxyPort  # here: aiohttp takes long to import

        host, port = options["control"]
        control = ProxyPort(running, host=host, port=port, token=options["control_token"] or None)
    async with contextlib.AsyncExitStack() as stack:
        with naming_the_option("--listen"):
            try:
                await stack.enter_async_context(running)
            except ClusterError as error:
                raise click.ClickException(str(error)) from None
        for text in running.notices():
            echo(f"mockbroker: {text}", err=True)
        served: dict[str, str] = {}
        if control is not None:
            with naming_the_option("--control"):
                await control.start()
            stack.push_async_callback(control.stop)
            served |= await _control_of_served(running, options, stack)
        ready = {
            "bootstrap": running.bootstrap,
            "brokers": {str(key): address for key, address in running.addresses.items()},
            **({"listeners": running.listeners} if running.listeners else {}),
            "control": None if control is None else control.url,
            "versions": versions(),
            **served,
            **token,
        }
        keep_what_is_loaded()
        echo_json(ready)
        await stopped.wait()


async def _control_of_served(
    running: KafkaProxy, options: dict[str, Any], stack: contextlib.AsyncExitStack
) -> dict[str, str]:
    """Open a control port for the mock cluster of --serve; a member of the first line."""
    if running.served is None or running.served.mock is None:
        return {}
    from mockbroker.control import ControlServer  # here: aiohttp takes long to import
    from mockbroker.scenarios import SCENARIOS

    host, _ = options["control"]
    control = ControlServer(
        running.served.mock, host=host, token=options["control_token"] or None, scenarios=SCENARIOS
    )
    await control.start()
    stack.push_async_callback(control.stop)
    return {"serve_control": control.url}
