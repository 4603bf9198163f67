"""Every case names documents that can be found."""

from __future__ import annotations

import re

import pytest

from kspec.case_parser import parse_case
from kspec.errors import KspecError
from kspec.model import SUITE
from kspec.runner.files import CASES, load_cases
from kspec.sources import KIPS, sources_of


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_each_document_of_a_case_has_a_place_and_an_address(path):
    found = sources_of(parse_case(path.read_text("utf-8"), path.as_posix()).case.source)
    assert found
    for each in found:
        assert re.fullmatch(r"https://[a-z.-]+/\S+", each.address)
        issue = each.document.startswith(("KAFKA-", "CVE-"))
        assert each.place or issue, f"{each.document}: name its heading or section"


def test_a_source_is_a_document_a_place_and_a_note():
    kip, rfc, guide, api = sources_of(
        'KIP-98, "Control Records" (markers); RFC 5802, sections 3 and 7; '
        'protocol guide, "error codes" and "Network" (a; b); protocol guide, "ListOffsets API"'
    )
    assert (kip.document, kip.place, kip.note) == ("KIP-98", '"Control Records"', "markers")
    assert str(kip) == 'KIP-98, "Control Records" (markers)'
    assert kip.address.endswith("/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging")
    assert rfc.address == "https://www.rfc-editor.org/rfc/rfc5802#section-3"
    assert guide.note == "a; b"
    assert guide.address.endswith("/protocol/#error-codes")
    assert api.address.endswith("#The_Messages_ListOffsets")


def test_the_place_of_a_proposal_is_its_section_where_a_case_names_none():
    (kip,) = sources_of("KIP-455")
    assert str(kip) == f'KIP-455, "{KIPS[455].section}"'
    (paged,) = sources_of("KIP-360")
    assert paged.address.endswith("viewpage.action?pageId=89068820")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hearsay", "is not DOCUMENT"),
        ("KIP-9999", "KIP-9999 is not in the table"),
        ("protocol guide", "names no heading"),
        ('protocol guide, "Gossip"', "names no heading"),
        ('protocol guide, "Network" and "Gossip"', "names no heading"),
        ('protocol guide, "Gossip API"', "names no heading"),
    ],
)
def test_what_is_not_in_the_tables_is_refused(text, problem):
    with pytest.raises(KspecError, match=problem):
        sources_of(text)


def test_the_titles_of_proposals_are_theirs():
    for number, each in KIPS.items():
        assert re.match(rf"KIP-{number}\b", each.title)


def test_the_first_version_of_the_suite_is_the_oldest():
    versions = {case.case.since for case in load_cases()}
    assert 1 in versions
    assert versions <= set(range(1, SUITE + 1))
