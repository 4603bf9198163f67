"""The recipes of docs/how-to/fault-rules.md are rules, and the steps that pages name are steps."""

import re
from pathlib import Path

import pytest
import yaml

from mockbroker.faults import Fault, faults_of

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "how-to" / "fault-rules.md").read_text()
REFERENCE = (DOCS / "reference" / "faults.md").read_text()
RECIPES = re.findall(r"^\| (.+?) \| (`.+`) \|$", GUIDE.partition("## Recipes")[2], re.M)


@pytest.mark.parametrize(("purpose", "cell"), RECIPES)
def test_the_recipe_is_a_rule(purpose: str, cell: str) -> None:
    members = yaml.safe_load("\n".join(re.findall(r"`(.+?)`", cell)))
    (rule,) = faults_of(members)
    assert members.keys() <= rule.to_dict().keys(), purpose


def test_the_guide_has_recipes() -> None:
    assert len(RECIPES) >= 5


@pytest.mark.parametrize(
    "step",
    sorted(set(re.findall(r"`((?:failover|[a-z]+-[a-z]+|advance) [^`]*?)`", GUIDE + REFERENCE))),
)
def test_the_steps_are_steps(step: str) -> None:
    Fault(steps_before=[step])
