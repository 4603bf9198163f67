"""Printing in C against decoding and ``to_json_value``: the same text, or none."""

from typing import Any, cast

import msgspec

from kproto.codec import registry
from kproto.codec.json_text import text_printer
from kproto.errors import KprotoError
from kproto.schema.model import NewStruct
from wiredump.bodies import Side, find_errors, without_records
from wiredump.field_trees import bytes_fields, changed
from wiredump.show.exchange_view import LONGEST_BYTES, shortened_bytes


def gives_up(cls: Any, version: int) -> bool:
    """Whether the printer may leave a valid message to Python."""
    fields = [item for struct in registry.plan_of(cls, version).structs for item in struct.order]
    return any(
        "float64" in (item.kind, item.element_kind)
        or (item.tag is not None and isinstance(item.default, NewStruct))
        for item in fields
    )


def _with_sizes(cls: Any, version: int, value: Any) -> Any:
    side = Side(cls.MESSAGE_NAME, version, None, value)
    return without_records(side, cast("Any", _Only(cls)))


class _Only:
    """A dialect of one message."""

    def __init__(self, cls: Any) -> None:
        self.message = lambda name: cls


def same_text(cls: Any, version: int, data: bytes, offset: int = 0) -> bool:
    """Compare the printers with decoding. Returns whether the message was printed."""
    plain, sized = (text_printer(cls, version, sizes=sizes) for sizes in (False, True))
    short = text_printer(cls, version, longest=LONGEST_BYTES)
    assert plain is not None
    assert sized is not None
    assert short is not None
    printed, with_sizes = plain(data, offset), sized(data, offset)
    assert (printed is None) == (with_sizes is None)
    try:
        message, end = registry.generated_decoder(cls, version)(data, offset)
    except KprotoError:
        assert printed is None, data.hex()
        return False
    value = message.to_json_value(version)
    codes = {error.code for error in find_errors(cls, version, value)}
    if printed is None or with_sizes is None:
        assert gives_up(cls, version) or len(codes) > 32, data.hex()
        return False
    assert printed[0].encode() == msgspec.json.encode(value), data.hex()
    assert with_sizes[0].encode() == msgspec.json.encode(_with_sizes(cls, version, value))
    shortened = short(data, offset)
    assert shortened is not None
    assert shortened[0].encode() == msgspec.json.encode(
        changed(value, bytes_fields(cls, version), shortened_bytes)
    )
    assert printed[1:] == with_sizes[1:] == shortened[1:]
    assert printed[1] == end
    assert set(printed[2]) == codes
    assert len(set(printed[2])) == len(printed[2])
    assert printed[3] == value.get("throttleTimeMs")
    return True
