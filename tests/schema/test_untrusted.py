"""A schema is text that becomes code: whatever it says, none of it is run."""

import builtins
import json
from pathlib import Path

import pytest

import kproto

RUNS = "x')\nimport builtins; builtins.it_ran = True #"


@pytest.mark.parametrize("quote", ["'", '"', '"""', "\\'", "}{"])
@pytest.mark.parametrize(
    "member", ["name", "type", "[]", "default", "about", "entityType", "mapKey", "versions"]
)
def test_nothing_in_a_schema_is_run(member: str, quote: str, tmp_path: Path) -> None:
    """Names are letters and digits, and refused with line and remedy; texts are values."""
    text = RUNS.replace("'", quote)
    field = {"name": "Text", "type": "string", "versions": "0+"}
    field |= {"type": f"[]{text}", "fields": []} if member == "[]" else {member: text}
    for kind in ("Request", "Response"):
        schema = {
            "apiKey": 32100,
            "type": kind.lower(),
            "name": f"Greet{kind}",
            "validVersions": "0",
            "flexibleVersions": "0+",
            "fields": [field],
        }
        (tmp_path / f"Greet{kind}.json").write_text(json.dumps(schema))
    try:
        greet = kproto.load_dialect(tmp_path, base="kafka").message("GreetRequest")
    except kproto.SchemaError:
        refused = True
    else:
        refused = False
        made = greet()
        assert greet.decode(made.encode(0), 0) == made
        assert greet.from_json(made.to_json(0), 0) == made
        assert made.text == (text if member == "default" else "")
    assert refused or member not in {"name", "type", "[]", "versions"}
    assert not hasattr(builtins, "it_ran")
