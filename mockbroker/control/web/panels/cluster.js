// Addresses, the simulated clock, and the brokers with the operations on each.

import {button, copies, keyed, make, retext} from "../dom.js";
import {tables} from "../tables.js";

// Operations with a button of their own; the others are under "More".
const MAIN = ["stop-broker", "start-broker", "failover"];

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  let addresses = {}, state = null;

  copies($("copy-bootstrap"), $("bootstrap"));
  $("advance").addEventListener("submit", event => {
    event.preventDefault();
    page.operate("advance", {duration: $("advance").elements.duration.value.trim()});
  });

  page.on("clusters", here => {
    addresses = here.brokers;
    retext($("bootstrap"), here.bootstrap);
    const now = here.clock === "wall" ? `${new Date(here.now_ms).toISOString().slice(11, 19)} UTC`
      : `${here.now_ms / 1000} s`;
    $("clock").textContent = `${now} (${here.clock})`;
    if (state !== null) showBrokers();
  });
  page.on("state", news => { state = news; showBrokers(); });

  const showBrokers = () => keyed($("brokers"), Object.entries(state.brokers), ([id]) => id, create, update);

  function create([id]) {
    const card = make("li"), broker = Number(id), parts = {};
    card.dataset.broker = id;
    const run = name => () => page.operate(name, {broker});
    parts.role = make("span", "", "tag strong");
    parts.live = make("span", "", "tag");
    const head = make("div", "", "line");
    head.append(make("b", `Broker ${id}`), " ", parts.role, " ", parts.live);
    parts.address = make("code");
    const copy = button("Copy", () => {});
    copy.ariaLabel = `Copy the address of broker ${id}`;
    copies(copy, parts.address);
    const where = make("div", "", "line");
    where.append(parts.address, " ", copy);
    // One button stops and starts, so that the focus stays.
    parts.power = button("Stop", () =>
      page.operate(state.brokers[id].live ? "stop-broker" : "start-broker", {broker}));
    parts.failover = button("Make controller", run("failover"));
    const acts = make("div", "", "line"), more = make("details"), rest = make("div", "", "line");
    for (const name of tables.brokerOperations)
      if (!MAIN.includes(name)) rest.append(button(name, run(name)));
    more.append(make("summary", "More"), rest);
    acts.append(parts.power, parts.failover, more);
    card.append(head, where, acts);
    card.parts = parts;
    return card;
  }

  function update(card, [id, broker]) {
    const {role, live, address, power, failover} = card.parts;
    const leads = Number(id) === state.controller;
    card.classList.toggle("stopped", !broker.live);
    retext(role, leads ? `★ controller, epoch ${state.controller_epoch}` : "");
    retext(live, broker.live ? "live" : "■ stopped");
    address.textContent = addresses[id] ?? "";
    power.textContent = broker.live ? "Stop" : "Start";
    power.ariaLabel = `${power.textContent} broker ${id}`;
    failover.ariaLabel = `Make broker ${id} the controller`;
    failover.disabled = leads || !broker.live;
  }
}
