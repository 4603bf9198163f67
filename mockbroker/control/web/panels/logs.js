// The logs that hold records: where they begin and end, the high watermark, the end of each replica.

import {counted, keyed, make, printable, retext} from "../dom.js";
import {isInternal} from "../tables.js";

const MOST = 100;

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  let all = [];

  function show() {
    const own = $("internal").checked ? all : all.filter(([name]) => !isInternal(topicOf(name)));
    const rows = own.slice(0, MOST), hidden = all.length - rows.length;
    $("empty").hidden = own.length > 0;
    keyed($("logs"), rows, ([name]) => name, create, update);
    retext($("hidden"), hidden ? `${counted(hidden, "log")} hidden` : "");
  }

  page.on("logs", logs => { all = Object.entries(logs); show(); });
  $("internal").addEventListener("input", show);
}

const topicOf = name => name.slice(0, name.lastIndexOf("-"));

function create([name]) {
  const item = make("li");
  item.dataset.log = name;
  item.append(make("b", printable(name)), " ", make("span"), make("div", "", "soft"));
  return item;
}

function update(item, [, log]) {
  const [, offsets, replicas] = item.children;
  const waits = log.end_offset - log.high_watermark;
  retext(offsets, `offsets ${log.start_offset} to ${log.end_offset}, high watermark ${log.high_watermark}`
    + (waits > 0 ? `, ${counted(waits, "record")} not replicated` : ""));
  retext(replicas, Object.entries(log.replicas).map(([id, replica]) => [
    Number(id) === log.leader ? `★${id}` : id, replica.in_sync ? "✓" : "",
    `end ${replica.end_offset}`,
    replica.end_offset < log.end_offset ? `(${log.end_offset - replica.end_offset} behind)` : "",
    replica.held ? "held" : "",
  ].filter(each => each).join(" ")).join(" · "));
}
