"""The rules for requests that go to other brokers than the controller: leaders, coordinators, all.

Each rule is a method, as in ``rules``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kspec.reference_client.coordinators import Coordinators
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules, outcome
from kspec.reference_client.topics import TopicPartition, Topics

__all__ = ["AdminRules", "Row"]

_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_THROTTLING_QUOTA_EXCEEDED: Final = 89
_MOVED: Final = frozenset({5, 6, 56, 74, 75, 76})
"""Errors of a partition that newer metadata may mend."""


class Row(NamedTuple):
    """What a broker says of one partition, topic, group or resource."""

    code: int
    message: str | None = None
    value: Any = None


class AdminRules(ClientRules):
    """What an admin client does beside the controller's requests."""

    def coordinators(self) -> Coordinators:
        """Known for the length of one call."""
        return Coordinators(self)

    async def broker_link(self, broker: int) -> Link:
        """Connect to the broker that a request names, and to no other."""
        if broker not in self.brokers:
            await self.refresh()
        return await Topics(self).link_to(broker)

    async def ask_leaders(
        self,
        wanted: Sequence[TopicPartition],
        request: Callable[[Sequence[TopicPartition]], Any],
        rows: Callable[[Any], Mapping[TopicPartition, Row]],
    ) -> dict[TopicPartition, Row]:
        """Send each leader its partitions. One that has another leader by now is sent there."""
        topics = Topics(self)
        found: dict[TopicPartition, Row] = {}
        attempt, ends = 0, asyncio.get_running_loop().time() + self.timeout
        while missing := [tp for tp in wanted if tp not in found]:
            attempt += 1
            pause = self.pause(attempt)
            is_last = asyncio.get_running_loop().time() + pause > ends
            await topics.refresh({topic for topic, _ in missing})
            for leader, mine in self.by_leader(topics, missing).items():
                try:
                    link = await topics.link_to(leader)
                    answered = rows(await link.ask(request(mine)))
                except (LinkClosedError, TimedOutError):
                    if is_last:
                        raise
                    continue
                for tp, row in answered.items():
                    if is_last or not self.has_moved(row.code):
                        found[tp] = row
            for tp in missing:
                code = topics.errors.get(tp[0], 0)
                if code == _UNKNOWN_TOPIC_OR_PARTITION or (code and is_last):
                    found.setdefault(tp, Row(code))
            if is_last:
                break
            if any(tp not in found for tp in wanted):
                await asyncio.sleep(pause)
        return found

    def is_over_quota(self, code: int) -> bool:
        """Whether to make a change again after a pause (KIP-599)."""
        return code == _THROTTLING_QUOTA_EXCEEDED

    def has_moved(self, code: int) -> bool:
        """Whether to look for the leader of a partition again."""
        return code in _MOVED

    def by_leader(
        self, topics: Topics, wanted: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for tp in wanted:
            if topics.leaders.get(tp, -1) >= 0:
                found.setdefault(topics.leaders[tp], []).append(tp)
        return found

    async def ask_every_broker(
        self, body: Any, code_of: Callable[[Any], int], check: Callable[[Link], None]
    ) -> tuple[list[Any], list[Exception]]:
        """Return the answers of the brokers, and the errors of those that gave none."""
        await self.refresh()
        answers: list[Any] = []
        errors: list[Exception] = []
        for broker in self.brokers_to_ask():
            try:
                where = partial(self.broker_link, broker)
                answers.append(await self.ask(where, body, code_of, check))
            except (BrokerError, LinkClosedError, TimedOutError) as error:
                errors.append(error)
        return answers, errors

    def brokers_to_ask(self) -> list[int]:
        return sorted(self.brokers)

    def config_broker(self, resource: str) -> int | None:
        """Return the broker that a resource has to be sent to, if it must be a certain one."""
        kind, _, name = resource.partition(":")
        return int(name) if kind == "broker" and name else None

    def acl_outcomes(self, wanted: Sequence[str], rows: Sequence[Any]) -> dict[str, Any]:
        """Return an outcome per access rule or filter. The answer has them in the request's
        order."""
        answered = zip(wanted, rows, strict=False)
        return self.outcomes(
            wanted, {text: (row.error_code, row.error_message) for text, row in answered}
        )

    def check_acls(self, answer: Any) -> None:
        """Raises BrokerError for an answer that has an error in place of access rules."""
        if answer.error_code:
            raise BrokerError(answer.error_code, answer.error_message)

    def check_quotas(self, answer: Any) -> None:
        """Raises BrokerError for an answer that has an error in place of quotas."""
        if answer.error_code:
            raise BrokerError(answer.error_code, answer.error_message)

    def log_dir_place(self, broker: int) -> Callable[[], Awaitable[Link]]:
        """Every broker knows its own directories alone (KIP-113)."""
        return lambda: self.broker_link(broker)

    def log_dirs(self, broker: int, answer: Any) -> dict[str, Any]:
        """Return the partitions in each directory of a broker, or its error; that of the broker if
        the whole answer has one."""
        if getattr(answer, "error_code", 0):
            return {str(broker): outcome(answer.error_code, None)}
        return {
            f"{broker}:{each.log_dir}": outcome(each.error_code, None)
            if each.error_code
            else sorted(
                f"{topic.name}-{row.partition_index}"
                for topic in each.topics
                for row in topic.partitions
            )
            for each in answer.results
        }

    def described_errors(self, errors: Sequence[Exception]) -> list[dict[str, Any]]:
        """Return the errors of brokers beside the results of the others."""
        raise NotImplementedError
