// The journal: a request and its response are one entry, and runs of routine traffic are folded.
// At most KEPT entries are kept and SHOWN are rows, however long the journal is.

import {copies, counted, cut, keyed, make, printable, relist} from "../dom.js";
import {errorCodes, errorTag} from "../errors.js";
import {frameParts} from "../frame.js";
import {onCluster, read} from "../server.js";

const KEPT = 2000, SHOWN = 150, PATIENCE_MS = 2000;

// What clients send again and again. It is routine unless something is wrong with it; fetches are
// routine if they bring nothing.
const ROUTINE = new Set(["ApiVersions", "Metadata", "FindCoordinator", "Heartbeat", "DescribeCluster",
  "SaslHandshake", "SaslAuthenticate"]);
const FETCHES = new Set(["Fetch", "ShareFetch"]);

export function start(root, page) {
  const $ = name => root.querySelector(`[data-${name}]`);
  let exchanges = [], held = 0, skipped = 0;
  const unanswered = new Map(), opened = new Set();  // exchanges by broker, connection, correlation id

  // ---- exchanges ------------------------------------------------------------------------------

  // An exchange is a request with its response and the events between them, or an event alone.
  function keep(entry) {
    delete entry.raw;
    const key = [entry.broker_id, entry.connection_id, entry.correlation_id].join();
    const request = entry.direction === "request" ? undefined : unanswered.get(key);
    if (request !== undefined) {
      if (entry.direction === "response") unanswered.delete(key);
      add(request, entry);
      return;
    }
    if (entry.event === "disconnected") giveUp(`${entry.broker_id},${entry.connection_id},`);
    const exchange = {key: entry.sequence, entries: [], errors: new Set(), version: 0, waits: false};
    add(exchange, entry);
    exchanges.push(exchange);
    if (entry.direction !== "request" || entry.correlation_id === undefined) return;
    unanswered.set(key, exchange);
    exchange.waits = true;
  }

  // No response comes on a connection that is closed.
  function giveUp(connection) {
    for (const [key, exchange] of unanswered) {
      if (!key.startsWith(connection)) continue;
      unanswered.delete(key);
      exchange.waits = false;
      exchange.version++;
    }
  }

  function add(exchange, entry) {
    exchange.entries.push(entry);
    exchange.version++;
    if (entry.direction === "response") exchange.errors = errorCodes(entry.body);
  }

  function forget() {
    if (exchanges.length <= KEPT) return;
    exchanges = exchanges.slice(-KEPT / 2);
    const oldest = exchanges[0].key;
    for (const [key, exchange] of unanswered) if (exchange.key < oldest) unanswered.delete(key);
  }

  page.on("entries", news => {
    news.forEach(keep);
    forget();
    if (!$("pause").checked) { show(); return; }
    held += news.length;
    $("held").textContent = `${held} new`;
  });
  page.on("gap", ({after, next}) => { skipped += next - after - 1; });
  page.on("tick", () => { if (!$("pause").checked) show(); });

  // ---- which are shown ------------------------------------------------------------------------

  function agrees({entries, errors}) {
    const api = $("api").value.trim().toLowerCase(), client = $("client").value.trim().toLowerCase();
    const [entry] = entries;
    const key = entry.api_key === undefined ? "" : String(entry.api_key);
    return (api === "" || key === api || (!/^\d+$/.test(api) && (entry.api ?? "").toLowerCase().includes(api)))
      && (client === "" || who(entry).toLowerCase().includes(client))
      && (!$("errors").checked || errors.size > 0 || entries.some(isTrouble));
  }

  // Rows from the newest: exchanges, and {fold} for runs of routine ones.
  function rowsToShow() {
    const folds = $("fold").checked && $("api").value.trim() === "";
    const rows = [];
    let run = [], hidden = 0;
    const close = () => {
      if (run.length > 1) {
        const fold = {key: `fold-${run.at(-1).key}`, fold: run, version: run[0].key};
        const shown = opened.has(fold.key) ? run.slice(0, SHOWN) : [];
        for (const exchange of shown) exchange.folded = true;
        rows.push(fold, ...shown);
      } else rows.push(...run);
      run = [];
    };
    for (const exchange of exchanges.toReversed()) {
      if (!agrees(exchange)) continue;
      exchange.folded = false;
      if (rows.length >= SHOWN) {
        // An open entry stays, however many follow it.
        if (opened.has(exchange.key)) rows.push(exchange); else hidden++;
      } else if (folds && isRoutine(exchange)) run.push(exchange);
      else { close(); rows.push(exchange); }
    }
    close();
    return {rows, hidden};
  }

  function show() {
    const {rows, hidden} = rowsToShow();
    keyed($("entries"), rows, row => row.key, create, update);
    $("hidden").textContent = [
      hidden && `${hidden} older entries hidden`,
      skipped && `${skipped} frames and events skipped in a burst`,
      exchanges.length && !rows.length && "No entry matches.",
    ].filter(each => each).join("; ");
    $("empty").hidden = exchanges.length > 0;
  }

  // ---- rows -----------------------------------------------------------------------------------

  function create({key}) {
    const item = make("li"), head = make("button", "", "entry");
    head.type = "button";
    head.ariaExpanded = String(opened.has(key));
    head.addEventListener("click", () => toggle(item));
    item.append(head);
    return item;
  }

  function update(item, row) {
    item.row = row;
    item.classList.toggle("folded", row.folded === true);
    if (item.version === row.version) return;
    item.version = row.version;
    item.dataset.sequence = row.key;
    item.classList.toggle("wrong", row.errors?.size > 0 || row.entries?.some(isTrouble) === true);
    item.classList.toggle("fold", row.fold !== undefined);
    const head = item.firstElementChild;
    head.replaceChildren(...row.fold === undefined ? exchangeParts(row) : foldParts(row.fold));
    if (opened.has(row.key) && row.fold === undefined) fill(item);
  }

  function toggle(item) {
    const {key, fold} = item.row, head = item.firstElementChild;
    if (opened.delete(key)) {
      head.ariaExpanded = "false";
      item.querySelector(".frames")?.remove();
    } else {
      opened.add(key);
      head.ariaExpanded = "true";
      if (fold === undefined) fill(item);
    }
    if (fold !== undefined) show();
  }

  // The frames of an open exchange; a response may come later.
  async function fill(item) {
    let box = item.querySelector(".frames");
    if (box === null) { box = make("div", "", "frames"); item.append(box); }
    const {entries} = item.row;
    for (const {sequence, direction} of entries) {
      // An event between request and response has the request's frame.
      if (direction === "event" && entries.length > 1) continue;
      if (box.querySelector(`[data-frame="${sequence}"]`)) continue;
      const part = make("div", "", "frame");
      part.dataset.frame = sequence;
      part.append(make("h3", `${direction[0].toUpperCase()}${direction.slice(1)}, entry ${sequence}`));
      box.append(part);
      try { part.append(...frameParts(await read(onCluster(`/journal/${sequence}`)))); }
      catch (error) { part.append(make("p", error.message, "bad")); }
    }
  }

  // ---- start ----------------------------------------------------------------------------------

  for (const name of ["api", "client", "errors", "fold"]) $(name).addEventListener("input", show);
  $("pause").addEventListener("change", () => {
    held = 0;
    $("held").textContent = "";
    if (!$("pause").checked) show();
  });
  copies($("copy-property"), $("property"));
  copies($("copy-command"), $("command"));
  page.on("clusters", ({bootstrap}) => {
    relist($("property"), `bootstrap.servers=${bootstrap}`);
    relist($("command"), `kproto admin topics --bootstrap-server ${bootstrap} --list`);
  });
}

// ---- what an exchange says ---------------------------------------------------------------------

const who = entry => [entry.client_id, entry.client_software?.name, entry.client_software?.version]
  .filter(each => each).join(" ");

const isConnection = entry => ["connected", "disconnected"].includes(entry.event);

// An event other than a client that connects or leaves, or a frame that was not decoded.
const isTrouble = entry => entry.error !== undefined
  || (entry.event && !isConnection(entry) && entry.event !== "sasl-token")
  || (entry.event === "disconnected" && entry.note !== "by the client");

function isRoutine(exchange) {
  const {entries, errors} = exchange, [entry] = entries;
  if (errors.size || entries.some(isTrouble)) return false;
  if (isConnection(entry) || entry.event === "sasl-token" || isEmptyFetch(exchange)) return true;
  return ROUTINE.has(entry.api)
    && (responseOf(entries) !== undefined || Date.now() - entry.timestamp_ns / 1e6 < PATIENCE_MS);
}

const responseOf = entries => entries.find(entry => entry.direction === "response");

function isEmptyFetch({entries}) {
  const answer = responseOf(entries);
  return FETCHES.has(entries[0].api) && answer?.body !== undefined
    && answer.body.responses.every(({partitions}) => partitions.every(({records}) => !records?.length));
}

const nameOf = entry =>
  entry.api ?? (entry.api_key === undefined ? entry.event ?? "" : `API ${entry.api_key}`);

function foldParts(run) {
  const counts = new Map();
  for (const exchange of run) {
    const name = (isEmptyFetch(exchange) ? "empty " : "") + nameOf(exchange.entries[0]);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const names = [...counts].map(([name, count]) => count > 1 ? `${name} ×${count}` : name);
  return [make("span", `${run.length} routine entries: ${names.join(", ")}`, "soft")];
}

function exchangeParts({entries, errors, waits}) {
  const [first] = entries, answer = responseOf(entries), name = nameOf(first), parts = [];
  const at = new Date(first.timestamp_ns / 1e6).toISOString().slice(11, 23);
  const version = first.api_key === undefined ? "" : ` v${first.api_version}`;
  parts.push(make("span", `${at} broker ${first.broker_id} `, "soft"), make("b", name), `${version} `);
  for (const code of errors) parts.push(errorTag(code), " ");
  for (const event of new Set(entries.map(entry => entry.event)))
    if (event && event !== name) parts.push(make("span", `[${event}]`, "bad"), " ");
  if (!errors.size)
    for (const {note} of entries.slice(1)) if (note) parts.push(make("span", note, "bad"), " ");
  if (first === answer) parts.push(make("span", "response alone ", "soft"));
  else if (answer !== undefined)
    parts.push(make("span", `${((answer.timestamp_ns - first.timestamp_ns) / 1e6).toFixed(1)} ms `, "soft"));
  else if (first.direction === "request") parts.push(outstanding(first, waits));
  parts.push(make("span", `${cut(who(first), 60)} `, "soft"));
  const text = first.error ?? (first.body === undefined ? first.note ?? "" : JSON.stringify(first.body));
  parts.push(make("code", cut(text, 160)));
  return parts;
}

function outstanding({api, body}, waits) {
  if (api === "Produce" && body?.acks === 0) return make("span", "acks 0, no response ", "soft");
  return waits ? make("span", "waiting ", "soft") : make("span", "no response ", "bad");
}
