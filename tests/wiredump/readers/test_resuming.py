"""Behind damage, reading goes on: every record away from it is read, and every byte is counted."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from tests.wiredump.readers.containers import Form
from tests.wiredump.readers.damaging import FORMS, Record, damaged, missing, uncovered
from wiredump import native
from wiredump.readers import Anomaly, Capture, Packet
from wiredump.sources.quick import walks


def singly(found: Any) -> list[Packet | Anomaly]:
    """Packets that came in bulk, one by one."""
    out: list[Packet | Anomaly] = []
    for each in found:
        if isinstance(each, (Packet, Anomaly)):
            out.append(each)
            continue
        view = memoryview(each.chunk)
        for n in range(len(each)):
            place, time, link, at, end, original, interface, capture = each[n]
            out.append(Packet(place, time, link, view[at:end], original, interface, capture))
    return out


def plain(found: list[Packet | Anomaly]) -> list[Any]:
    return [
        (each.offset, each.timestamp_ns, bytes(each.data)) if isinstance(each, Packet) else each
        for each in found
    ]


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name + form.order)
def test_reading_resumes_behind_damage(form: Form, seeds: range) -> None:
    """With any size of reads, in bulk or not; the counts of bytes are those of the file."""
    for seed in seeds:
        rng = random.Random(seed)
        made = damaged(rng, form)
        about = f"seed {seed}, {form}: {made.what}"
        capture = Capture(io.BytesIO(made.data))
        found = singly(capture)
        packets = [Record(e.timestamp_ns, bytes(e.data)) for e in found if isinstance(e, Packet)]
        assert not missing(packets, made.survivors), about
        assert not uncovered(found, form, made.data), about
        lost = sum(each.lost for each in found if isinstance(each, Anomaly))
        assert (capture.bytes_read, capture.lost) == (len(made.data), lost), about
        size = rng.choice((7, 1000, 65_536))
        again = singly(Capture(io.BytesIO(made.data), read_size=size))
        assert plain(again) == plain(found), about
        if native.built() is not None:
            with native.using(native.built()):
                bulk = singly(Capture(io.BytesIO(made.data), walks=walks(), read_size=1 << 16))
            assert plain(bulk) == plain(found), about
