"""One transaction on the nodes: its operations in order, all of them or none.

This module contains the rules of each operation and its effect on the metadata. Sessions, watches,
limits, and the begin of a transaction belong to ``tree``.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from kproto.znodes import paths
from kproto.znodes.errors import (
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kproto.znodes.model import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Operation,
    OperationResult,
    SetData,
    Stat,
)

__all__ = ["Node", "Transaction", "ZnodeWrite", "node_at"]


@dataclass(frozen=True, slots=True)
class ZnodeWrite:
    """One change of one znode, as logged.

    ``op`` is "create", "set" or "delete". ``before`` and ``after`` are the data, None if there was
    or is no znode. Writes of one multi, and the deletions at a session's end, share a ``zxid``.
    ``session`` is the session that requested it, and ``at_ms`` the caller's time.
    """

    zxid: int
    at_ms: int
    session: int
    op: str
    path: str
    before: bytes | None
    after: bytes | None


@dataclass(slots=True)
class Node:
    """A znode. ``creates`` counts all children ever created: the next sequential child's number."""

    data: bytes
    owner: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    creates: int = 0
    children: int = 0

    @property
    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            # Each creation counts, and each deletion: creates + (creates - children).
            cversion=2 * self.creates - self.children,
            aversion=0,
            ephemeral_owner=self.owner,
            data_length=len(self.data),
            num_children=self.children,
            pzxid=self.pzxid,
        )


def node_at(nodes: dict[str, Node], path: str, client_path: str | None = None) -> Node:
    """Return the node at ``path``. The error names ``client_path`` if the client used that path."""
    node = nodes.get(path)
    if node is None:
        raise NoNodeError(client_path or path)
    return node


class Transaction:
    """Applies operations to ``nodes`` at once, and can undo them all."""

    def __init__(self, nodes: dict[str, Node], *, zxid: int, session: int, now_ms: int) -> None:
        self._nodes = nodes
        self._zxid = zxid
        self._session = session
        self._now_ms = now_ms
        self._saved: dict[str, Node | None] = {}
        self.writes: list[ZnodeWrite] = []

    def apply(self, operation: Operation) -> OperationResult:
        """Apply one operation. If it raises, the nodes are as before the operation."""
        match operation:
            case Create():
                return self._create(operation)
            case SetData():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check():
                self._at_version(operation.path, operation.version)
        return None

    def roll_back(self) -> None:
        """Undo all operations so far."""
        for path, node in self._saved.items():
            if node is None:
                self._nodes.pop(path, None)
            else:
                self._nodes[path] = node
        self._saved.clear()
        self.writes.clear()

    def _create(self, operation: Create) -> str:
        parent_path = paths.parent_of(operation.path)
        parent = node_at(self._nodes, parent_path, operation.path)
        path = operation.path
        if operation.sequential:
            path += f"{parent.creates:010d}"
        if path in self._nodes:
            raise NodeExistsError(path)
        if parent.owner:
            raise NoChildrenForEphemeralsError(path)
        self._save(parent_path, path)
        parent.creates += 1
        parent.children += 1
        parent.pzxid = self._zxid
        self._nodes[path] = Node(
            data=operation.data,
            owner=self._session if operation.ephemeral else 0,
            czxid=self._zxid,
            mzxid=self._zxid,
            pzxid=self._zxid,
            ctime=self._now_ms,
            mtime=self._now_ms,
        )
        self._wrote("create", path, None, operation.data)
        return path

    def _set(self, operation: SetData) -> Stat:
        node = self._at_version(operation.path, operation.version)
        self._save(operation.path)
        before, node.data = node.data, operation.data
        node.version += 1
        node.mzxid = self._zxid
        node.mtime = self._now_ms
        self._wrote("set", operation.path, before, operation.data)
        return node.stat

    def _delete(self, operation: Delete) -> None:
        node = self._at_version(operation.path, operation.version)
        if node.children:
            raise NotEmptyError(operation.path)
        parent_path = paths.parent_of(operation.path)
        self._save(parent_path, operation.path)
        parent = self._nodes[parent_path]
        parent.children -= 1
        parent.pzxid = self._zxid
        del self._nodes[operation.path]
        self._wrote("delete", operation.path, node.data, None)

    def _at_version(self, path: str, version: int) -> Node:
        node = node_at(self._nodes, path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        return node

    def _save(self, *touched: str) -> None:
        """Keep a copy of each node as it was before the transaction first changed it."""
        for path in touched:
            if path not in self._saved:
                self._saved[path] = copy.copy(self._nodes.get(path))

    def _wrote(self, op: str, path: str, before: bytes | None, after: bytes | None) -> None:
        self.writes.append(
            ZnodeWrite(self._zxid, self._now_ms, self._session, op, path, before, after)
        )
