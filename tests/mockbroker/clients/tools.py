"""Kafka's command-line tools against a mock cluster."""

from typing import TypeVar

from mockbroker import MockCluster
from tests.tools.kafka_tools import KafkaTools

__all__ = ["Tools"]

T = TypeVar("T")


class Tools:
    """The tools of a release, with a mock cluster's brokers as bootstrap servers."""

    def __init__(self, kafka: tuple[str, KafkaTools], mock: MockCluster) -> None:
        self.release, self._tools = kafka
        self.bootstrap = mock.bootstrap

    async def run(self, tool: str, *arguments: str, text: str = "") -> list[str]:
        """The lines that the tool prints; it must succeed."""
        return await self.bare(tool, "--bootstrap-server", self.bootstrap, *arguments, text=text)

    async def bare(self, tool: str, *arguments: str, text: str = "") -> list[str]:
        """As ``run``, for tools that have no option for the bootstrap servers."""
        outcome = await self._tools.run(tool, *arguments, text=text)
        assert outcome.code == 0, outcome
        return outcome.out.splitlines()

    async def table(self, tool: str, *arguments: str) -> list[dict[str, str]]:
        """The rows of a table without blanks in its cells, by the names of its columns."""
        # 3.9 pads the cells of offsets that it has reset, and leaves out the ends of lines.
        lines = [line.split() for line in await self.run(tool, *arguments) if line]
        names, cells = lines[0], [cell for line in lines[1:] for cell in line]
        if len(lines) == 1:
            start = names.index("NEW-OFFSET") + 1
            names, cells = names[:start], names[start:]
        rows = range(0, len(cells), len(names))
        return [dict(zip(names, cells[row : row + len(names)], strict=True)) for row in rows]

    def since_4(self, new: T, old: T) -> T:
        return old if self.release.startswith("3.") else new
