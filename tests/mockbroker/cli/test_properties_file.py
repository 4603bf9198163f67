"""``--properties``: Kafka's ``server.properties`` as static configs of every broker."""

import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockbroker.cli import cli
from mockbroker.cli.serve import _properties
from mockbroker.errors import ClusterError
from mockbroker.options.properties_file import Property, parse_properties
from tests.support.seeds import generator
from tests.support.toolchain import require

REFUSED = "refused"
SHIPPED = """\
############################# Server Basics #############################
process.roles=broker,controller
node.id=1

! Another comment
listeners=PLAINTEXT://:9092,\\
          CONTROLLER://:9093
num.partitions : 3
log.retention.hours 5
log.dirs=/tmp/a\\u0062
num.partitions=4
"""


def test_a_file_is_read_as_java_reads_it() -> None:
    assert parse_properties(SHIPPED, "server.properties") == [
        Property(2, "process.roles", "broker,controller"),
        Property(3, "node.id", "1"),
        Property(6, "listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
        Property(9, "log.retention.hours", "5"),
        Property(10, "log.dirs", "/tmp/ab"),
        Property(11, "num.partitions", "4"),
    ]


@pytest.mark.slow
@pytest.mark.java
def test_random_texts_are_read_as_by_java() -> None:
    require("java")
    rng = generator("properties")
    parts = ["a", "b", "\\", "=", ":", " ", "\t", "\f", "\n", "\r", "\r\n", "#", "!", "\\u0041",
             "\\u12", "\\n", "é", "\\\n", "\\ud83d\\ude00"]  # fmt: skip
    # Java makes an empty entry of a backslash that is the last line.
    texts = ["".join(rng.choices(parts, k=rng.randrange(12))) + "\nz=1" for _ in range(2000)]
    given = b"".join(
        struct.pack(">i", len(data)) + data for data in (each.encode("latin-1") for each in texts)
    )
    done = subprocess.run(
        ["java", str(Path(__file__).with_name("PropertiesOracle.java"))],
        input=given + struct.pack(">i", -1), capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    expected = done.stdout.decode().split("\n")[:-1]
    assert [read(text) for text in texts] == [without_empty_key(line) for line in expected]


def without_empty_key(line: str) -> str:
    """Java keeps an empty key, which no config has."""
    pairs = [each for each in line.split(" ") if each != "="]
    return REFUSED if any(each.startswith("=") for each in pairs) else " ".join(pairs)


def read(text: str) -> str:
    try:
        found = parse_properties(text, "f")
    except ClusterError:
        return REFUSED
    pairs = sorted((hexed(each.name), hexed(each.value)) for each in found)
    return " ".join(f"{name}={value}" for name, value in pairs)


def hexed(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=b\n\nnum.partitions=many", ":3: num.partitions: Invalid value many: Not a number"),
        ("num.partitions=0", ":1: num.partitions: Invalid value 0: Value must be at least 1"),
        ("auto.create.topics.enable=maybe", ":1: auto.create.topics.enable: Invalid value maybe"),
        ("a=\\u12", ":1: a: \\u needs four hexadecimal digits"),
        ("=b", ":1: a value without a key: 'b'"),
        (None, "No such file or directory"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line_and_key(tmp_path, text, problem):
    file = tmp_path / "server.properties"
    if text is not None:
        file.write_text(text, "utf-8")
    result = CliRunner().invoke(cli, ["serve", "--properties", str(file)])
    assert result.exit_code == 2
    assert f"{file}{problem}" in result.output or f"{file}: {problem}" in result.output


def test_values_are_those_of_the_release(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.retention.hours=5\nno.such.config=x\n", "utf-8")
    assert _properties(str(file), "kafka-4.4") == [
        Property(1, "log.retention.hours", "5"), Property(2, "no.such.config", "x"),
    ]  # fmt: skip
    assert _properties(None, "kafka-4.4") == ()
