"""The page and its files as the server sends them; tests/browser has the page in a browser."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import aiohttp
import pytest
from msgspec.structs import replace

from mockbroker.control import page
from mockbroker.control.page import page_files, page_response
from mockbroker.simulation.operations import OPERATIONS
from tests.mockbroker.control.test_control import controlled


class Forms(HTMLParser):
    """The forms of operations: name, then the fields in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self._fields: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        assert not {"style", *(name for name in given if name.startswith("on"))} & given.keys()
        if tag == "form":
            self._fields = self.found.setdefault(given.get("data-operation") or "", [])
        elif tag in ("input", "textarea", "select") and "name" in given:
            self._fields.append(given["name"] or "")


@pytest.fixture(autouse=True)
def _rendered_anew() -> Iterator[None]:
    page._page.cache_clear()
    yield
    page._page.cache_clear()


def rendered() -> str:
    text = page_response(wants_token=False).text
    assert text is not None
    return text


def test_every_operation_has_a_form() -> None:
    forms = Forms(rendered()).found
    del forms[""]
    assert forms == {
        name: [each.name for each in operation.arguments] for name, operation in OPERATIONS.items()
    }


def test_a_new_operation_appears_and_its_texts_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    added = replace(OPERATIONS["join-isr"], name=hostile, help=hostile, details=hostile)
    monkeypatch.setattr(page, "OPERATIONS", {**OPERATIONS, hostile: added})
    text = rendered()
    assert Forms(text).found[hostile] == ["partition", "broker"]
    assert "<img" not in text
    assert text.count("</script>") == text.count("<script") == 2


async def test_every_file_is_served_under_the_policy() -> None:
    async with controlled("secret") as (_, client):
        for path, (content, media_type) in {"/": (b"", "text/html"), **page_files()}.items():
            headers = {"Accept": "text/html" if path == "/" else "*/*"}
            async with client.session.get(client.url + path, headers=headers) as response:
                assert (response.status, response.content_type) == (200, media_type), path
                assert (await response.read()).endswith(content)
                policy = dict(
                    part.strip().split(" ", 1)
                    for part in response.headers["Content-Security-Policy"].split(";")
                )
                assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
                assert policy["script-src"] == policy["style-src"] == policy["connect-src"]
                assert policy["script-src"] == "'self'"
                assert policy["require-trusted-types-for"] == "'script'"
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        # All else needs the token, and the guard of host names covers the files too.
        assert (await client.get("/page/nothing.js"))[0] == 401
        some = next(iter(page_files()))
        assert (await client.get(some, headers={"Host": "evil.example"}))[0] == 403
        assert (await client.get("/page/../page.py"))[0] == 401


def test_the_page_refers_to_its_own_files_only() -> None:
    text = rendered()
    assert set(re.findall(r'(?:src|href)="([^"#]+)"', text)) == {
        "data:,", "/page/page.css", "/page/main.js",
    }  # fmt: skip
    names = set(re.findall(r'data-panel="(\w+)"', text))
    assert {f"/page/panels/{name}.js" for name in names} <= set(page_files())
    for path, (content, _) in page_files().items():
        assert b"innerHTML" not in content, path
        assert b"http" not in content.replace(b"HTTPS", b""), path
        assert set(re.findall(rb'from "([^."][^"]*)"', content)) == set(), path


async def test_other_clients_get_the_routes() -> None:
    async with controlled() as (_, client):
        assert (await client.get("/", headers={"Accept": "*/*"}))[1]["post"]["/failover"] == [
            "broker"
        ]
        async with aiohttp.request("GET", client.url, headers={"Accept": "text/html"}) as response:
            assert "data-wants-token" not in await response.text()
