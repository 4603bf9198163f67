// Building and updating elements. All text reaches the page as text, never as markup.

// Clients may send anything; the page escapes invisible characters.
export const printable = text => String(text).replace(/\p{C}/gu,
  each => `\\u{${each.codePointAt(0).toString(16)}}`);

export const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export function make(name, text = "", className = "") {
  const element = document.createElement(name);
  if (text !== "") element.textContent = printable(text);
  if (className) element.className = className;
  return element;
}

export function button(text, onClick, className = "") {
  const made = make("button", text, className);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

// Set the text of an element, and mark it if it had another.
export function retext(element, text) {
  const wanted = printable(text);
  if (element.textContent === wanted) return;
  if (element.textContent !== "") mark(element);
  relist(element, wanted);
}

// Set the text of an element, with line breaks allowed behind its commas, not inside addresses.
export function relist(element, text) {
  const parts = text.split(/(?<=,)/);
  element.replaceChildren(...parts.flatMap((part, at) => at ? [make("wbr"), part] : [part]));
}

export function mark(element) {
  element.classList.add("changed");
  clearTimeout(element.fading);
  element.fading = setTimeout(() => element.classList.remove("changed"), 4000);
}

// Make the children of `parent` those of `items`, in their order. Elements are kept by key, and so
// is the focus: `create` makes one for an item, `update` is called for every item.
export function keyed(parent, items, keyOf, create, update = () => {}) {
  const focused = document.activeElement;
  const wanted = new Map(items.map(item => [String(keyOf(item)), item]));
  const known = new Map();
  for (const child of [...parent.children])
    if (wanted.has(child.dataset.key)) known.set(child.dataset.key, child); else child.remove();
  let at = parent.firstElementChild;
  for (const [key, item] of wanted) {
    let element = known.get(key);
    if (element === undefined) {
      element = create(item);
      element.dataset.key = key;
    }
    update(element, item);
    if (element === at) at = at.nextElementSibling; else parent.insertBefore(element, at);
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({preventScroll: true});
}

const LONGEST_PAUSE_MS = 2000;

// Call `work` soon, however often it is requested: after a pause of at least `milliseconds`, and of
// four times as long as it took last, so that a large cluster does not block the page. No pause is
// longer than two seconds: a machine that is busy for a moment does not stop the page.
export function paced(work, milliseconds) {
  let timer = null, pause = milliseconds;
  return () => {
    timer ??= setTimeout(async () => {
      const begin = performance.now();
      try { await work(); } finally {
        pause = Math.max(milliseconds, Math.min(4 * (performance.now() - begin), LONGEST_PAUSE_MS));
        timer = null;
      }
    }, pause);
  };
}

// Copy the text of an element when the button is pressed. Only pages of this machine and of HTTPS
// may write to the clipboard; elsewhere the text is selected.
export function copies(control, element) {
  control.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element.textContent);
      control.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(element);
      control.textContent = "Selected";
    }
    setTimeout(() => { control.textContent = "Copy"; }, 2000);
  });
}
