"""The structs that messages are made of: msgspec structs that keep unknown tagged fields.

``unknown_tags`` costs nothing until it is used. All structs share one immutable empty dict, and
reading the attribute of a struct without unknown tags gives that struct a dict of its own. Codecs
read the slot itself (``_unknown_tags``), so decoding and encoding never create that dict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import msgspec

from kproto.schema.model import MessageSchema
from kproto.schema.versions import Versions

__all__ = ["NO_TAGS", "MessageStruct", "RootStruct"]


class _NoTags(dict[int, bytes]):
    """The unknown tags of a struct that has none. All such structs share it, so it is read-only."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(
            "this empty dict is shared; read the struct's .unknown_tags to get a dict of its own"
        )

    __setitem__ = __ior__ = setdefault = update = _refuse

    def __reduce__(self) -> str:
        return "NO_TAGS"

    def __copy__(self) -> _NoTags:
        return self

    def __deepcopy__(self, _memo: object) -> _NoTags:
        return self


NO_TAGS = _NoTags()


class MessageStruct(msgspec.Struct, kw_only=True, gc=False):
    """A struct of a message.

    ``unknown_tags`` maps the tag of each tagged field that the schema does not define to its bytes,
    in ascending order of tag. Encoders write these fields back between the known ones. The garbage
    collector does not track instances: they form no reference cycles unless a caller makes one.
    """

    unknown_tags: dict[int, bytes] = NO_TAGS

    if TYPE_CHECKING:
        # The slot itself. Declared as a property so that type checkers do not see another field.
        @property
        def _unknown_tags(self) -> dict[int, bytes]: ...
        @_unknown_tags.setter
        def _unknown_tags(self, tags: Mapping[int, bytes]) -> None: ...

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if name != "unknown_tags"]
        if self._unknown_tags:
            names.append("unknown_tags")
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({inner})"

    def __rich_repr__(self) -> Any:
        for name in self.__struct_fields__:
            if name != "unknown_tags" or self._unknown_tags:
                yield name, getattr(self, name)


def _own_tags(self: MessageStruct) -> dict[int, bytes]:
    tags = self._unknown_tags
    if tags is NO_TAGS:
        tags = self._unknown_tags = {}
    return tags


def _set_tags(self: MessageStruct, tags: Mapping[int, bytes]) -> None:
    self._unknown_tags = tags


# The slot stays reachable as ``_unknown_tags``; ``unknown_tags`` becomes the lazy view of it.
type.__setattr__(MessageStruct, "_unknown_tags", MessageStruct.__dict__["unknown_tags"])
type.__setattr__(MessageStruct, "unknown_tags", property(_own_tags, _set_tags))


class RootStruct(MessageStruct, kw_only=True, gc=False):
    """The outermost struct of a message: facts of its schema, and its codecs by version.

    ``registry`` fills the codec tables. The methods that use them are those of ``message.Message``.
    """

    MESSAGE_NAME: ClassVar[str]
    MESSAGE_TYPE: ClassVar[str]
    API_KEY: ClassVar[int | None] = None
    VALID_VERSIONS: ClassVar[Versions]
    FLEXIBLE_VERSIONS: ClassVar[Versions]
    STRUCTS: ClassVar[Mapping[str, type[MessageStruct]]] = {}
    """Schema name of each nested struct -> its class."""

    _SCHEMA: ClassVar[MessageSchema | None] = None
    _ENCODERS: ClassVar[dict[int, Callable[[Any], bytes]]]
    _PARTS_ENCODERS: ClassVar[dict[int, Callable[[Any], list[Any]]]]
    _DECODERS: ClassVar[dict[int, Callable[[Any, int], tuple[Any, int]]]]
    _READERS: ClassVar[dict[int, Callable[[Any], Any]]]
    _VALIDATORS: ClassVar[dict[int, Callable[[Any, int], int]]]

    def __init_subclass__(cls, **config: Any) -> None:
        super().__init_subclass__(**config)
        type.__setattr__(cls, "_ENCODERS", {})
        type.__setattr__(cls, "_PARTS_ENCODERS", {})
        type.__setattr__(cls, "_DECODERS", {})
        type.__setattr__(cls, "_READERS", {})
        type.__setattr__(cls, "_VALIDATORS", {})
