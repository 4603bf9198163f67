// The newest entries of the action log: what the cluster did, and because of what.

import {counted, cut, keyed, make} from "../dom.js";

const KEPT = 200, SHOWN = 20;

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  let actions = [];
  page.on("actions", news => {
    actions = [...actions, ...news].slice(-KEPT);
    keyed($("changes"), actions.slice(-SHOWN).reverse(), each => each.offset, create);
    const older = actions.length ? actions.at(-1).offset + 1 - Math.min(actions.length, SHOWN) : 0;
    $("hidden").textContent = older ? `${counted(older, "older change")} hidden`
      : actions.length ? "" : "Nothing has changed yet.";
  });
}

function create(action) {
  const item = make("li");
  item.append(make("span", `${action.offset} `, "soft"), make("b", action.cause), ` ${action.kind} `,
    make("code", cut(summary(action), 140)));
  return item;
}

// A new broker by its id, a new topic by its name, other values as JSON.
function text(value) {
  if (value === undefined) return "–";
  if (value?.partitions && value.name) return `${value.name}, ${counted(value.partitions.length, "partition")}`;
  return JSON.stringify(value?.broker_id ?? value);
}

// The members that differ, or all of them.
function summary({offset, at_ms, cause, kind, before, after, ...rest}) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const members = of => Object.entries(of).map(([name, value]) => `${name} ${text(value)}`).join("  ");
  if (!before || !after) return members({...rest, ...before && {before}, ...after && {after}});
  const where = after.broker_id !== undefined ? `broker ${after.broker_id}`
    : rest.topic !== undefined ? `${rest.topic}-${after.index}` : members(rest);
  const changed = Object.keys(after).filter(name => !same(before[name], after[name]))
    .map(name => `${name} ${text(before[name])} → ${text(after[name])}`);
  return [where, changed.join(", ")].join("  ");
}
