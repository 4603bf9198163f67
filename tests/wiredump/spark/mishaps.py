"""What operators and their machines do to a stream, and what they do about it.

A ``World`` has captures that arrive, a stream that reads them, and mishaps, which ``MISHAPS`` has
by name. The operator acts on the text of an error alone: ``REMEDIES`` has what to do by what it
says. An error that says nothing to do ends the test.
"""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.errors import KprotoError
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession
from tests.wiredump.spark.rotating import (
    EVERY,
    Killed,
    difference,
    follow,
    one_process,
    records,
    rotate,
    so_far,
    to_the_end,
)
from wiredump.sources.request_logs import time_zone
from wiredump.spark import rotation
from wiredump.spark.connections import Options
from wiredump.spark.microbatch import MicroBatch
from wiredump.spark.sinks import Layout
from wiredump.spark.stream_folder import StreamFolder
from wiredump.spark.streaming import Stream
from wiredump.storage import Location

__all__ = ["MISHAPS", "World"]

STEP_NS: Final = 1_100_000_000
"""Between packets: the order of any two files is known by time."""
STATE: Final = (
    "stream.json", "batches", "files", "state", "data", "names", "unnamed", "excerpts", "fragments",
)  # fmt: skip
ATTEMPTS: Final = 6
"""Starts until a stream goes on: a mishap may have several errors, one after the other."""


class World:
    """A folder with a rotating capture, ``place``, and what a stream makes of it in ``stream``."""

    def __init__(
        self, root: Path, session: FakeSession, seed: int, *, skip: bool, clock: bool
    ) -> None:
        self.root, self.session, self.rng = root, session, random.Random(seed)
        self.policy = "skip" if skip else "fail"
        self.stays = clock
        """Whether the last file that was read must stay, because only it tells of the clock."""
        self.place, self.root_of_stream = root / "in % Ä", root / "the stream"
        self.place.mkdir()
        capture = made_up.capture(seed, connections=4, exchanges=6, kind="pcap", back=0.0)
        capture = _spread(capture, self.rng if clock else None)
        count = len(records(capture)[1])
        cuts = self.rng.sample(range(4, max(14, count)), 9)
        self.all = rotate(capture, cuts, root / "all", self.rng.choice(("r.pcap", "a b.pcap")))
        self.arrived = 0
        self.read: list[Path] = []
        self.lost: set[str] = set()
        """Names of files that an error told the operator to leave out, or ``skip`` left out."""
        self.gone: set[str] = set()
        """Those that were left out after they had their number."""
        self.options: dict[str, Any] = {}
        self.patch = pytest.MonkeyPatch()
        self.events: list[str] = []
        self.arrive(2)

    # -- captures ----------------------------------------------------------------------------

    def arrive(self, count: int, *, without: int = 0) -> None:
        """Let files be written, a second apart."""
        for path in self.all[self.arrived + without : self.arrived + without + count]:
            self.deliver(path)
        self.arrived = min(len(self.all), self.arrived + without + count)

    def deliver(self, path: Path) -> None:
        shutil.copy(path, self.place / path.name)
        at = time.time_ns() - (1000 - self.all.index(path)) * 1_000_000_000
        os.utime(self.place / path.name, ns=(at, at))

    def taken(self) -> list[Path]:
        """Files that were read and are there, without the last one if it must stay."""
        store = StreamFolder(self.stream().folder)
        paths = [Path(each.file.path) for noted in store.noted() for each in noted.files]
        there = [path for path in paths if path.exists()]
        return there[:-1] if self.stays or self.policy == "skip" else there

    def pristine(self, name: str) -> Path:
        return self.root / "all" / name

    # -- the stream --------------------------------------------------------------------------

    def stream(self, **more: Any) -> Stream:
        usual = {"on_bad_file": self.policy, "layout": Layout(partition_by=("date", "hour"))}
        return follow(self.place, self.root_of_stream, EVERY, **(usual | self.options | more))

    def start(self, run: Callable[[FakeSession, Stream], object] = so_far) -> None:
        """Start until the stream goes on; act on what its errors say."""
        for _ in range(ATTEMPTS):
            try:
                run(self.session, self.stream())
            except KprotoError as error:
                self.act(str(error))
            else:
                return
        raise AssertionError(f"does not go on: {self.events}")

    def act(self, text: str) -> None:
        """Do what an error says."""
        self.events.append(text)
        assert "\n" not in text, text
        for pattern, act in REMEDIES.items():
            if found := re.search(pattern, text):
                act(self, *found.groups())
                return
        raise AssertionError(f"says nothing to do: {self.events}")

    def keep(self) -> None:
        """Make a copy of everything, as operators should."""
        for name in ("out", "checkpoint"):
            kept = self.root / "kept" / name
            shutil.rmtree(kept, ignore_errors=True)
            if (self.root_of_stream / name).exists():
                shutil.copytree(self.root_of_stream / name, kept)

    def restore(self, name: str) -> None:
        target = self.root_of_stream / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.root / "kept" / name, target)

    def happens(self, name: str) -> None:
        """Let a mishap happen, and put right what its errors say."""
        self.events.append(name)
        self.start()
        self.keep()
        MISHAPS[name](self)
        self.start()
        self.patch.undo()
        self.options = {}
        self.arrive(self.rng.randint(1, 2))

    def check(self) -> None:
        """End the stream: nothing is lost, and nothing there twice."""
        self.arrive(len(self.all))
        self.start(to_the_end)
        names = [each.name for each in self.all if each.name not in self.lost]
        for name in names:
            shutil.copy(self.pristine(name), self.place / name)
            if name in self.gone:  # as if it had no packets
                os.truncate(self.place / name, 24)
        whole = one_process([self.place / name for name in names], self.root / "one")
        gone = [str(self.place / name) for name in self.gone]
        whole["lineage"] = [
            row for row in whole["lineage"] if not any(f"{each}'" in row for each in gone)
        ]
        found = difference(whole, self.root_of_stream / "out")
        assert found == {}, (self.events, self.lost, found)


def _spread(capture: bytes, rng: random.Random | None) -> bytes:
    """The capture with its packets one after the other; with ``rng``, the clock is set back once,
    behind the first files."""
    head, found = records(capture)
    nanoseconds = head[:4] == bytes.fromhex("4d3cb2a1")
    back = rng.randrange(len(found) // 2, len(found)) if rng is not None else len(found)
    step = rng.randrange(2, 300) * 1_000_000_000 if rng is not None else 0
    made = []
    for number, record in enumerate(found):
        at = made_up.START_NS + number * STEP_NS - (step if number >= back else 0)
        seconds, rest = divmod(at, 1_000_000_000)
        rest = rest if nanoseconds else rest // 1000
        made.append(seconds.to_bytes(4, "little") + rest.to_bytes(4, "little") + record[8:])
    return head + b"".join(made)


# -- mishaps -----------------------------------------------------------------------------------


def _files_go(world: World) -> None:
    for path in world.taken():
        if world.rng.random() < 0.5:
            path.unlink()


def _planned(world: World) -> Path | None:
    """Kill the driver when Spark's log has a batch; return one of its files."""
    world.arrive(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MicroBatch, "run", _killed)
        try:
            so_far(world.session, world.stream())
        except Killed:
            offsets = world.root_of_stream / "checkpoint" / "offsets"
            last = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
            text = (offsets / str(last)).read_text()
            return next((p for p in world.place.iterdir() if f'/{p.name}"' in text), None)
    return None


def _killed(*about: object) -> None:
    raise Killed


def _planned_file_goes(world: World) -> None:
    path = _planned(world)
    if path is not None:
        path.unlink()
        if world.policy == "skip":
            world.gone.add(path.name)


def _planned_file_grows(world: World) -> None:
    """It was chosen while it was being copied."""
    if world.arrived + 2 > len(world.all):
        return
    first = world.all[world.arrived]
    world.arrive(2)
    data = first.read_bytes()
    end = 24
    for record in records(data)[1][:4]:
        end += len(record)
    (world.place / first.name).write_bytes(data[:end])
    path = _planned(world)
    if path is not None:
        shutil.copy(first, world.place / first.name)
    else:
        shutil.copy(first, world.place / first.name)


def _file_grows(world: World) -> None:
    for path in world.taken()[-1:]:
        with path.open("ab") as file:
            file.write(bytes(world.rng.randrange(1, 40)))


def _file_is_renamed(world: World) -> None:
    for path in world.taken()[-1:]:
        if world.pristine(path.name).stat().st_size > 24:
            path.rename(path.with_name(world.rng.choice(("0.pcap", "zz.pcap", f"{path.name}.old"))))


def _file_is_there_twice(world: World) -> None:
    """Under another name, read or not; or by a hard link."""
    found = [*world.taken()[-2:], *(world.place / each.name for each in world.all[: world.arrived])]
    path = world.rng.choice([each for each in found if each.exists()])
    if path.stat().st_size > 24:
        world.rng.choice((shutil.copy, os.link))(path, path.with_name("zz-copy.pcap"))


def _file_arrives_again(world: World) -> None:
    for path in world.taken():
        world.deliver(world.pristine(path.name))
        os.utime(path)


def _file_is_late(world: World) -> None:
    late = world.arrived
    if late + 2 >= len(world.all) or world.stays:
        return
    world.arrive(2, without=1)
    world.start()
    world.deliver(world.all[late])
    if world.policy == "skip":
        world.lost.add(world.all[late].name)


def _file_cannot_be_opened(world: World) -> None:
    if world.policy == "skip" or world.arrived >= len(world.all):
        return
    world.arrive(1)
    closed, real = world.place / world.all[world.arrived - 1].name, rotation._read

    def read(path: str, *about: int) -> Any:
        if path == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, *about)

    world.patch.setattr(rotation, "_read", read)


def _disk_is_full(world: World) -> None:
    """From some moment on, for tables, for the state, or both."""
    world.arrive(1)
    left = world.rng.randrange(1, 60)
    full = world.rng.choice(("out", "checkpoint/wiredump", ""))

    def filling(name: str) -> None:
        real = getattr(Location, name)

        def write(self: Location, *arguments: Any, **more: Any) -> Any:
            nonlocal left
            if f"the stream/{full}" in str(self):
                left -= 1
                if left <= 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            return real(self, *arguments, **more)

        world.patch.setattr(Location, name, write)

    for name in ("mkdir", "create", "open_writer", "write_bytes", "replace_bytes", "publish"):
        filling(name)


def _checkpoint_is_half_deleted(world: World) -> None:
    checkpoint = world.root_of_stream / "checkpoint"
    parts = [checkpoint / name for name in ("offsets", "commits", "wiredump")]
    parts += [checkpoint / "wiredump" / name for name in STATE]
    there = [part for part in parts if part.exists()]
    for part in world.rng.sample(there, world.rng.randint(1, min(3, len(there)))):
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)
    world.arrive(1)


def _file_of_the_state_is_deleted(world: World) -> None:
    state = world.root_of_stream / "checkpoint" / "wiredump"
    there = sorted(path for path in state.rglob("*") if path.is_file())
    world.rng.choice(there).unlink()
    world.arrive(1)


def _tables_are_deleted(world: World) -> None:
    out = world.root_of_stream / "out"
    tables = [path for path in out.iterdir() if path.is_dir()]
    shutil.rmtree(world.rng.choice([out, *tables]))
    world.arrive(1)


def _tables_are_deleted_meanwhile(world: World) -> None:
    real = MicroBatch.run

    def run(self: MicroBatch, spark: Any) -> Any:
        found = real(self, spark)
        if (world.root_of_stream / "out").exists():
            shutil.rmtree(world.root_of_stream / "out")
        return found

    world.arrive(1)
    world.patch.setattr(MicroBatch, "run", run)


def _second_driver(world: World) -> None:
    """It starts while a batch runs."""
    real, running = MicroBatch.run, list[bool]()

    def run(self: MicroBatch, spark: Any) -> Any:
        if not running:
            running.append(True)
            with pytest.raises(KprotoError, match="another driver is running the stream"):
                so_far(world.session, world.stream())
            with pytest.raises(KprotoError, match="another driver is running the stream"):
                world.stream(partitions=2).complete(world.session, ending=True)  # type: ignore[arg-type]
        return real(self, spark)

    world.arrive(1)
    world.patch.setattr(MicroBatch, "run", run)


def _options_change(world: World) -> None:
    out = str(world.root_of_stream / "out")
    other = world.rng.choice(
        (
            {"out": str(world.root_of_stream / "other")}, {"tables": EVERY[:4]}, {"bodies": False},
            {"dialect": "kafka"}, {"ports": (9092, 9093)}, {"values": True}, {"secrets": True},
            {"run": "another"}, {"zone": time_zone("Asia/Tokyo")},
            {"idle_ns": 5}, {"partitions": 3}, {"layout": Layout()},
            {"max_files": 1}, {"max_bytes": 9_000},
        )
    )  # fmt: skip
    if other.keys() & {"idle_ns", "partitions", "layout", "max_files", "max_bytes"}:
        world.options = other
    else:
        about: dict[str, Any] = {"out": out, "paths": {}, "tables": EVERY}
        world.options = {"options": Options(**(about | other))}
    world.arrive(1)


def _time_zone_changes(world: World) -> None:
    world.patch.setenv("TZ", world.rng.choice(("Asia/Tokyo", "America/New_York", "UTC")))
    time.tzset()
    world.arrive(1)


def _folder_goes(world: World) -> None:
    world.place.rename(world.root / "unmounted")


def _folder_is_empty(world: World) -> None:
    """A file system is not mounted."""
    world.place.rename(world.root / "unmounted")
    world.place.mkdir()
    world.start()
    world.place.rmdir()
    (world.root / "unmounted").rename(world.place)


def _links(world: World) -> None:
    (place,) = [world.place]
    newest = world.all[world.arrived - 1].name
    for name, target in (
        ("loop", "loop"), ("here", "."), ("none", "nowhere"), ("latest.pcap", newest),
        ("0.pcap", world.all[0].name),
    ):  # fmt: skip
        if not os.path.lexists(place / name):
            (place / name).symlink_to(target)
    world.arrive(1)


def _others(world: World) -> None:
    (world.place / "README.txt").write_text("The captures of broker 1.\n")
    (world.place / ".hidden.pcap").write_bytes(world.all[0].read_bytes())
    (world.place / "folder.pcap").mkdir(exist_ok=True)
    (world.place / "empty.txt").touch()
    world.arrive(1)


MISHAPS: Final[dict[str, Callable[[World], None]]] = {
    each.__name__.strip("_").replace("_", " "): each
    for each in (
        _files_go, _planned_file_goes, _planned_file_grows, _file_grows, _file_is_renamed,
        _file_is_there_twice, _file_arrives_again, _file_is_late, _file_cannot_be_opened,
        _disk_is_full, _checkpoint_is_half_deleted, _file_of_the_state_is_deleted,
        _tables_are_deleted, _tables_are_deleted_meanwhile, _second_driver, _options_change,
        _time_zone_changes, _folder_goes, _folder_is_empty, _links, _others,
    )
}  # fmt: skip


# -- what operators do about it ------------------------------------------------------------------


def _restore_file(world: World, path: str) -> None:
    world.deliver(world.pristine(Path(path).name))


def _remove_or_rename_back(world: World, path: str, original: str) -> None:
    if Path(original).exists():
        Path(path).unlink()
    else:
        Path(path).rename(original)


def _move_away(world: World, path: str) -> None:
    Path(path).unlink()
    world.lost.add(Path(path).name)


def _undo(world: World, *_: str) -> None:
    world.patch.undo()


def _set_as_before(world: World) -> None:
    world.options = {}


def _restore_checkpoint(world: World) -> None:
    world.restore("checkpoint")


def _restore_tables(world: World) -> None:
    world.patch.undo()
    world.restore("out")


def _mount(world: World) -> None:
    (world.root / "unmounted").rename(world.place)


REMEDIES: Final[dict[str, Callable[..., None]]] = {
    r"^(.+) changed although there is a newer file.*Restore it": _restore_file,
    r"^(.+) was removed before its rows were committed: restore it": _restore_file,
    r"^(.+) begins as (.+) does: it is a copy, or was .*Remove it, or rename it back":
        _remove_or_rename_back,
    r"^(.+) begins before .*Move it away": _move_away,
    r"^(.+) cannot be read: Permission denied. Correct this, and start again": _undo,
    r"No space left on device: correct this, and start again": _undo,
    r"the two must be equal": _set_as_before,
    r"restore the checkpoint and its state": _restore_checkpoint,
    r"does not exist, but the checkpoint continues its tables: restore it": _restore_tables,
    r"has tables without a run id: name another folder": _restore_checkpoint,
    r"does not exist: check --follow": _mount,
}  # fmt: skip
