"""The measures themselves: a page with one thing wrong is told of, and what is right is not."""

import pytest

from tests.browser.layout import broken, covered, faint, runs_over, tiny, unplotted
from tests.browser.opening import PHONE, opened

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

_FIGURE = "<figure id=f><div>{}</div></figure>"
_BARS = '<path d="M 10 10 H 200 V 90 H 10 Z" fill="#c00000" />'
_SVG = '<svg viewBox="0 0 280 100" width="280" height="100">{}</svg>'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<p>Words that are all right.</p>", {}),
        ('<div class="scroll" style="overflow-x:auto"><pre style="width:900px">All'
         '</pre></div>', {}),
        ('<p style="width:900px">Too wide.</p>', {runs_over: "the page is"}),
        ('<p style="position:relative;left:-30px">Begins too far left.</p>',
         {runs_over: "Begins too far left"}),
        ('<p style="width:90px;overflow:hidden;white-space:nowrap">Hidden at its end</p>',
         {runs_over: "is cut off"}),
        ('<p>One line</p><p style="margin-top:-30px">Another</p>', {covered: "cover each other"}),
        ('<p style="color:#bbb">Hardly there.</p>', {faint: "Hardly there"}),
        ('<code style="display:block;width:90px;overflow-wrap:anywhere">127.0.0.1:40001</code>',
         {broken: "127.0.0.1:40001 is broken"}),
        ('<code style="display:block;width:140px">127.0.0.1:40001,<wbr>127.0.0.1:40002</code>', {}),
        ('<p style="font-size:8px">Too small.</p>', {tiny: "Too small"}),
        (_FIGURE.format(_SVG.format(_BARS)), {}),
        (_FIGURE.format(_SVG.format(_BARS + '<text x="50" y="50">On a bar</text>')),
         {covered: "is on what is plotted"}),
        (_FIGURE.format(_SVG.format("")), {unplotted: "nothing is plotted"}),
        (_FIGURE.format(_SVG.format(_BARS).replace('width="280"', 'width="100"')),
         {unplotted: "100x100"}),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_told(browser, tmp_path, body, told):
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><meta name=viewport content='width=device-width'>{body}")
    async with opened(browser, page.as_uri(), width=PHONE, name="layout") as watched:
        for measure in (runs_over, broken, covered, faint, tiny, unplotted):
            found = await measure(watched.page)
            if measure in told:
                assert told[measure] in " ".join(found)
            else:
                assert found == []
