"""What a case does to its cluster, in the words of ``mockbroker ctl``: ``failover 3``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kspec.errors import KspecError
from mockbroker import MockCluster

__all__ = ["STEPS", "check_step", "take_step"]


def _milliseconds(text: str) -> int:
    if text.endswith("ms"):
        return int(text[:-2])
    return int(text[:-1]) * 1000 if text.endswith("s") else int(text)


_Step = Callable[[MockCluster, Sequence[str]], Any]

STEPS: Final[Mapping[str, tuple[str, _Step]]] = {
    "failover": ("BROKER", lambda mock, words: mock.failover(int(words[0]))),
    "resign-controller": ("", lambda mock, words: mock.resign_controller()),
    "expire-session": ("BROKER", lambda mock, words: mock.expire_session(int(words[0]))),
    "stop-broker": ("BROKER", lambda mock, words: mock.stop_broker(int(words[0]))),
    "start-broker": ("BROKER", lambda mock, words: mock.start_broker(int(words[0]))),
    "join-isr": ("PARTITION BROKER", lambda mock, words: mock.join_isr(words[0], int(words[1]))),
    "leave-isr": ("PARTITION BROKER", lambda mock, words: mock.leave_isr(words[0], int(words[1]))),
    "hold-metadata": ("BROKER", lambda mock, words: mock.hold_metadata(int(words[0]))),
    "release-metadata": ("BROKER", lambda mock, words: mock.release_metadata(int(words[0]))),
    "hold-elections": ("", lambda mock, words: mock.hold_elections()),
    "release-elections": ("", lambda mock, words: mock.release_elections()),
    "advance": ("TIME", lambda mock, words: mock.advance(_milliseconds(words[0]))),
}
"""Word -> what follows it, and what it does."""


def check_step(text: str) -> _Step:
    """Raises KspecError for what is no step."""
    verb, *words = text.split() or [""]
    known = STEPS.get(verb)
    if known is None:
        raise KspecError(f"{text!r} is no step; there are {', '.join(STEPS)}")
    if len(words) != len(known[0].split()):
        raise KspecError(f"{text!r}: write `{verb} {known[0]}`")
    return known[1]


async def take_step(mock: MockCluster, text: str) -> None:
    """Raises ClusterError for what cannot be done."""
    done = check_step(text)(mock, text.split()[1:])
    if isinstance(done, Awaitable):
        await done
