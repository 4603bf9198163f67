"""rich's status line with texts in place of its markup. rich's own module takes long to import."""

from __future__ import annotations

from typing import Any

import rich.status
from rich.console import RenderableType
from rich.text import Text

__all__ = ["Status"]


class Status(rich.status.Status):
    """A spinner and a text, which ``Console.status`` returns. The options are rich's."""

    def __init__(self, status: RenderableType, **options: Any) -> None:
        super().__init__(_as_text(status), **options)

    def update(self, status: RenderableType | None = None, **options: Any) -> None:
        super().update(None if status is None else _as_text(status), **options)


def _as_text(status: RenderableType) -> RenderableType:
    return Text(status) if isinstance(status, str) else status
