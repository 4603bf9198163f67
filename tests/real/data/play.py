"""Play sessions on two clusters at once and compare their transcripts field by field."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.schema.versions import Versions
from tests.real.answers import differences
from tests.real.compare import Difference
from tests.real.data.registry import Session
from tests.real.data.side import Cluster, Side

__all__ = ["Tally", "Transcript", "compare", "play_on", "play_on_both"]

AT_ONCE: Final = 6
"""Sessions that run at the same time: many wait for timers of Kafka's."""

STOPPED: Final = "could not go on"

Transcript = list[tuple[str, Any]]


@dataclass
class Tally:
    """What was compared, and what was not the same."""

    sessions: int = 0
    responses: int = 0
    fields: int = 0
    by_api: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    """Sessions whose script raised on Kafka, which is no comparison."""

    def __str__(self) -> str:
        apis = ", ".join(f"{name} {count}" for name, count in self.by_api.most_common())
        return (
            f"{self.sessions} sessions, {self.responses} responses ({apis}), {self.fields} fields, "
            f"{len(self.differences)} answers with a known difference"
        )


async def play_on(
    cluster: Cluster, chosen: Sequence[Session], served: Mapping[int, Versions],
) -> dict[str, Transcript]:  # fmt: skip
    """Every session's transcript, which ends with the reason where a script cannot go on."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(session: Session) -> tuple[str, Transcript]:
        side = Side(cluster, session.name, session.api_key, session.version, served)
        async with gate:
            try:
                await session.script(side)
            except Exception:
                side.remark(STOPPED, traceback.format_exc(limit=-3))
            finally:
                side.close()
        return session.name, side.transcript()

    return dict(await asyncio.gather(*map(one, chosen)))


async def play_on_both(
    real: Cluster, mock: Cluster, chosen: Sequence[Session], served: Mapping[int, Versions],
) -> tuple[dict[str, Transcript], dict[str, Transcript]]:  # fmt: skip
    return await asyncio.gather(play_on(real, chosen, served), play_on(mock, chosen, served))


def compare(real: Mapping[str, Transcript], mock: Mapping[str, Transcript]) -> Tally:
    tally = Tally(sessions=len(real))
    for name, transcript in real.items():
        theirs = mock[name]
        for step in range(max(len(transcript), len(theirs))):
            label, answer = transcript[step] if step < len(transcript) else ("nothing", None)
            found, other = theirs[step] if step < len(theirs) else ("nothing", None)
            differing, count = differences(
                {"request": label, "answer": answer}, {"request": found, "answer": other}
            )
            if label == STOPPED:
                tally.stopped.append(f"{name}: {answer}")
            tally.responses += 1
            tally.fields += count
            tally.by_api[label.partition(" ")[0]] += 1
            if differing:
                tally.differences.append(Difference(name, step + 1, label, tuple(differing)))
    return tally
