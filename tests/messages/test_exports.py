"""What ``kproto`` and ``kproto.messages`` export; nothing is imported before it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import kproto
import kproto.messages
from kproto.codegen import modules
from tests.support.schemas import released


def test_public_names() -> None:
    assert sorted(kproto.__all__) == [
        "Api", "DecodeError", "Dialect", "EncodeError", "KprotoError", "LocalProtocolError",
        "Message", "ProtocolError", "RemoteProtocolError", "SchemaError", "UnknownNameError",
        "UnsupportedFrameError", "UnsupportedVersionError", "__version__", "decode_request",
        "decode_response", "dialect", "encode_request", "encode_response", "engine",
        "load_dialect",
    ]  # fmt: skip
    for name in kproto.__all__:
        assert getattr(kproto, name) is not None
    assert kproto.engine in ("pure", "native")
    with pytest.raises(AttributeError):
        _ = kproto.no_such_name


def test_every_message_and_unambiguous_struct_is_exported() -> None:
    for name in kproto.messages.__all__:
        assert getattr(kproto.messages, name) is not None
    assert set(kproto.messages.__all__) <= set(dir(kproto.messages))


def test_an_ambiguous_struct_names_its_modules() -> None:
    with pytest.raises(ImportError, match=r"kproto\.messages\.describe_topic_partitions_request"):
        from kproto.messages import Cursor  # noqa: F401
    with pytest.raises(ImportError):
        from kproto.messages import NoSuchMessage  # noqa: F401


def test_older_names_are_aliases() -> None:
    from kproto.messages import ListClientMetricsResourcesRequest, ListConfigResourcesRequest

    assert ListClientMetricsResourcesRequest is ListConfigResourcesRequest


@pytest.mark.requirement("C-02")
def test_generated_modules_are_fresh() -> None:
    files = modules.generated_files(released().values())
    directory = Path(kproto.messages.__file__).parent
    assert modules.stale(directory, files) == []


def test_stale_modules_are_found(tmp_path: Path) -> None:
    files = {"a.py": "1\n", "b.py": "2\n"}
    (tmp_path / "a.py").write_text("1\n")
    (tmp_path / "left_over.py").write_text("")
    (tmp_path / "__init__.py").write_text("by hand")
    assert modules.stale(tmp_path, files) == ["b.py", "left_over.py"]
    modules.write(tmp_path, files)
    assert modules.stale(tmp_path, files) == []
    assert (tmp_path / "__init__.py").read_text() == "by hand"


def test_imports_are_lazy() -> None:
    code = (
        "import sys, kproto, kproto.messages.heartbeat_request as h\n"
        "h.HeartbeatRequest(group_id='g').encode(4)\n"
        "bad = [m for m in sys.modules if m.startswith(('kproto.messages.', 'rich', 'click',"
        " 'construct', 'aiohttp', 'asyncio', 'kproto.dialects'))]\n"
        "print(sorted(bad))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kproto.messages.heartbeat_request']"
