"""An extension of griffe, through which mkdocstrings reads our sources.

It removes the ``::`` before an indented block, which Markdown does not need, gives a class that
derives from NamedTuple, msgspec's Struct or a message the signature that its fields define, and
takes the default and the help of a cluster's option from its declaration.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

__all__ = ["SourceReader"]

_ALONE = re.compile(r"^[ \t]*::[ \t]*\n", re.MULTILINE)
_AFTER_TEXT = re.compile(r"(?<=\S)::[ \t]*$", re.MULTILINE)
_POSITIONAL = {"NamedTuple", "Struct"}
_KEYWORD_ONLY = {"Message", "MessageStruct"}


class SourceReader(griffe.Extension):
    """Changes objects after griffe has read them."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if isinstance(attr.value, griffe.ExprCall) and str(attr.value.function) == "option":
            default, _type, help = attr.value.arguments[:3]
            text = ast.literal_eval(str(help))
            if attr.docstring:
                attr.docstring.value = f"{text} {attr.docstring.value}"
            else:
                attr.docstring = griffe.Docstring(text, parent=attr)
            attr.value = default

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = _ALONE.sub("", obj.docstring.value)
            obj.docstring.value = _AFTER_TEXT.sub(":", text)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        bases = {str(base).rpartition(".")[2] for base in cls.bases}
        if not bases & (_POSITIONAL | _KEYWORD_ONLY) or "__init__" in cls.members:
            return
        keyword_only = bool(bases & _KEYWORD_ONLY) or "kw_only" in cls.keywords
        kind = griffe.ParameterKind
        fields = [
            griffe.Parameter(
                name,
                annotation=each.annotation,
                kind=kind.keyword_only if keyword_only else kind.positional_or_keyword,
                default=each.value,
            )
            for name, each in cls.members.items()
            if isinstance(each, griffe.Attribute) and "instance-attribute" in each.labels
        ]
        this = griffe.Parameter("self", kind=kind.positional_or_keyword)
        init = griffe.Function("__init__", parameters=griffe.Parameters(this, *fields))
        cls.set_member("__init__", init)
