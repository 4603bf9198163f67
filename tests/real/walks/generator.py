"""Draws programs of the data plane from a seed alone, so that a seed reproduces a program.

The generator keeps a rough model of offsets, sequences and members, so that most requests make
sense; some are wrong on purpose. It leaves out requests that have no single outcome on a real
cluster; each such rule is a method or a comment with its reason.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tests.real.programs.model import Program, ProgramStep

__all__ = [
    "CONSUMER_GROUPS",
    "PARTITIONS",
    "PRODUCERS",
    "REPLICAS",
    "TRANSACTIONAL",
    "UNKNOWN_TOPIC",
    "walks",
]

UNKNOWN_TOPIC: Final = "unknown"
PARTITIONS: Final = {"a": 3, "b": 1, "c": 2}
"""Topic -> partitions. ``b`` has two replicas and moves; ``c`` has a codec of its own, so that the
sizes of its batches are those of each side's compressor."""
PLACES: Final = tuple(
    (topic, index) for topic, count in PARTITIONS.items() for index in range(count)
)
TRANSACTIONAL: Final = "t"
"""The topic of transactions, which no other step changes: brokers write markers by their clock."""
REPLICAS: Final = {
    "a": [[1], [2], [1]], "b": [[1, 2]], "c": [[1], [2]], TRANSACTIONAL: [[1], [2]],
}  # fmt: skip
MOVES: Final = ([1, 2], [2, 1], [1], [2])
# Neither records that contradict the header of their batch, nor a wrong maximum timestamp: the mock
# does not read records unless it has to (known.py).
CODECS: Final = ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD")
DAMAGES: Final = ("crc", "base_offset", "count", "control", "sequence", "short", "two", "magic",
                  "append_time", "codec", "empty")  # fmt: skip
PRODUCERS: Final = (900_007, 900_008)
"""Ids that no broker gives out: nobody checks where an id comes from."""
TRANSACTIONAL_PRODUCERS: Final = ("x", "y")
GROUPS: Final = ("g", "h")
MEMBERS: Final = ("m1", "m2", "m3", "m4", "m5")
CONSUMER_GROUPS: Final = ("k", "r")
"""Groups of the consumer protocol; members of ``r`` subscribe to a regular expression."""
CONSUMERS: Final = ("n1", "n2", "n3", "n4", "n5")
"""``n4`` and ``n5`` are two members of one instance."""
REGEX: Final = "[ac]"
"""The only one: a group resolves another one ten seconds later."""
HOUR_MS: Final = 3_600_000
SEGMENT_MS: Final = "300000"
"""Less than lies between some timestamps, and longer than a program takes: the clock counts for
records without a timestamp, and for those that the broker stamps."""

_Steps: TypeAlias = list[dict[str, Any]]


class _Writer:
    """Draws the steps of one program."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._ends = dict.fromkeys(PLACES, 0)
        self._sequences: dict[tuple[str, int, int], tuple[int, int]] = {}
        """(topic, partition, producer id) -> its epoch and the next sequence."""
        self._sent: list[dict[str, Any]] = []
        self._cut: set[tuple[str, int]] = set()
        """Partitions whose records were deleted."""
        self._members: dict[str, list[str]] = {group: [] for group in GROUPS}
        self._consumers: dict[str, list[str]] = {group: [] for group in CONSUMER_GROUPS}
        self._sessions: set[str] = set()
        self._transactional: set[str] = set()
        """Producers that have an id."""
        self._count = 0

    def program(self, length: int) -> list[ProgramStep]:
        steps: list[ProgramStep] = [*map(self._create, PARTITIONS)]
        steps.append(
            {"do": "create", "topic": TRANSACTIONAL, "replicas": REPLICAS[TRANSACTIONAL],
             "configs": {"retention.ms": "-1"}}
        )  # fmt: skip
        kinds: list[tuple[float, Callable[[], _Steps]]] = [
            (9, self._produce),
            (8, self._fetch),
            (3, self._fetch_in_session),
            (0.5, self._wait_for_records),
            (3, self._list_offsets),
            (1.5, self._delete_records),
            (1, self._epoch_ends),
            (1.5, self._configs),
            (1, self._move),
            (2.5, self._commit),
            (2, self._committed),
            (0.7, self._delete_offsets),
            (4, self._join),
            (3, self._rebalance),
            (3, self._sync),
            (2, self._beat),
            (1.2, self._leave),
            (7, self._beats),
            (1, self._commit_of_consumer),
            (0.7, self._list_groups),
            (0.6, self._delete_groups),
            (0.7, self._init_producer),
            (1, self._producers),
            (4, self._transact),
        ]
        weights = [weight for weight, _ in kinds]
        while len(steps) < length:
            ((_, make),) = self._draw.choices(kinds, weights)
            for step in make():
                step.setdefault("at", self._draw.randrange(60))
                steps.append(step)
        return steps

    # ---- what steps are about ----------------------------------------------------------------

    def _chance(self, probability: float) -> bool:
        return self._draw.random() < probability

    def _place(self, wrong: float = 0.03) -> tuple[str, int]:
        if self._chance(wrong):
            return self._draw.choice([("a", 9), ("b", -1), (UNKNOWN_TOPIC, 0)])
        return self._draw.choices(PLACES, [3, 2, 2, 4, 1, 1])[0]

    def _places(self, most: int, *, repeats: bool = True) -> list[tuple[str, int]]:
        """Distinct partitions, except for a few that are named twice."""
        found = list(dict.fromkeys(self._place() for _ in range(self._draw.randint(1, most))))
        if repeats and self._chance(0.02):
            found.append(self._draw.choice(found))
        return sorted(found)

    def _offset(self, place: tuple[str, int]) -> int:
        end = self._ends.get(place, 0)
        choices = [0, end, self._draw.randint(0, end), self._draw.randint(0, end)]
        if self._chance(0.08):
            choices = [end + 1, end + 100, -1, -2]
        return self._draw.choice(choices)

    def _delta_ms(self) -> int:
        """A timestamp, counted from an hour before the run. None may come near the present, which
        comparisons take for the broker's clock."""
        return self._draw.choice([0, 0, 1, 5, 50, 500, 5_000, 50_000, 600_000, -50_000, -HOUR_MS])

    # ---- topics ------------------------------------------------------------------------------

    def _create(self, topic: str) -> dict[str, Any]:
        configs = {"retention.ms": "-1"}
        if topic == "c":
            configs["compression.type"] = self._draw.choice(["gzip", "lz4", "zstd", "snappy"])
        if self._chance(0.25):
            configs["message.timestamp.type"] = "LogAppendTime"
        if self._chance(0.15):
            configs["segment.ms"] = SEGMENT_MS
        if self._chance(0.15):
            configs.update(self._compaction())
        return {"do": "create", "topic": topic, "replicas": REPLICAS[topic], "configs": configs}

    def _compaction(self) -> dict[str, str]:
        """No record is old enough for the cleaner, which runs when it likes."""
        policy = self._draw.choice(["compact", "compact,delete"])
        return {"cleanup.policy": policy, "min.compaction.lag.ms": str(10**15)}

    def _configs(self) -> _Steps:
        """The codec of ``a`` and ``b`` never changes to another one than ``uncompressed``: sizes
        are compared. Nothing is deleted by age, which a thread of the broker's does."""
        draw = self._draw
        topic = draw.choices(["a", "b", "c"], [3, 3, 1])[0]
        codecs = CODECS[1:] if topic == "c" else ("producer", "uncompressed")
        name, values = draw.choice([
            ("message.timestamp.type", ["CreateTime", "LogAppendTime"]),
            ("max.message.bytes", ["150", "300", "1000", "1048588"]),
            ("compression.type", [each.lower() for each in codecs]),
            ("message.timestamp.before.max.ms", ["1000000", "9000000"]),
            ("message.timestamp.after.max.ms", ["1000", "9000000"]),
            ("segment.ms", [SEGMENT_MS, SEGMENT_MS, "604800000"]),
            ("min.insync.replicas", ["1", "2", "3"]),
        ])  # fmt: skip
        value = None if self._chance(0.3) and name != "compression.type" else draw.choice(values)
        return [{"do": "configs", "topic": topic, "rows": [[name, value]]}]

    def _move(self) -> _Steps:
        return [{"do": "move", "topic": "b", "partition": 0,
                 "replicas": self._draw.choice(MOVES)}]  # fmt: skip

    # ---- records -----------------------------------------------------------------------------

    def _batch(self, place: tuple[str, int]) -> dict[str, Any]:
        draw = self._draw
        self._count += 1
        count = draw.choice([1, 1, 1, 2, 3, 5, 10])
        batch: dict[str, Any] = {
            "tag": self._count, "records": count, "size": draw.choice([0, 1, 5, 20, 100]),
            "codec": draw.choices(CODECS, [5, 1, 1, 1, 1])[0], "delta": self._delta_ms(),
            "gap": draw.choice([0, 0, 1, 100, -7]),
        }  # fmt: skip
        if self._chance(0.1):
            batch["keyless"] = True
        if self._chance(0.1):
            batch["headers"] = True
        if self._chance(0.04):
            batch["delta"] = None
        damaged = self._chance(0.12)
        if self._chance(0.35):
            batch["producer"] = self._sequence(place, count, sends=not damaged)
        if damaged:
            batch["damage"] = draw.choice(DAMAGES)
        elif place in self._ends:
            self._ends[place] += count
        return batch

    def _sequence(self, place: tuple[str, int], count: int, *, sends: bool) -> list[int]:
        """(id, epoch, first sequence): mostly the next one of the producer."""
        draw = self._draw
        producer = draw.choice(PRODUCERS)
        key = (*place, producer)
        epoch, following = self._sequences.get(key, (0, draw.choice([0, 0, 0, 5, 2**31 - 3])))
        match draw.randrange(14):
            case 0:
                return [producer, epoch, (following + draw.choice([1, 3])) % 2**31]
            case 1:
                return [producer, max(epoch - 1, 0), 0]
            case 2:
                return [producer, epoch, max(following - draw.randint(1, 12), 0)]
            case 3:
                epoch, following = epoch + 1, draw.choice([0, 0, 0, 2])
        if sends:
            self._sequences[key] = (epoch, (following + count) % 2**31)
        return [producer, epoch, following]

    def _produce(self) -> _Steps:
        if self._sent and self._chance(0.08):
            return [dict(self._draw.choice(self._sent[-6:]))]
        # Of two batches for a partition Kafka appends one and answers the other's error (known.py).
        places = self._places(3, repeats=False)
        acks = self._draw.choices([-1, 1, 0, 2], [10, 4, 1, 0.3])[0]
        # The high watermark follows an append to two replicas at some time, unless it is awaited.
        if acks == 1 and any(topic == "b" for topic, _ in places):
            acks = -1
        # Without an answer nobody knows when the records are there.
        if acks == 0:
            places = [("a", 9)]
        rows = [[*place, self._batch(place)] for place in places]
        step = {"do": "produce", "rows": rows, "acks": acks}
        self._sent.append(step)
        return [dict(step)]

    def _init_producer(self) -> _Steps:
        return [{"do": "init-producer", "broker": self._draw.choice([1, 2])}]

    def _producers(self) -> _Steps:
        """What leaders know of idempotent producers."""
        return [{"do": "producers", "rows": [list(place) for place in self._places(3)],
                 "broker": self._broker()}]  # fmt: skip

    def _transact(self) -> _Steps:
        """A part of a transaction. A producer begins with an id; later it may begin anew, which
        ends its transaction."""
        draw = self._draw
        producer = draw.choice(TRANSACTIONAL_PRODUCERS)
        steps: _Steps = []
        if producer not in self._transactional or self._chance(0.1):
            self._transactional.add(producer)
            steps.append({"do": "txn-init"})
        for _ in range(draw.randint(1, 4)):
            self._count += 1
            partition = draw.randrange(2)
            kinds: list[tuple[float, dict[str, Any]]] = [
                (4, {"do": "txn-produce", "partition": partition, "tag": self._count,
                     "records": draw.choice([1, 1, 2, 5])}),
                (1, {"do": "txn-add", "rows": draw.choice([[0], [1], [0, 1], [0, 9]])}),
                (1, {"do": "txn-offsets", "group": "tg",
                     "rows": [[partition, draw.randrange(50)]]}),
                (2, {"do": "txn-end", "commit": self._chance(0.6)}),
                (1, {"do": "txn-describe"}),
                (1.5, {"do": "fetch", "max_bytes": 50 << 20, "broker": 0, "isolation":
                       draw.choice([0, 1, 1]), "rows": [[TRANSACTIONAL, partition,
                       draw.choice([0, 0, draw.randrange(30)]), self._limit(), -1]]}),
                (0.7, {"do": "list-offsets", "broker": 0, "isolation": 1,
                       "rows": [[TRANSACTIONAL, partition, draw.choice([-1, -2]), 0]]}),
                (0.5, {"do": "producers", "broker": 0, "rows": [[TRANSACTIONAL, partition]]}),
                (0.5, {"do": "committed", "group": "tg", "everything": True,
                       "stable": self._chance(0.5)}),
            ]  # fmt: skip
            weights = [weight for weight, _ in kinds]
            ((_, step),) = draw.choices(kinds, weights)
            if step["do"] == "txn-produce" and self._chance(0.08):
                step["skip"] = draw.choice([-5, -1, 1, 3])
            steps.append(step)
        for step in steps:
            if step["do"].startswith("txn-"):
                step["producer"] = producer
        return steps

    def _fetch_rows(self, most: int) -> list[list[Any]]:
        """(topic, partition, offset, partition's limit, last fetched epoch) rows."""
        rows = []
        for place in self._places(most):
            limit = self._limit() if place[0] != "c" else 1 << 20
            fetched = self._draw.choice([0, 0, 1, 5]) if self._chance(0.1) else -1
            rows.append([*place, self._offset(place), limit, fetched])
        return rows

    def _limit(self) -> int:
        return self._draw.choice([1 << 20, 1 << 20, 1 << 20, 0, 1, self._draw.randint(60, 700)])

    def _fetch(self) -> _Steps:
        rows = self._fetch_rows(4)
        limit = 50 << 20
        if all(topic != "c" for topic, *_ in rows) and self._chance(0.4):
            limit = self._draw.choice([0, 1, self._draw.randint(60, 1500)])
        broker = 0 if any(row[0] == "b" for row in rows) else self._broker()
        step = {"do": "fetch", "rows": rows, "max_bytes": limit, "broker": broker}
        if self._chance(0.3):
            step["isolation"] = 1
        return [step]

    def _broker(self) -> int:
        """Where to send what has no one leader: 0 is the leader of the first row."""
        return self._draw.choices([0, 1, 2], [8, 1, 1])[0]

    def _fetch_in_session(self) -> _Steps:
        """A new session, then some fetches in it, with changes between them that it returns."""
        draw = self._draw
        name = draw.choice(["s1", "s2"])
        broker = draw.choice([1, 2])
        at = draw.randrange(60)
        steps: _Steps = []
        if name not in self._sessions or self._chance(0.3):
            self._sessions.add(name)
            rows = self._session_rows(5) or [["a", 0, 0, 1 << 20, -1]]
            steps.append({"do": "fetch", "session": name, "how": "new", "rows": rows})
        for _ in range(draw.randint(1, 3)):
            how = draw.choices(["next", "same", "gap", "close"], [14, 1, 1, 1])[0]
            rows = self._session_rows(2) if self._chance(0.4) else []
            step: dict[str, Any] = {"do": "fetch", "session": name, "how": how, "rows": rows}
            if self._chance(0.15):
                step["forget"] = [list(self._place())]
            steps.append(step)
            if self._chance(0.5):
                steps += self._produce()
        for step in steps:
            if step["do"] == "fetch":
                step["broker"] = broker
                step["at"] = at if self._chance(0.97) else draw.randrange(60)
                step["max_bytes"] = 50 << 20
        return steps

    def _session_rows(self, most: int) -> list[list[Any]]:
        """Not of ``b``: a follower learns the high watermark some time after an append."""
        return [row for row in self._fetch_rows(most) if row[0] not in "bc"]

    def _wait_for_records(self) -> _Steps:
        """A fetch from the end, which the next append answers. Kafka counts the bytes of records
        that are deleted meanwhile, so it waits for one byte."""
        place = self._draw.choice(PLACES[:3])
        row = [*place, self._ends[place], 1 << 20, -1]
        step = {"do": "fetch", "rows": [row], "wait": 120_000, "max_bytes": 50 << 20, "broker": 0}
        return [step, *self._produce()]

    def _list_offsets(self) -> _Steps:
        rows: list[list[Any]] = []
        for place in self._places(3):
            special = [-1, -2, -4, -5, -6, -7]
            # Of a log whose start was moved, Kafka may return a deleted record (known.py).
            if place not in self._cut:
                special.append(-3)
            timestamp = self._draw.choice(special) if self._chance(0.5) else None
            rows.append([*place, timestamp, self._delta_ms() if timestamp is None else 0])
        step: dict[str, Any] = {"do": "list-offsets", "rows": rows, "broker": self._broker()}
        if self._chance(0.3):
            step["isolation"] = 1
        if self._chance(0.1):
            step["epoch"] = self._draw.choice([0, 1, 7])
        return [step]

    def _delete_records(self) -> _Steps:
        rows = []
        for place in self._places(2):
            offset = -1 if self._chance(0.1) else self._offset(place)
            self._cut.add(place)
            rows.append([*place, offset])
        return [{"do": "delete-records", "rows": rows}]

    def _epoch_ends(self) -> _Steps:
        rows = [[*place, self._draw.choice([0, 0, 1, 2, 5, -1])] for place in self._places(3)]
        return [{"do": "epoch-ends", "rows": rows, "broker": self._broker()}]

    # ---- groups ------------------------------------------------------------------------------

    def _group(self) -> str:
        return self._draw.choices(GROUPS, [4, 1])[0]

    def _member(self, group: str, wrong: float = 0.1) -> str:
        known = self._members[group]
        if not known or self._chance(wrong):
            return self._draw.choice([*MEMBERS, "nobody"])
        return self._draw.choice(known)

    def _joins(self, group: str, member: str) -> dict[str, Any]:
        if member not in self._members[group] and member != "nobody":
            self._members[group].append(member)
        # Preferences of members agree, so that votes are never equal: a hash decides then.
        protocols = self._draw.choice([["range"], ["range", "sticky"], ["range", "sticky"]])
        if self._chance(0.03):
            protocols = ["cooperative"]
        step: dict[str, Any] = {"do": "join", "group": group, "member": member,
                                "protocols": protocols}  # fmt: skip
        if member in ("m4", "m5"):
            step["instance"] = "one"
        if self._chance(0.1):
            step["data"] = self._draw.choice(["x", "y"])
        if self._chance(0.02):
            step["kind"] = "connect"
        return step

    def _join(self) -> _Steps:
        group = self._group()
        return [self._joins(group, self._draw.choice(MEMBERS))]

    def _rebalance(self) -> _Steps:
        """All members join, then all sync: as clients do after error 27."""
        group = self._group()
        members = list(self._members[group]) or ["m1"]
        self._draw.shuffle(members)
        steps = [self._joins(group, member) for member in members]
        self._draw.shuffle(members)
        return [*steps, *({"do": "sync", "group": group, "member": each} for each in members)]

    def _of_member(self, do: str, group: str) -> dict[str, Any]:
        step: dict[str, Any] = {"do": do, "group": group, "member": self._member(group)}
        if self._chance(0.1):
            step["generation"] = self._draw.choice([-1, 1])
        if self._chance(0.05):
            step["instance"] = self._draw.choice(["one", "two"])
        return step

    def _sync(self) -> _Steps:
        step = self._of_member("sync", self._group())
        if self._chance(0.05):
            step["protocol"] = "sticky"
        return [step]

    def _beat(self) -> _Steps:
        return [self._of_member("heartbeat", self._group())]

    def _leave(self) -> _Steps:
        group = self._group()
        rows: list[list[Any]] = []
        for _ in range(self._draw.choice([1, 1, 1, 2])):
            member = self._member(group)
            if member in self._members[group]:
                self._members[group].remove(member)
            rows.append([member, "one" if member in ("m4", "m5") and self._chance(0.6) else None])
        return [{"do": "leave", "group": group, "rows": rows}]

    # ---- consumer groups ---------------------------------------------------------------------

    def _beats(self) -> _Steps:
        """Some heartbeats of a group's members, or one of each until nothing moves any more."""
        draw = self._draw
        group = draw.choices(CONSUMER_GROUPS, [3, 1])[0]
        known = self._consumers[group]
        if known and self._chance(0.25):
            order = draw.sample(known, len(known))
            return [self._stays(group, each, "given") for each in (*order, *order)]
        return [self._beat_of_one(group) for _ in range(draw.randint(2, 5))]

    def _beat_of_one(self, group: str) -> dict[str, Any]:
        draw, known = self._draw, self._consumers[group]
        if not known or self._chance(0.25):
            return self._joins_as_consumer(group, draw.choice(CONSUMERS))
        member = draw.choice(known)
        match draw.randrange(8):
            case 0:
                how = "away" if member in ("n4", "n5") and self._chance(0.6) else "leave"
                known.remove(member)
                return self._of_consumer(group, member, how)
            case 1:
                step = self._stays(group, member, "given")
                if group == "k":
                    step["topics"] = self._topics()
                return step
        owned = draw.choices(["given", "owned", "less", "more", "nothing", None],
                             [6, 2, 1, 1, 0.5, 4])[0]  # fmt: skip
        step = self._stays(group, member, owned)
        if self._chance(0.08):
            step["epoch"] = draw.choice([-2, -1, 1])
        return step

    def _topics(self) -> list[str]:
        return self._draw.choice(
            [["a"], ["a"], ["a", "c"], ["b", "a"], ["c"], [], [UNKNOWN_TOPIC], ["a", "b", "c"]]
        )

    def _of_consumer(self, group: str, member: str, how: str) -> dict[str, Any]:
        step: dict[str, Any] = {"do": "beat", "group": group, "member": member, "how": how}
        if member in ("n4", "n5"):
            step["instance"] = "one"
        if self._chance(0.02):
            step["instance"] = self._draw.choice(["two", ""])
        return step

    def _stays(self, group: str, member: str, owned: str | None) -> dict[str, Any]:
        step = self._of_consumer(group, member, "stay")
        if owned is not None:
            step["owned"] = owned
        if self._chance(0.05):
            step["rack"] = self._draw.choice(["r1", "r2"])
        if self._chance(0.02):
            step["timeout"] = self._draw.choice([0, 700_000])
        return step

    def _joins_as_consumer(self, group: str, member: str) -> dict[str, Any]:
        """``uniform`` deals in the order of a hash table, so every member names ``range``."""
        step = self._of_consumer(group, member, "join")
        step["assignor"] = "range"
        if group == "r":
            step["regex"] = REGEX
            if self._chance(0.2):
                step["topics"] = ["b"]
        else:
            # A member that joins without topics does not raise the epoch, and Kafka deals as if it
            # had the topics of the first member.
            step["topics"] = self._topics() or ["a"]
        match self._draw.randrange(40):
            case 0:
                step["regex"] = "("
            case 1:
                step["assignor"] = "sticky"
            case 2:
                step["epoch"] = self._draw.choice([3, -3])
            case _:
                if member not in self._consumers[group]:
                    self._consumers[group].append(member)
        return step

    def _commit_of_consumer(self) -> _Steps:
        """A member commits, or reads, with its epoch."""
        draw = self._draw
        group = draw.choice(CONSUMER_GROUPS)
        member = draw.choice(self._consumers[group] or [*CONSUMERS])
        step: dict[str, Any] = {"group": group, "member": member}
        if self._chance(0.15):
            step["generation"] = draw.choice([-1, 1])
        if self._chance(0.4):
            rows = [[index] for index in range(3) if self._chance(0.6)]
            return [{"do": "committed", **step, "topic": "a", "rows": rows}]
        rows = [[index, draw.randrange(100), 0] for index in range(3) if self._chance(0.6)]
        return [{"do": "commit", **step, "topic": "a", "rows": rows, "epoch": -1}]

    # ---- offsets -----------------------------------------------------------------------------

    def _commit(self) -> _Steps:
        group = self._group()
        step = self._of_member("commit", group)
        if self._chance(0.3):
            step["member"] = None
        topic = self._draw.choice([*PARTITIONS, "a", "a", UNKNOWN_TOPIC])
        count = PARTITIONS.get(topic, 1)
        metadata = self._draw.choice([0, 1, None])
        step["topic"] = topic
        step["rows"] = [
            [index, self._draw.randrange(100), metadata] for index in range(count + 1)
            if self._chance(0.6)
        ]  # fmt: skip
        # A commit of nothing else than metadata that is too long makes a group in 4.0 and later,
        # which only the next write of the coordinator shows.
        if len(step["rows"]) > 1 and self._chance(0.2):
            step["rows"][-1][2] = 4097
        step["epoch"] = self._draw.choice([-1, -1, 0, 3])
        return [step]

    def _committed(self) -> _Steps:
        step: dict[str, Any] = {"do": "committed", "group": self._group()}
        if self._chance(0.4):
            step["everything"] = True
        else:
            step["topic"] = self._draw.choice([*PARTITIONS, UNKNOWN_TOPIC])
            step["rows"] = [[index] for index in range(4) if self._chance(0.6)]
        if self._chance(0.2):
            step["groups"] = ["h", "g", "unknown"]
        if self._chance(0.2):
            step["stable"] = True
        return [step]

    def _delete_offsets(self) -> _Steps:
        topic = self._draw.choice([*PARTITIONS, UNKNOWN_TOPIC])
        rows = [[index] for index in range(3) if self._chance(0.7)]
        group = self._group() if self._chance(0.8) else self._draw.choice(CONSUMER_GROUPS)
        return [{"do": "delete-offsets", "group": group, "topic": topic, "rows": rows}]

    def _delete_groups(self) -> _Steps:
        names = (*GROUPS, *CONSUMER_GROUPS, "unknown")
        return [{"do": "delete-groups", "rows": [[name] for name in names
                                                 if self._chance(0.6)]}]  # fmt: skip

    def _list_groups(self) -> _Steps:
        states = self._draw.choice([[], ["Stable"], ["empty", "PreparingRebalance"]])
        return [{"do": "list-groups", "states": states}]


def walks(seed: str, batch: int, count: int, length: int) -> list[Program]:
    """``count`` programs of about ``length`` steps that can be played at the same time."""
    found = []
    for place in range(count):
        draw = random.Random(f"data:{seed}:{batch}:{place}")
        found.append(Program(f"{batch}-{place}", _Writer(draw).program(length)))
    return found
