"""rich's console for text of peers: it interprets no markup in strings and escapes what cannot be
printed. A string or a ``Text`` is one line, or one cell of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from kproto.cli.terminal import unguarded
from kproto.safe_text import printable, printable_lines

if TYPE_CHECKING:
    import rich.status

__all__ = ["Console"]


class Console(rich.console.Console):
    """A console without markup, emoji codes and highlighting. ``options`` are rich's.

    ``multiline`` keeps the line ends of a ``Text``, for texts of ours such as Markdown.
    """

    def __init__(self, *, multiline: bool = False, **options: Any) -> None:
        self._escaped = printable_lines if multiline else printable
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def _stream(self) -> IO[str]:
        # Text is escaped before rich adds the codes for colours, which a guard would escape.
        stream: Any = rich.console.Console.file.fget(self)  # type: ignore[attr-defined]
        return unguarded(stream)

    file = property(_stream, rich.console.Console.file.fset)  # type: ignore[attr-defined]

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = self._safe(renderable)
        return super().render(renderable, options)

    def status(self, status: RenderableType, **options: Any) -> rich.status.Status:
        from kproto.cli.status import Status

        return Status(status, console=self, **options)

    def on_broken_pipe(self) -> None:
        """Leave it to ``kproto.cli.run``: rich would exit with 1."""
        raise BrokenPipeError

    def _safe(self, text: Text) -> Text:
        """Return ``text`` with unprintable characters escaped, and its styles kept."""
        plain = text.plain
        if self._escaped(plain) == plain:
            return text
        pieces = list(map(self._escaped, plain))
        starts = [0]
        for piece in pieces:
            starts.append(starts[-1] + len(piece))
        safe = text.blank_copy("".join(pieces))
        safe.spans = [
            Span(starts[min(span.start, len(plain))], starts[min(span.end, len(plain))], span.style)
            for span in text.spans
        ]
        return safe
