// The groups: state, generation or epoch, members with their partitions (and their targets, where
// they are others), committed offsets and lag.

import {counted, cut, keyed, make, printable, retext} from "../dom.js";

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  page.on("groups", groups => {
    $("empty").hidden = groups.length > 0;
    keyed($("groups"), groups, ([group]) => group.group_id, create, update);
  });
}

// Whether the member of a consumer group is not at its target. Both lists are sorted.
function differ(assignment, target) {
  return target !== null && target !== undefined && assignment?.join() !== target.join();
}

function create([group]) {
  const item = make("li");
  item.dataset.group = group.group_id;
  item.append(make("b", printable(cut(group.group_id, 80))), " ", make("span"),
    make("div", "", "soft"), make("div", "", "soft"));
  return item;
}

function update(item, [group, offsets]) {
  const [, state, members, committed] = item.children;
  const consumer = group.type !== "classic";
  retext(state, `${group.state}, ${consumer ? "epoch" : "generation"} ${group.generation}, `
    + counted(group.members.length, "member")
    + (group.held ? `, ${consumer ? "assignment" : "joins"} held` : ""));
  retext(members, group.members.map(member => printable([
    member.instance_id ?? cut(member.client_id || member.member_id, 40),
    member.joining ? "joins" : "", member.syncing ? "syncs" : "",
    member.assignment?.length ? `has ${cut(member.assignment.join(", "), 120)}` : "",
    member.standby?.length ? `keeps ${cut(member.standby.join(", "), 120)}` : "",
    member.revoking?.length ? `gives up ${cut(member.revoking.join(", "), 120)}` : "",
    differ(member.assignment, member.target)
      ? `target ${cut(member.target.join(", "), 120) || "nothing"}` : "",
  ].filter(each => each).join(" "))).join(" · "));
  const rows = Object.entries(offsets);
  retext(committed, rows.length ? cut("committed " + rows.map(([name, {offset, lag}]) =>
    `${printable(name)} ${offset}` + (lag === null ? "" : ` (lag ${lag})`)).join(", "), 400) : "");
}
