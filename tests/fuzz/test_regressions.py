"""What the targets have found, each with its story. The input is the one that was found, cut down
by hand where that left the story the same; each of them broke its target's invariant before it was
mended."""

from typing import NamedTuple

import pytest

from fuzz.targets import TARGETS
from tests.fuzz.test_corpus import loaded


class Found(NamedTuple):
    target: str
    story: str
    data: bytes


def _asked(body: bytes) -> bytes:
    """One request to ``POST /faults``, as the target ``control`` takes it."""
    from fuzz.targets import control

    route = next(
        each for each in control._ROUTES if (each.method, each.path) == ("POST", "/faults")
    )
    return control._joined([(route, body)])


_NESTED = b'{"a":' * 1500 + b"1" + b"}" * 1500

FOUND = {
    "a schema of half a character": Found(
        "schema",
        "JSON can say half of a surrogate pair by an escape. The schema was read, and the class "
        "made of it failed with UnicodeEncodeError, as `load_dialect` did. Now it is refused, "
        "and the error names the line.",
        b'{"type": "data", "name": "X", "validVersions": "0", "about": "\\ud800", "fields": []}',
    ),
    "a rule of half a character": Found(
        "faults",
        "The same in the name of a member of a rule: msgspec's UnicodeEncodeError came through "
        "`read_faults`.",
        b'\x00{"\\ud800": 1}',
    ),
    "a posted rule of half a character": Found(
        "control", "And over HTTP: the control port answered 500, a failure of its own.", b""
    ),
    "a tag that its text is none of": Found(
        "faults",
        "YAML may name the type of a scalar. PyYAML's constructors then run into whatever they run "
        "into (here AttributeError), and that came through `read_faults`.",
        b"\x01- name: !!timestamp 1\n",
    ),
    "a tag with nothing behind it": Found(
        "faults", "The same with IndexError.", b'\x01- api: !!int ""\n'
    ),
    "a tag of a word it does not know": Found(
        "faults", "The same with KeyError.", b"\x01- disconnect: !!bool perhaps\n"
    ),
    "a journal nested without end": Found(
        "texts",
        "A member nobody knows is passed over, but not beyond the interpreter's depth: "
        "RecursionError ended `wiredump show` where a line ought to have been named.",
        b'\x01{"sequence":1,"timestamp_ns":1,"broker_id":1,"connection_id":1,"peer":"a:1",'
        b'"direction":"request","more":' + _NESTED + b"}\n",
    ),
    "a request log nested without end": Found(
        "texts",
        "The same in a broker's request log, where a line that cannot be read is an anomaly, "
        "and the next one is read.",
        b'\x02[2026-01-01 00:00:00,000] DEBUG Completed request:{"requestHeader":'
        + _NESTED
        + b"}\n",
    ),
    "a request that took for ever": Found(
        "texts",
        "A time of 1e308 ms is no number of nanoseconds: OverflowError instead of an anomaly.",
        b'\x02[2026-01-01 00:00:00,000] DEBUG Completed request:{"requestHeader":'
        b'{"requestApiKey":3,"requestApiVersion":1,"correlationId":1},"totalTimeMs":1e308,"connection":"a"}\n',
    ),
    "brackets without end": Found(
        "faults",
        "PyYAML looks at every level that is open for each token that it reads: 1500 brackets took "
        "seconds, 64 KiB of them half an hour. Now more than 64 levels are refused as they come.",
        b"\x01:\n" + b"[" * (64 << 10),
    ),
    "nine million iterations": Found(
        "sasl",
        "The scramp package takes seven digits, and our client hashed for eight seconds, with its "
        "event loop standing still. Now it refuses more than a million before it begins.",
        b"\x01\0\x26r=$3rf==$,s=QSXCR+Q6sej8bf92,i=9999999",
    ),
    "a listener of two lines": Found(
        "znodes",
        "A listener that the map lacks stood in the error as it is, line feeds and all.",
        b'\0{"listener_security_protocol_map":{":N":"S|L"},'
        b'"endpoints":["\\null://:1:901"],"timestamp":"7"}',
    ),
    "a zstd capture damaged behind its first block": Found(
        "captures",
        "The library keeps what it made before an error to itself. So a file that came in one read "
        "gave nothing, and in reads of 7 bytes all that stood before the damage. Now it is given "
        "a block at a time.",
        bytes.fromhex(
            "0f28b52ffd601380000300e404d4c3800002000400040001f15365e09304004a000002020186dd60"
            "14064020010db8000001029c4023845002ffff94a8c897020123849c40000007d0000000025012cf"
            "cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfffff8cc7eda080a82bffff"
            "3f0600000000a01301a3032c804e001177610a04d819e899fdff7055266650cadd4d63bbee7fffc0"
            "800b"
        ),
    ),
}


@pytest.mark.parametrize("found", FOUND.values(), ids=FOUND)
def test_what_was_found_holds_now(found: Found):
    data = found.data or _asked(b'{"\\ud800": 1}')
    loaded(TARGETS[found.target]).check(data)
