// Fault rules: their hits, adding one, removing them.

import {button, counted, keyed, make, retext} from "../dom.js";
import {errorName} from "../errors.js";
import {onCluster} from "../server.js";

// What the port takes as a number, if it looks like one: an API key, an error code.
const numberOrText = text => /^-?\d+$/.test(text) ? Number(text) : text;

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  const add = $("add"), more = add.elements.more;

  page.on("faults", rules => {
    $("empty").hidden = rules.length > 0;
    $("clear").hidden = rules.length < 2;
    keyed($("rules"), rules, each => each.name, create, update);
  });

  $("clear").addEventListener("click", () => page.act("fault clear", "DELETE", onCluster("/faults")));
  more.addEventListener("input", () => more.setCustomValidity(""));
  add.addEventListener("submit", async event => {
    event.preventDefault();
    const rule = ruleOf(add.elements);
    if (rule === null) {
      more.setCustomValidity("This is not a JSON object.");
      more.reportValidity();
      return;
    }
    if (await page.act(`fault add ${JSON.stringify(rule)}`, "POST", onCluster("/faults"), rule)) add.reset();
  });

  function ruleOf({api, error, delay, times, name}) {
    const rule = {};
    for (const field of [api, error]) if (field.value.trim()) rule[field.name] = numberOrText(field.value.trim());
    for (const field of [delay, name]) if (field.value.trim()) rule[field.name] = field.value.trim();
    if (times.value) rule.times = Number(times.value);
    if (more.value.trim() === "") return rule;
    try {
      const further = JSON.parse(more.value);
      return further !== null && typeof further === "object" && !Array.isArray(further)
        ? {...rule, ...further} : null;
    } catch { return null; }
  }

  function create({name}) {
    const item = make("li"), head = make("div", "", "line"), members = make("code");
    const remove = button("Remove", () =>
      page.act(`fault remove ${name}`, "DELETE", onCluster(`/faults/${encodeURIComponent(name)}`)));
    remove.ariaLabel = `Remove rule ${name}`;
    const hits = make("span", "", "tag"), error = make("span", "", "bad error");
    head.append(make("b", name), " ", error, " ", hits, " ", remove);
    const failed = make("div", "", "bad");
    item.append(head, members, failed);
    item.parts = {hits, error, members, failed};
    return item;
  }

  function update(item, {hits, live, failed, rule}) {
    const {name, ...members} = rule;
    item.dataset.rule = item.dataset.key;
    retext(item.parts.hits, counted(hits, "hit") + (live ? "" : ", over"));
    item.parts.error.textContent = rule.error === undefined ? "" : `✗ ${errorName(rule.error)}`;
    retext(item.parts.members, JSON.stringify(members));
    retext(item.parts.failed, failed.map(each => `✗ ${each}`).join("; "));
  }
}
