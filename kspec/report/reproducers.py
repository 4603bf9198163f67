"""How to repeat a failure without kspec: a mock cluster on the command line, and a short program.

``reproducer_of`` writes the `mockbroker serve` command that stages a case, its fault rules, and a
program in the client's language that makes the case's calls (``snippets``) and has the mock cluster
take the case's steps in between. Text only; nothing is run here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml

from kspec.errors import KspecError
from kspec.model import Case, ClusterSpec, Step
from kspec.report.snippets import LANGUAGES, Action, Command, Made, Pause, program_of

__all__ = ["ADDRESS", "CONTROL", "FAULTS", "Reproducer", "reproducer_of"]

ADDRESS: Final = "127.0.0.1:9092"
CONTROL: Final = "127.0.0.1:9099"
FAULTS: Final = "faults.yaml"


@dataclass(frozen=True, slots=True)
class Reproducer:
    """``serve`` starts the cluster with the rules of ``faults``, the text of a file of that name.
    ``program`` is what then makes the calls, and ``run`` the command that runs it."""

    serve: str
    faults: str
    file: str
    language: str
    program: str
    run: str


def reproducer_of(client: str, release: str, case: Case) -> Reproducer:
    """Return how to repeat a case with a client. Raises KspecError if that needs kspec."""
    language = LANGUAGES.get(client)
    if language is None:
        raise KspecError(f"there is no template for {client}")
    if case.client.bootstrap is not None or case.others:
        raise KspecError("the case has several clients, or names the brokers to start from")
    actions = list(_actions(case))
    program = program_of(client, case, actions, _bootstrap(case.cluster))
    faults = _yaml(case.faults) if case.faults else ""
    return Reproducer(
        _serve(case), faults, language.file, language.name, program,
        language.run.format(release=release),
    )  # fmt: skip


def _bootstrap(cluster: ClusterSpec) -> str:
    host, _, port = ADDRESS.rpartition(":")
    return ",".join(f"{host}:{int(port) + place}" for place in range(cluster.brokers))


def _serve(case: Case) -> str:
    words = ["mockbroker", "serve", "--listen", ADDRESS, "--control", CONTROL]
    return shlex.join([*words, "--profile", case.profile, *_options(case.cluster)]) + (
        f" --faults {FAULTS}" if case.faults else ""
    )


_FLAGS: Final = {"reply35": "--reply35", "auto_create_topics": "--auto-create-topics"}
_HANDLED: Final = {
    "brokers", "topics", "controller", "apis", "implemented_only", "auto_progress_ms", "clock",
    "sasl", "broker_configs", "propagation_ms", *_FLAGS,
}  # fmt: skip


def _options(cluster: ClusterSpec) -> Iterator[str]:
    """Yield the options of `mockbroker serve`. Raises KspecError for what only kspec can stage."""
    default = ClusterSpec()
    for name in cluster.__struct_fields__:
        if name not in _HANDLED and getattr(cluster, name) != getattr(default, name):
            raise KspecError(f"`mockbroker serve` has no option for cluster.{name}")
    yield from ("--brokers", str(cluster.brokers))
    for topic in cluster.topics:
        yield from ("--topic", topic)
    for api, versions in cluster.apis.items():
        yield from ("--api", f"{api}={'off' if versions in (False, 'off') else versions}")
    for user in cluster.sasl:
        yield from ("--sasl", user)
    for name, value in cluster.broker_configs.items():
        yield from ("--broker-config", f"{name}={value}")
    if cluster.auto_progress_ms is not None:
        yield from ("--auto-progress", f"{cluster.auto_progress_ms}ms")
    if cluster.controller is not None:
        yield from ("--named-controller", "leader")
    if cluster.propagation_ms:
        yield from ("--propagation", f"{cluster.propagation_ms}ms")
    if cluster.clock != default.clock:
        yield from ("--clock", cluster.clock)
    if cluster.implemented_only:
        yield from ("--advertise", "implemented")
    yield from (flag for name, flag in _FLAGS.items() if getattr(cluster, name))


def _actions(case: Case) -> Iterator[Action]:
    if case.cluster.controller is not None:
        yield _control("failover", str(case.cluster.controller))
    for step in case.steps:
        yield from _action(step)


def _action(step: Step) -> Iterator[Action]:
    if step.together is not None or step.reconnect:
        raise KspecError("the case makes calls at once, or connects again")
    for call in step.calls:
        yield Made(call.name or call.call, call.call, call.arguments)
    if step.cluster is not None:
        yield _control(*step.cluster.split(maxsplit=_words(step.cluster)))
    for rule in reversed(step.faults or []):
        yield _control("fault", "add", json.dumps(rule))
    if step.clear_faults:
        yield _control("fault", "clear")
    pause = step.pause_ms if step.wait is None else step.wait.ms
    if pause is not None:
        yield Pause(pause)


def _words(step: str) -> int:
    """Return at how many spaces a command is split: JSON is one argument."""
    brace = step.find("{") if "{" in step else len(step)
    return step[:brace].count(" ") or -1


def _control(*words: str) -> Command:
    return Command(shlex.join(["mockbroker", "ctl", f"http://{CONTROL}", *words]))


def _yaml(rules: Any) -> str:
    plain = msgspec.to_builtins(rules)
    text: str = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=100)
    return text
