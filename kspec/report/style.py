"""The style sheet of the HTML page. It is light or dark, and a wide table scrolls by itself."""

from __future__ import annotations

from typing import Final

__all__ = ["STYLE"]

STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--soft:light-dark(#f2f2f2,#262626)}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:0 .8rem 4rem;
background:Canvas;color:CanvasText}
h1{margin:.6rem 0 0}h2{margin:2rem 0 .4rem}h3{margin:1.6rem 0 .2rem;font-size:1.05rem}
h4{margin:.6rem 0 0}p{margin:.3rem 0}small{opacity:.7}.source{font-size:.85rem;opacity:.8}
a{color:inherit;text-decoration:none}a:hover{text-decoration:underline}
ul{margin:.2rem 0;padding-left:1.2rem}.legend{list-style:none;padding:0;font-size:.85rem}
.scroll{overflow-x:auto}table{border-collapse:collapse}
th{text-align:left;font-weight:500}td,th{padding:.15rem .4rem;border-bottom:1px solid var(--line)}
.c{white-space:nowrap}.matrix th:first-child{min-width:11rem;max-width:30rem;position:sticky;left:0;
background:Canvas}
.matrix td{text-align:center;padding:.1rem}
.matrix .group th{background:var(--soft);font-weight:700}
.up span{writing-mode:vertical-rl;transform:rotate(180deg);white-space:nowrap}
.v{display:inline-block;min-width:1.5rem;text-align:center;border-radius:.25rem;font-weight:700;
color:#fff}
.pass{background:#25703a}.non-strict{background:#8a6100}.informational{background:#2b5d94}
.fail{background:#b3261e}.error{background:#6a3d9a}.unsupported{background:#6b6b6b}
.known{outline:2px dashed #b3261e;outline-offset:1px;background:#8b5651}
details{border-top:1px solid var(--line);padding:.2rem 0 .2rem .2rem}
summary{cursor:pointer;overflow-wrap:anywhere}details:has(:target){outline:2px solid #2b5d94}
.broken{color:#b3261e}@media(prefers-color-scheme:dark){.broken{color:#ff8a80}}
pre{overflow-x:auto;background:var(--soft);padding:.5rem;font-size:.78rem;max-height:26rem}
mark{background:#ffd54f;color:#000}li{overflow-wrap:anywhere}
"""
