// Running a scenario: its lines, and whether its claims held.

import {counted, printable} from "../dom.js";
import {read} from "../server.js";

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  const run = $("run"), select = run.elements.scenario, result = $("result");

  page.on("clusters", async () => {
    if (select.options.length || select.loading) return;
    select.loading = true;
    const {scenarios} = await read("/scenarios");
    root.hidden = scenarios.length === 0;
    select.replaceChildren(...scenarios.map(each => new Option(`${each.name}: ${each.title}`, each.name)));
  });

  run.addEventListener("submit", async event => {
    event.preventDefault();
    const name = select.value, start = run.querySelector("button");
    start.disabled = true;
    result.className = "";
    result.textContent = `${name} is running`;
    const outcome = await page.act(`scenario run ${name}`, "POST", `/scenarios/${encodeURIComponent(name)}`, {});
    start.disabled = false;
    start.focus({preventScroll: true});
    $("lines").parentElement.hidden = outcome === null;
    if (outcome === null) {
      result.textContent = "";
      return;
    }
    result.className = outcome.ok ? "good" : "bad";
    result.textContent = outcome.ok ? `✓ ${name}: ${counted(outcome.facts, "claim")} held`
      : `✗ ${name}: ${outcome.error}`;
    $("lines").textContent = outcome.lines.map(printable).join("\n");
  });
}
