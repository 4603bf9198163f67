"""Mutations of a frame as a whole: truncated, extended, a wrong size or id, flipped bytes."""

from __future__ import annotations

from kproto.framing import SIZE_LENGTH
from kspec.clientfuzz.mutate.changes import CORRELATION, Change, Edit
from kspec.clientfuzz.mutate.draws import Draws
from kspec.clientfuzz.mutate.tree import FrameTree

__all__ = ["behind", "correlation_id", "cut", "flip", "short", "size", "trailing"]


def cut(tree: FrameTree, draws: Draws) -> Change | None:
    """Truncate the frame at a field or inside one, and adjust its size."""
    at = _somewhere(tree, draws)
    edit = Edit(at, len(tree.frame) - at, b"")
    return Change("cut", "", f"{at - SIZE_LENGTH} bytes and no more", (edit,))


def short(tree: FrameTree, draws: Draws) -> Change | None:
    """Truncate the frame but keep its size."""
    at = _somewhere(tree, draws)
    edit = Edit(at, len(tree.frame) - at, b"")
    whole = len(tree.frame) - SIZE_LENGTH
    detail = f"{at - SIZE_LENGTH} bytes of {whole} promised"
    return Change("short", "", detail, (edit,), size=whole)


def _somewhere(tree: FrameTree, draws: Draws) -> int:
    leaves = [span for part in (tree.header, tree.body) for span in part.spans if span.leaf]
    leaf = draws.one(leaves)
    return leaf.offset + (draws.below(leaf.length) if leaf.length else 0)


def trailing(tree: FrameTree, draws: Draws) -> Change | None:
    """Add bytes behind the body and adjust the size."""
    data = draws.one([b"\x00", b"\xff", draws.data(5), bytes(300)])
    edit = Edit(len(tree.frame), 0, data)
    return Change("trailing", "", f"{len(data)} bytes too many in the frame", (edit,))


def behind(tree: FrameTree, draws: Draws) -> Change | None:
    """Add bytes behind the frame without adjusting the size, so that no valid frame follows."""
    data = draws.one([b"\x00", b"\x00\x00\x00\x00", b"\xff" * 4, draws.data(7)])
    return Change("behind", "", f"{data.hex()} behind the frame", behind=data)


def size(tree: FrameTree, draws: Draws) -> Change | None:
    true = len(tree.frame) - SIZE_LENGTH
    says = draws.one(
        [-(2**31), -2, -1, 0, 1, 3, 4, true - 1, true + 1, 0x48545450, 2**31 - 5, 2**31 - 1]
    )
    if says == true:
        return None
    return Change("size", "size", f"size {true} says {says}", size=says)


def correlation_id(tree: FrameTree, draws: Draws) -> Change | None:
    """Replace the correlation id by another request's or an unused one."""
    at = next(span.offset for span in tree.header.spans if span.path == "correlation_id")
    now = int.from_bytes(tree.frame[at : at + 4], "big", signed=True)
    says = draws.one([now + 1, now - 1, -1, -(2**31), 2**31 - 1, 0, now + 1000])
    if says == now or not -(2**31) <= says < 2**31:
        return None
    edit = Edit(at, 4, says.to_bytes(4, "big", signed=True))
    return Change(CORRELATION, "correlation_id", f"{now} is {says}", (edit,))


def flip(tree: FrameTree, draws: Draws) -> Change | None:
    """Change a byte of the body, whatever it means."""
    if tree.body_at >= len(tree.frame):
        return None
    at = draws.between(tree.body_at, len(tree.frame) - 1)
    now = tree.frame[at]
    says = draws.one([now ^ (1 << draws.below(8)), 0xFF ^ now])
    edit = Edit(at, 1, bytes([says]))
    return Change("flip", "", f"byte {at} 0x{now:02x} is 0x{says:02x}", (edit,))
