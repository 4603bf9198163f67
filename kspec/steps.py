"""The steps of a case on its cluster: operations of ``mockbroker ctl`` such as ``failover 3``."""

from __future__ import annotations

from kspec.errors import KspecError
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations import OperationCall, parse_operation

__all__ = ["check_step", "take_step"]


def check_step(text: str) -> OperationCall:
    """Raises KspecError for text that is not an operation."""
    try:
        return parse_operation(text)
    except ClusterError as error:
        raise KspecError(str(error)) from None


async def take_step(mock: MockCluster, text: str) -> None:
    """Raises KspecError for text that is not an operation, and ClusterError if the cluster cannot
    carry it out."""
    await mock.run_command(check_step(text))
