"""The generated files of ``clients/``: the types of the control port's answers, the options of a
cluster, and a method for each operation, from the same declarations as everything else.
``scripts.operation_stubs`` writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scripts.client_code import go, java, javascript
from scripts.client_code.description import Description, description

__all__ = ["FILES", "generated"]

_JAVA: Final = "clients/java/src/main/java/io/github/kproto"

FILES: Final[dict[str, Callable[[Description], str]]] = {
    "clients/go/types.go": go.types,
    "clients/go/options.go": go.options,
    "clients/go/operations.go": go.operations,
    "clients/js/types.d.ts": javascript.types,
    "clients/js/operations.cjs": javascript.operations,
    f"{_JAVA}/Operations.java": java.operations,
}


def generated() -> dict[str, str]:
    """The text of each file by its path. Raises MissingFormatterError."""
    found = description()
    classes = {f"{_JAVA}/{name}.java": text for name, text in java.built(found).items()}
    return {**{name: write(found) for name, write in FILES.items()}, **classes}
