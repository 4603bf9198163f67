// Partitions with their replicas: those that move come first, and those of internal topics are
// hidden. A replica is a button that lets it join or leave the ISR.

import {button, counted, keyed, make, printable, retext} from "../dom.js";
import {isInternal} from "../tables.js";

const MOST = 200;

const isMoving = partition =>
  partition.adding.length > 0 || partition.removing.length > 0 || partition.target !== null;

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  const table = root.querySelector("table");
  let topics = null;

  page.on("state", state => { topics = state.topics; show(); });
  for (const name of ["topic", "moving", "internal"]) $(name).addEventListener("input", () => { if (topics) show(); });
  $("create").addEventListener("submit", event => {
    event.preventDefault();
    const {name, partitions, replicas} = $("create").elements;
    page.operate("create-topic", {topic: `${name.value.trim()}:${partitions.value}:${replicas.value}`});
  });

  function show() {
    const wanted = $("topic").value.trim(), movingOnly = $("moving").checked;
    const moving = [], still = [];
    let hidden = 0;
    for (const [topic, partitions] of Object.entries(topics)) {
      if (!topic.includes(wanted)) { hidden += Object.keys(partitions).length; continue; }
      for (const [index, partition] of Object.entries(partitions)) {
        const moves = isMoving(partition), list = moves ? moving : still;
        const leftOut = movingOnly || (isInternal(topic) && wanted === "" && !$("internal").checked);
        if ((leftOut && !moves) || list.length >= MOST) hidden++;
        else list.push({name: `${topic}-${index}`, partition, moves});
      }
    }
    const rows = [...moving, ...still];
    hidden += Math.max(rows.length - MOST, 0);
    rows.length = Math.min(rows.length, MOST);
    keyed(table.tBodies[0], rows, row => row.name, create, update);
    retext($("hidden"), hidden ? `${counted(hidden, "partition")} hidden` : "");
    const none = rows.length === 0 && Object.keys(topics).every(isInternal);
    if (none && $("empty").hidden) $("new").open = true;
    $("empty").hidden = !none;
    $("legend").hidden = table.hidden = none;
    suggest(rows);
  }

  function suggest(rows) {
    const names = rows.map(row => row.name), list = document.getElementById("partition-names");
    if ([...list.children].map(each => each.value).join("\n") === names.join("\n")) return;
    list.replaceChildren(...names.map(name => new Option(name, name)));
  }

  function create({name}) {
    const row = document.createElement("tr");
    row.role = "row";
    row.dataset.partition = name;
    for (const kind of ["name", "leader", "replicas", "move"]) {
      const cell = row.insertCell();
      cell.className = kind;
      cell.role = "cell";
    }
    row.cells[0].textContent = printable(name);
    const bar = document.createElement("progress");
    row.cells[3].append(bar, make("span"));
    return row;
  }

  function update(row, {name, partition, moves}) {
    const [, leader, replicas, move] = row.cells;
    row.classList.toggle("moving", moves);
    retext(leader, (partition.leader === -1 ? "no leader" : String(partition.leader))
      + `, epoch ${partition.leader_epoch}`);
    const ids = [...new Set([...partition.replicas, ...partition.adding, ...partition.removing])];
    keyed(replicas, ids.map(id => replica(name, partition, id)), each => each.id, createReplica, updateReplica);
    showProgress(move, partition, moves);
  }

  function replica(name, partition, id) {
    return {
      id, name, leads: id === partition.leader, inIsr: partition.isr.includes(id),
      adding: partition.adding.includes(id), removing: partition.removing.includes(id),
    };
  }

  function createReplica() {
    const chip = button("", () => {
      const {name, id, inIsr} = chip.replica;
      page.operate(inIsr ? "leave-isr" : "join-isr", {partition: name, broker: id});
    }, "replica");
    return chip;
  }

  function updateReplica(chip, given) {
    const {id, name, leads, inIsr, adding, removing} = chip.replica = given;
    retext(chip, `${adding ? "+" : ""}${leads ? "★" : ""}${id}${inIsr ? " ✓" : ""}`);
    for (const [className, on] of Object.entries({adding, removing, "in-isr": inIsr}))
      chip.classList.toggle(className, on);
    const what = [leads && "leader", adding && "adding", removing && "removing",
      inIsr ? "in the ISR" : "not in the ISR"].filter(each => each).join(", ");
    chip.title = `Broker ${id}: ${what}. Press to let it ${inIsr ? "leave" : "join"} the ISR.`;
    chip.ariaLabel = `${name}, broker ${id}: ${what}. ${inIsr ? "Leave" : "Join"} the ISR`;
  }

  // A reassignment is complete once every replica of its target is in the ISR.
  function showProgress(cell, partition, moves) {
    const [bar, text] = cell.children;
    bar.hidden = !moves;
    const target = partition.target ?? partition.replicas.filter(id => !partition.removing.includes(id));
    const done = target.filter(id => partition.isr.includes(id)).length;
    bar.max = Math.max(target.length, 1);
    bar.value = done;
    const words = `to ${target.join(", ")}: ${done} of ${target.length} in the ISR`;
    bar.ariaLabel = words;
    retext(text, moves ? words : "");
  }
}
