"""How a page is laid out, measured in the browser: what runs over, what covers what, what can
hardly be read. Each function gives a list of what is wrong, in words; an empty one is good.

Boxes are those of text itself, not of its elements, and of everything that is rendered: an element
that is closed or hidden has none.
"""

from typing import Any, Final

__all__ = ["broken", "covered", "faint", "runs_over", "tiny", "unplotted"]

_COMMON: Final = """
const shown = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true});
const name = text => JSON.stringify(text.trim().slice(0, 40));

// Every piece of text that is rendered: its words, its element and its boxes.
function pieces() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || !shown(element)) continue;
    if (element.closest('style, script, title')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(box => box.width > 0.5 && box.height > 0.5);
    if (boxes.length) found.push({words: name(node.data), element, boxes});
  }
  return found;
}

// How far two boxes are in each other, the lesser way; what does not touch is not.
const inside = (one, other) => Math.min(
  Math.min(one.right, other.right) - Math.max(one.left, other.left),
  Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top));

// What is drawn in a colour of its own, which no axis and no grid is.
function marks(svg) {
  const ink = getComputedStyle(svg).color;
  return [...svg.querySelectorAll('path, use, rect, circle')].filter(shape => {
    const {fill, stroke} = getComputedStyle(shape);
    return !shape.closest('defs, clipPath') &&
      [fill, stroke].some(colour => colour !== 'none' && colour !== ink);
  });
}
"""

_RUNS_OVER: Final = """
() => {
  const found = [];
  // A telephone makes its window wider where the page is; its screen stays what it is.
  const wide = document.documentElement.scrollWidth, room = Math.min(innerWidth, screen.width);
  if (wide > room) found.push(`the page is ${wide} wide, where there is room for ${room}`);
  for (const {words, element, boxes} of pieces()) {
    // What can be scrolled to is not lost; a figure has to be seen without.
    const box = element.closest('svg') || element.closest('.scroll') || document.documentElement;
    const left = box.getBoundingClientRect().left - box.scrollLeft;
    const right = left + box.scrollWidth;
    const edge = box.tagName === 'svg' ? box.getBoundingClientRect().right : right;
    for (const each of boxes)
      if (each.left < left - 1 || each.right > edge + 1)
        found.push(`${words}: ${each.left} to ${each.right} in ${left} to ${edge}`);
  }
  for (const element of document.querySelectorAll('body *')) {
    const {overflowX, textOverflow} = getComputedStyle(element);
    if (['hidden', 'clip'].includes(overflowX) && element.scrollWidth > element.clientWidth + 1)
      if (!element.closest('svg')) found.push(`<${element.tagName} id=${element.id}> is cut off`);
  }
  return found;
}
"""

_COVERED: Final = """
() => {
  const found = [], boxes = [];
  for (const each of pieces())
    for (const box of each.boxes) boxes.push({...each, box, svg: each.element.closest('svg')});
  boxes.sort((one, other) => one.box.top - other.box.top);
  boxes.forEach((one, place) => {
    for (let next = place + 1; next < boxes.length; next++) {
      const other = boxes[next];
      if (other.box.top >= one.box.bottom) break;
      if (one.element === other.element || inside(one.box, other.box) <= 2) continue;
      found.push(`${one.words} and ${other.words} cover each other`);
    }
  });
  for (const svg of [...document.querySelectorAll('figure svg')].filter(shown)) {
    const shapes = marks(svg).map(shape => shape.getBoundingClientRect());
    for (const {words, box} of boxes.filter(each => each.svg === svg))
      if (shapes.some(shape => inside(shape, box) > 2))
        found.push(`${words} is on what is plotted`);
  }
  return found;
}
"""

_FAINT: Final = """
least => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = channels(colour).map(each => each / 255)
      .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(element).backgroundColor);
      if (a > 0) return `rgb(${r}, ${g}, ${b})`;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  for (const {words, element} of pieces()) {
    const {color, fill} = getComputedStyle(element);
    const [ink, paper] = [light(element.closest('svg') ? fill : color), light(behind(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < least) found.push(`${words}: contrast ${contrast.toFixed(1)}`);
  }
  return found;
}
"""

_UNPLOTTED: Final = """
() => {
  const found = [];
  for (const figure of document.querySelectorAll('figure')) {
    // A figure may have one picture for wide windows and one for narrow ones.
    const svg = [...figure.querySelectorAll('svg')].find(shown), room = figure.firstElementChild;
    const box = svg.getBoundingClientRect(), frame = room.getBoundingClientRect();
    if (box.width < 200 || box.height < 80) found.push(`${figure.id}: ${box.width}x${box.height}`);
    if (box.left < frame.left - 1 || box.right > frame.right + 1)
      found.push(`${figure.id}: ${box.left} to ${box.right} in ${frame.left} to ${frame.right}`);
    const shapes = marks(svg).map(shape => shape.getBoundingClientRect());
    if (!shapes.length) found.push(`${figure.id}: nothing is plotted`);
    for (const shape of shapes)
      if (shape.left < box.left - 1 || shape.right > box.right + 1 ||
          shape.top < box.top - 1 || shape.bottom > box.bottom + 1)
        found.push(`${figure.id}: plotted outside of itself`);
  }
  return found;
}
"""

_TINY: Final = """
least => {
  const found = [];
  for (const {words, element} of pieces()) {
    const svg = element.closest('svg');
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    if (size < least) found.push(`${words}: ${size.toFixed(1)} pixels`);
  }
  return found;
}
"""

_BROKEN: Final = """
() => {
  const found = [], address = /[a-z0-9.-]+:[0-9]{4,5}/g;
  for (const code of document.querySelectorAll('code, pre')) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());)
      for (const {0: words, index} of node.data.matchAll(address)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + words.length);
        const tops = new Set([...range.getClientRects()].map(({top}) => Math.round(top)));
        if (tops.size > 1) found.push(`${words} is broken in its middle`);
      }
  }
  return found;
}
"""

LEAST_SIZE: Final = 9.5
"""In pixels, of text in figures too."""

LEAST_CONTRAST: Final = 4.5
"""What WCAG 2 asks of text (AA)."""


async def runs_over(page: Any) -> list[str]:
    """Text that is outside of the window, or of the box with which it could be scrolled to."""
    return await _measured(page, _RUNS_OVER)


async def covered(page: Any) -> list[str]:
    """Text on text, and text of a figure on what the figure plots."""
    return await _measured(page, _COVERED)


async def faint(page: Any) -> list[str]:
    """Text whose colour is too near its background's."""
    return await _measured(page, _FAINT, LEAST_CONTRAST)


async def tiny(page: Any) -> list[str]:
    """Text too small to be read."""
    return await _measured(page, _TINY, LEAST_SIZE)


async def unplotted(page: Any) -> list[str]:
    """Figures that are empty, cut off, or too small to be seen."""
    return await _measured(page, _UNPLOTTED)


async def broken(page: Any) -> list[str]:
    """Addresses, such as those of a bootstrap list, with a line break inside."""
    return await _measured(page, _BROKEN)


async def _measured(page: Any, script: str, argument: Any = None) -> list[str]:
    found: list[str] = await page.evaluate(
        f"(argument) => {{{_COMMON} return ({script.strip()})(argument)}}", argument
    )
    return found
