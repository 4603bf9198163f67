"""Random schemas and their bytes, beside Kafka's own generator (4.3.1)."""

import json
import random
import re
from pathlib import Path
from typing import Final

import pytest

from kproto.cli.run import run
from kproto.cli.schema import schema_group
from kproto.oracle.drafts import compare_drafts, compare_verdicts
from kproto.schema.load import schemas_directory
from tests.schema.random_schemas import broken, random_schema
from tests.support.full import FULL, either
from tests.support.seeds import generator
from tests.support.toolchain import require

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.oracle]

STRICTER: Final = (
    r"(ignorable|mapKey|zeroCopy|latestVersionUnstable) must be true or false",
    r"about must be a string",
    r"'(Two|lower|unknown)' is not an entity type",
    r"cannot (name a struct|be named)",
    r"the message cannot be named",
    r"must rise from 0 to 32767",
    r"listeners must be",
    r"needs an api key",
    r"apiKey .* is not an integer",
    r"deprecatedVersions .* is outside",
    r"default .* is not possible for",
    r"a field of type .* cannot have fields",
    r"struct \w+ is not specified",
    r"is called \w+ \(end it in",
    r"flexibleVersions is missing",
    r"taggedVersions .* is outside versions",
    r"is not a version range",
    r"(listeners|latestVersionUnstable) on a",
    r"validVersions must end",
    r"the name collides with the field",
    r"default .* (does not fit|is not)",
    r"struct \w+ is specified twice",
    r"is not one of|unknown propert|no property",
)
"""Reasons to refuse a schema that Kafka's generator accepts: see docs/how-to/draft-schema.md."""


def _write(folder: Path, schemas: dict[str, object]) -> Path:
    for name, schema in schemas.items():
        (folder / f"{name}.json").write_text(json.dumps(schema))
    return folder


def test_valid_schemas_have_kafkas_bytes(tmp_path: Path) -> None:
    require("java", "maven")
    rng = generator("random schemas")
    schemas = [random_schema(rng, number) for number in range(either(400, 40))]
    result = compare_drafts(
        _write(tmp_path, {each["name"]: each for each in schemas}),
        seed=rng.randrange(2**32),
        values=either(20, 4),
    )
    assert result.messages == len(schemas)
    assert [str(each) for each in result.differences[:5]] == []


def test_broken_schemas_have_kafkas_verdict(tmp_path: Path) -> None:
    require("java", "maven")
    rng = generator("broken schemas")
    schemas = {
        f"Draft{number}": broken(random_schema(rng, number), rng)
        for number in range(either(8000, 600))
    }
    found = compare_verdicts(_write(tmp_path, schemas))
    unknown = [
        str(each)
        for each in found
        if each.kind != "refused here" or not any(re.search(known, each.text) for known in STRICTER)
    ]
    assert unknown[:5] == []


@pytest.mark.parametrize("draft", ["kip_455_new", "kip_860", "kafka"] if FULL else ["kip_455_new"])
def test_the_command(draft: str, capsys: pytest.CaptureFixture[str]) -> None:
    require("java", "maven")
    folder = schemas_directory() / draft
    with pytest.raises(SystemExit) as ended:
        run(schema_group, "kproto schema", ["compare", str(folder), "--java", "--values", "5"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0, shown
    assert shown.endswith("compared with Kafka's generator 4.3.1: 0 differences\n")


def test_the_command_tells_of_differences(tmp_path, capsys):
    require("java", "maven")
    rng = random.Random(1)
    schema = random_schema(rng, 1) | {"validVersions": "3-1"}
    folder = str(_write(tmp_path, {"Draft1": schema}))
    with pytest.raises(SystemExit) as ended:
        run(schema_group, "kproto schema", ["compare", folder, "--java", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (ended.value.code, found["messages"]) == (1, 0)
    assert [each["kind"] for each in found["differences"]] == ["refused here"]
