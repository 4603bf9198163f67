from pathlib import Path

import pytest

from kproto import dialect
from kproto.dialects import DIALECTS
from kproto.wireshark import dissector
from tests.support.toolchain import require

DRAFTS = tuple(name for name in DIALECTS if name not in ("kafka", "auto"))


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector as ``kproto schema wireshark`` writes it."""
    require("tshark")
    path = tmp_path_factory.mktemp("wireshark") / "kproto.lua"
    path.write_text(dissector(dialect("kafka"), map(dialect, DRAFTS)), encoding="utf-8")
    return path
