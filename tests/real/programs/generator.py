"""Random programs: what they do is drawn from a seed alone, so a seed brings a program back.

The generator keeps a rough idea of the cluster (which topics there are, which brokers run), so that
most steps make sense; some do not, on purpose. It leaves out what has no single outcome on a real
cluster, and what Kafka itself cannot do; each such rule is a method that says why.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.real.kafka import BROKER_IDS
from tests.real.programs.model import Program, ProgramStep, Setting
from tests.real.programs.requests import RATES
from tests.real.steps import APPEND, DELETE, PREFERRED, SET, SUBTRACT, UNCLEAN

__all__ = ["Script", "programs"]

UNKNOWN_BROKER: Final = 9
UNKNOWN_TOPIC: Final = "unknown"
TOPICS: Final = ("a", "b", "c")
PARTITIONS_AT_MOST: Final = 4

_THROTTLES: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


class Script:
    """What happens to the brokers in a batch of programs, and who is left between those steps.

    Broker 1 is the controller when a batch begins, if there is a ZooKeeper.
    """

    def __init__(self, draw: random.Random, setting: Setting, events: int) -> None:
        self._draw = draw
        self._setting = setting
        self._zookeeper = setting.zookeeper
        self._controller = 1
        self._stopped: set[int] = set()
        self._frozen: set[int] = set()
        self.steps: list[ProgramStep] = []
        self.down: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
        """Who is stopped, and who is frozen: at first, and after each step."""
        for _ in range(events):
            self._add(self._event())
        for broker_id in sorted(self._frozen):
            self._add({"do": "thaw", "broker": broker_id})
        for broker_id in sorted(self._stopped):
            self._add({"do": "start", "broker": broker_id})

    def _add(self, step: ProgramStep) -> None:
        broker = step.get("broker", 0)
        match step["do"]:
            case "stop" | "kill":
                self._stopped.add(broker)
                if broker == self._controller:
                    self._controller = self._live()[0]
            case "start":
                self._stopped.discard(broker)
            case "freeze":
                self._frozen.add(broker)
            case "thaw":
                self._frozen.discard(broker)
            case "move-controller":
                self._controller = step["to"]
        self.steps.append(step)
        self.down.append((frozenset(self._stopped), frozenset(self._frozen)))

    def _event(self) -> ProgramStep:
        kinds: list[tuple[float, str, Sequence[int]]] = [
            (4, "stop", self._stoppable()),
            (4, "start", sorted(self._stopped)),
            (4, "freeze", self._spare()),
            (3, "thaw", sorted(self._frozen)),
            (2, "kill", self._killable()),
            (1, "move-controller", self._successors()),
            (2, "kill-controller", self._quorum()),
            (1, "elect-all", [0]),
            (1, "broker-configs", self._answering()),
        ]
        possible = [each for each in kinds if each[2]]
        ((_, do, brokers),) = self._draw.choices(possible, [each[0] for each in possible])
        if do == "kill-controller":
            return {"do": do}
        if do == "elect-all":
            return {"do": do, "type": self._draw.choice([PREFERRED, PREFERRED, UNCLEAN])}
        broker = self._draw.choice(list(brokers))
        if do == "move-controller":
            return {"do": do, "to": broker}
        if do == "broker-configs":
            return {"do": do, "broker": broker, "operations": self._rates()}
        return {"do": do, "broker": broker}

    def _live(self) -> list[int]:
        return [broker for broker in BROKER_IDS if broker not in self._stopped]

    def _answering(self) -> list[int]:
        return [broker for broker in self._live() if broker not in self._frozen]

    def _spare(self) -> list[int]:
        """Brokers that can go without the last two going too. With ZooKeeper the controller is not
        among them: whether its own shutdown is dealt with by it or its successor is a race, and
        nobody answers while it is frozen."""
        if len(self._answering()) <= 2:
            return []
        if self._zookeeper:
            return [broker for broker in self._answering() if broker != self._controller]
        return [broker for broker in self._answering() if broker not in self._setting.spared]

    def _stoppable(self) -> list[int]:
        """A KRaft controller lets a broker shut down once all others have seen its leaders move,
        so none shuts down while another is frozen."""
        return [] if self._frozen and not self._zookeeper else self._spare()

    def _killable(self) -> list[int]:
        """Whose end others can be shown: a session in ZooKeeper. Of a controller the mock chooses
        the live broker with the lowest id to succeed, which must not be frozen."""
        spare = self._spare() if self._zookeeper else []
        if spare and next(broker for broker in self._live() if broker != self._controller) in spare:
            return [self._controller, *spare]
        return spare

    def _quorum(self) -> list[int]:
        """A KRaft controller refuses a broker that comes back while it may think, as successors do,
        that its earlier life goes on; that is half an hour here."""
        return [] if self._stopped or not self._setting.quorum else [0]

    def _successors(self) -> list[int]:
        """Another broker can become the controller only where /controller can be deleted."""
        return [b for b in self._answering() if self._zookeeper and b != self._controller]

    def _rates(self) -> list[list[Any]]:
        return [
            [name, SET, str(self._draw.randrange(1, 10**6))] if self._draw.random() < 0.7
            else [name, DELETE, None]
            for name in self._draw.sample(RATES, self._draw.randint(1, 2))
        ]  # fmt: skip


class _Writer:
    """Draws the steps of one program, between those of the script."""

    def __init__(self, draw: random.Random, setting: Setting, *, plans: bool) -> None:
        self._draw = draw
        self._zookeeper = setting.zookeeper
        self._edits_lists = setting.edits_lists
        self._plans = plans
        self._topics: dict[str, list[list[int]]] = {}
        self._touched: dict[str, set[int]] = {}
        self._stopped: frozenset[int] = frozenset()
        self._frozen: frozenset[int] = frozenset()

    def steps(
        self, count: int, stopped: frozenset[int], frozen: frozenset[int]
    ) -> list[ProgramStep]:
        self._stopped, self._frozen = stopped, frozen
        return [self._step() for _ in range(count)]

    def _step(self) -> ProgramStep:
        kinds: list[tuple[float, Callable[[], ProgramStep | None]]] = [
            (1.5, self._create),
        ]
        if self._topics:
            kinds += self._kinds()
        while True:
            ((_, make),) = self._draw.choices(kinds, [weight for weight, _ in kinds])
            step = make()
            if step is not None:
                return {**step, "via": self._draw.randrange(12)}

    def _kinds(self) -> list[tuple[float, Callable[[], ProgramStep | None]]]:
        kinds: list[tuple[float, Callable[[], ProgramStep | None]]] = [
            (10, self._alter),
            (3, self._elect),
            (1, self._delete),
            (1.5, self._partitions),
            (2, self._configs),
            (2, self._together),
        ]
        if self._zookeeper:
            kinds += [(0.6, self._submit_config), (0.4, self._submit_deletion)]
        if self._plans:
            kinds += [(3, self._submit_plan), (2, self._submit_election)]
        return kinds

    # ---- what steps are about ----------------------------------------------------------------

    def _replicas(self, wrong: float = 0.1) -> list[int]:
        draw = self._draw
        size = draw.choices([1, 2, 3, 4], [2, 4, 4, 1])[0]
        found = draw.sample(BROKER_IDS, size)
        if draw.random() < wrong:
            match draw.randrange(4):
                case 0:
                    found.append(draw.choice(found))
                case 1:
                    found.insert(draw.randrange(len(found) + 1), UNKNOWN_BROKER)
                case 2:
                    found.append(-1)
                case _:
                    found = []
        return found

    def _live_replicas(self) -> list[int]:
        """Of a new topic: a controller with ZooKeeper waits in vain for one that nobody leads."""
        found = self._replicas(0)
        if set(found) <= self._stopped:
            live = [broker for broker in BROKER_IDS if broker not in self._stopped]
            found[0] = self._draw.choice(live)
        return found

    def _topic(self, wrong: float = 0.05) -> str:
        return UNKNOWN_TOPIC if self._draw.random() < wrong else self._draw.choice([*self._topics])

    def _partition(self, topic: str) -> int:
        known = len(self._topics.get(topic, [0]))
        return 7 if self._draw.random() < 0.04 else self._draw.randrange(known)

    def _rows(self, at_most: int) -> list[tuple[str, int]]:
        """Distinct partitions, in the order of topics: adjoining rows share a topic."""
        found = {
            (topic := self._topic(), self._partition(topic))
            for _ in range(self._draw.randint(1, at_most))
        }
        return sorted(found)

    # ---- steps -------------------------------------------------------------------------------

    def _create(self) -> ProgramStep | None:
        free = [name for name in TOPICS if name not in self._topics]
        if not free or (self._topics and self._draw.random() < 0.08):
            again = self._draw.choice([*self._topics])
            return {"do": "create", "topic": again, "replicas": [[1]], "configs": {}}
        name = self._draw.choice(free)
        first = self._live_replicas()
        rows = [first]
        for _ in range(self._draw.randrange(3)):
            # Kafka refuses a topic whose partitions differ in their number of replicas.
            row = self._live_replicas()
            rest = [broker for broker in BROKER_IDS if broker not in row]
            row = [*row, *self._draw.sample(rest, len(rest))][: len(first)]
            if set(row) <= self._stopped:
                row = first
            rows.append(row)
        self._topics[name] = [list(row) for row in rows]
        self._touched[name] = {broker for row in rows for broker in row}
        configs = {}
        if self._draw.random() < 0.15:
            configs["unclean.leader.election.enable"] = "true"
        return {"do": "create", "topic": name, "replicas": rows, "configs": configs}

    def _delete(self) -> ProgramStep | None:
        name = self._draw.choice([*self._topics])
        if not self._may_delete(name):
            return None
        del self._topics[name]
        return {"do": "delete", "topics": [name]}

    def _may_delete(self, name: str) -> bool:
        """With ZooKeeper, brokers that do not answer put the end of a topic off: how long, and who
        is shown what meanwhile, is not the mock's subject."""
        return not self._zookeeper or not self._touched[name] & (self._stopped | self._frozen)

    def _partitions(self) -> ProgramStep | None:
        name = self._topic()
        known = self._topics.get(name, [[1]])
        if len(known) >= PARTITIONS_AT_MOST:
            return None
        new = [self._live_replicas() for _ in range(self._draw.randint(1, 2))]
        count = len(known) + len(new)
        if self._draw.random() < 0.15:
            count = self._draw.randrange(6)
        size = len(known[0])
        shaped = []
        for row in new:
            rest = [broker for broker in BROKER_IDS if broker not in row]
            shaped.append([*row, *rest][:size] if self._draw.random() < 0.85 else row)
        if any(set(row) <= self._stopped for row in shaped):
            return None
        if name in self._topics and count == len(known) + len(new):
            known.extend(list(row) for row in shaped)
            self._touched[name].update(broker for row in shaped for broker in row)
        return {"do": "partitions", "topic": name, "count": count, "replicas": shaped}

    def _alter(self) -> ProgramStep:
        rows: list[list[Any]] = []
        for topic, partition in self._rows(3):
            if self._draw.random() < 0.22:
                rows.append([topic, partition, None])
                continue
            replicas = self._replicas()
            rows.append([topic, partition, replicas])
            if topic in self._topics and partition < len(self._topics[topic]):
                self._touched[topic].update(replicas)
                if replicas:
                    self._topics[topic][partition] = list(replicas)
        return {"do": "alter", "rows": rows, "guard": self._draw.random() < 0.2}

    def _elect(self) -> ProgramStep:
        kind = self._draw.choice([PREFERRED, PREFERRED, UNCLEAN])
        return {"do": "elect", "type": kind, "rows": [list(row) for row in self._rows(3)]}

    def _configs(self) -> ProgramStep:
        """With one wrong value at most: which of two Kafka complains of is up to the order in which
        its classes define them. To 2.8.2 an item appended to an unset list has an empty one before
        it, and brokers do not start with it (``TopicConfigHandler.parseThrottledPartitions``)."""
        name = self._topic()
        operations: list[list[Any]] = []
        for _ in range(self._draw.randint(1, 2)):
            match self._draw.randrange(5):
                case 0:
                    value = self._draw.choice(["*", "0:1,0:2", "0:1", "1:4,0:3", "none"])
                    operations.append([self._draw.choice(_THROTTLES), SET, value])
                case 1 if self._edits_lists:
                    kind = self._draw.choice([APPEND, SUBTRACT])
                    value = f"0:{self._draw.choice(BROKER_IDS)}"
                    operations.append([self._draw.choice(_THROTTLES), kind, value])
                case 1 | 2:
                    operations.append([self._draw.choice(_THROTTLES), DELETE, None])
                case 3:
                    value = self._draw.choice(["true", "false"])
                    operations.append(["unclean.leader.election.enable", SET, value])
                case _:
                    value = self._draw.choice(["1", "60000", "soon"])
                    operations.append(["retention.ms", SET, value])
        named = list({operation[0]: operation for operation in operations}.values())
        if {"none", "soon"} <= {operation[2] for operation in named}:
            named.pop()
        return {"do": "configs", "topic": name, "operations": named}

    def _together(self) -> ProgramStep:
        """Two admins at once: whoever is first. With ZooKeeper only one of them changes configs: a
        broker reads, changes and writes the znode, so of two changes at once one may be lost."""
        kinds = [self._alter, self._alter, self._elect, self._configs]
        first = dict(self._draw.choice(kinds)())
        if self._zookeeper and first["do"] == "configs":
            kinds.remove(self._configs)
        return {"do": "together", "steps": [first, dict(self._draw.choice(kinds)())]}

    def _submit_plan(self) -> ProgramStep | None:
        """As reassign_partitions writes it, of partitions and brokers that there are."""
        rows = []
        for topic, partition in self._rows(2):
            if topic not in self._topics or partition >= len(self._topics[topic]):
                continue
            replicas = self._replicas(0)
            self._touched[topic].update(replicas)
            self._topics[topic][partition] = list(replicas)
            rows.append([topic, partition, replicas])
        return {"do": "submit-plan", "rows": rows} if rows else None

    def _submit_election(self) -> ProgramStep:
        return {"do": "submit-election", "rows": [list(row) for row in self._rows(3)]}

    def _submit_deletion(self) -> ProgramStep | None:
        deleted = self._delete()
        return None if deleted is None else {"do": "submit-deletion", "topic": deleted["topics"][0]}

    def _submit_config(self) -> ProgramStep:
        """As kafka-configs --zookeeper writes it."""
        name = self._draw.choice([*self._topics])
        value = str(self._draw.randrange(1, 10**6))
        return {"do": "submit-config", "topic": name, "configs": {"retention.ms": value}}


def programs(
    seed: str, batch: int, count: int, setting: Setting, *, events: int, steps: int
) -> list[Program]:
    """``count`` programs that can be played at the same time: the brokers fare alike in all.

    ``steps`` is how many a program has, on average, besides ``events`` steps of the cluster. Only
    the first of them writes plans to ZooKeeper, where there is one znode for them.
    """
    script = Script(random.Random(f"{seed}:{batch}"), setting, events)
    found = []
    for place in range(count):
        draw = random.Random(f"{seed}:{batch}:{place}")
        writer = _Writer(draw, setting, plans=setting.zookeeper and place == 0)
        mean = max(steps // len(script.down), 1)
        written = writer.steps(draw.randint(1, 2 * mean), *script.down[0])
        for event, down in zip(script.steps, script.down[1:], strict=True):
            written = [*written, event, *writer.steps(draw.randint(0, 2 * mean), *down)]
        found.append(Program(f"{batch}-{place}", written))
    return found
