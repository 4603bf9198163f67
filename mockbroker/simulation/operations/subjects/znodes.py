"""Operations on znodes (ZooKeeper mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.operations.arguments import (
    ZNODE_TEXT,
    ZNODE_TEXT_OR_NULL,
    Argument,
    PathArgument,
)
from mockbroker.simulation.operations.operation import operation

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def write_znode(
    cluster: Cluster,
    path: PathArgument,
    text: Annotated[
        str | None, Argument(ZNODE_TEXT_OR_NULL, "The content; null deletes the znode.")
    ],
) -> None:
    """Create or change a znode.

    The controller reacts at once to znodes that it watches, and reads the others when it takes
    over.
    """
    with cluster.znodes.enclosed():
        znodes = cluster.controller.znodes
        znodes.read(path)
        cluster.controller.count_change()
        znodes.set("write_znode", path, text)


@operation
def append_znode(
    cluster: Cluster,
    prefix: PathArgument,
    text: Annotated[str, Argument(ZNODE_TEXT, "The content.")],
) -> str:
    """Create a sequential znode.

    ZooKeeper appends ten digits to PATH. In Python the method returns the path.
    """
    with cluster.znodes.enclosed():
        return cluster.controller.znodes.append("write_znode", prefix, text)


@operation
def delete_znode(cluster: Cluster, path: PathArgument) -> None:
    """Delete a znode."""
    write_znode(cluster, path, None)
