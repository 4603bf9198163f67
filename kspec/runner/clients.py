"""The clients of a run: those of the catalog, the reference and wrong clients, and the user's
own."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kproto.errors import AbsentError
from kspec.client_catalog import CLIENTS
from kspec.client_catalog import client as client_named
from kspec.defects.catalog import DEFECTS, wrong_client
from kspec.errors import KspecError
from kspec.runner.adapters import Adapter, LocalAdapter, ProcessAdapter
from kspec.runner.install import Launch, install

__all__ = ["Local", "Program", "select_clients", "words_of"]

_WRONG = "wrong:"


@dataclass(frozen=True, slots=True)
class Local:
    """The reference client (``wrong`` is empty) or a misbehaving one, in this process."""

    name: str
    wrong: str = ""

    async def start(self) -> Adapter:
        return LocalAdapter(wrong_client(self.wrong))


@dataclass(frozen=True, slots=True)
class Program:
    """An adapter program."""

    name: str
    launch: Launch

    async def start(self) -> Adapter:
        launch = self.launch
        return await ProcessAdapter.start(launch.command, launch.cwd, launch.environment)


def select_clients(
    names: Iterable[str], commands: Iterable[str], on_progress: Callable[[str], None]
) -> tuple[list[Local | Program], dict[str, str]]:
    """Return the clients that can run, and the reason for each that cannot, by name.

    Without names and commands, the whole catalog is used. Raises KspecError for an unknown name.
    """
    found: list[Local | Program] = []
    absent: dict[str, str] = {}
    wanted, given = list(dict.fromkeys(names)), list(commands)
    if not wanted and not given:
        wanted = [each.name for each in CLIENTS]
    for name in wanted:
        if name == "reference":
            found.append(Local(name))
        elif name.startswith(_WRONG):
            if name.removeprefix(_WRONG) not in DEFECTS:
                raise KspecError(f"{name!r} is not a defect; `kspec misbehaviours` lists them")
            found.append(Local(name, name.removeprefix(_WRONG)))
        else:
            _install(name, found, absent, on_progress)
    for number, command in enumerate(given):
        label = "adapter" if len(given) == 1 else f"adapter {number + 1}"
        found.append(Program(label, Launch(words_of("--adapter", command), None)))
    return found, absent


def words_of(option: str, command: str) -> tuple[str, ...]:
    """Split the command of an option into words. Raises KspecError if there is no such program."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise KspecError(f"{option} {command!r}: {error}") from None
    if not words:
        raise KspecError(f"{option} names no program")
    if Path(words[0]).is_dir():
        raise KspecError(f"{option} {command!r}: {words[0]!r} is a folder, not a program")
    if shutil.which(words[0]) is None:
        if Path(words[0]).exists():
            raise KspecError(
                f"{option} {command!r}: {words[0]!r} is not executable; run chmod +x on it, or "
                "give its interpreter before it"
            )
        raise KspecError(f"{option} {command!r}: there is no program {words[0]!r}")
    return words


def _install(
    name: str,
    found: list[Local | Program],
    absent: dict[str, str],
    on_progress: Callable[[str], None],
) -> None:
    try:
        client = client_named(name)
    except KeyError:
        known = ", ".join(each.name for each in CLIENTS)
        raise KspecError(f"{name!r} is not a known client; known are {known}, reference") from None
    except ValueError as error:
        raise KspecError(str(error)) from None
    on_progress(f"installing {client.name} {client.release} (the first time downloads it)")
    try:
        found.append(Program(client.name, install(client)))
    except AbsentError as error:
        absent[client.name] = str(error)
