// The page: fetches and streams what the panels show, and carries out what they request.
//
// A panel is a section of the page with `data-panel=NAME`. Its module `panels/NAME.js` exports
// `start(root, page)`, which subscribes to the topics below. A panel never polls by itself.
//
//   clusters  the entry of GET /clusters of this cluster     faults   the rules and their hits
//   state     the object of GET /state                       actions  new entries of the action log
//   entries   new entries of the journal                     gap      entries that were skipped
//   logs      the object of GET /logs, without logs that were never written to
//   groups    [group, committed offsets] of each group, as GET /groups and /offsets/ID have them
//   tick      every few seconds

import {counted, paced} from "./dom.js";
import {TokenError, chosen, follow, hasToken, onCluster, read, send, setToken} from "./server.js";

const FIRST_ENTRIES = 400, FIRST_ACTIONS = 50, LATEST = 1000, MOST_GROUPS = 20, TICK_MS = 3000;
const $ = id => document.getElementById(id);
const subscribers = new Map();

const page = {
  on(topic, take) { subscribers.set(topic, [...subscribers.get(topic) ?? [], take]); },

  // Send a request of the user and show its outcome; returns the answer, or null if it failed.
  async act(label, method, path, body) {
    showOutcome(`${label} …`, "");
    try {
      const answer = await send(method, path, body);
      const changes = answer.actions?.length;
      showOutcome(`✓ ${label}` + (changes === undefined ? "" : changes === 0 ? ": no change"
        : `: ${changes} ${changes === 1 ? "change" : "changes"}`), "good");
      await Promise.all([refresh.state(), refresh.faults(), refresh.clusters(), refresh.data()]);
      return answer;
    } catch (error) {
      showOutcome(`✗ ${label}: ${error.message}`, "bad");
      return null;
    }
  },

  // Carry out an operation with these arguments.
  operate(name, values) {
    const label = [name, ...Object.values(values)].join(" ");
    return page.act(label, "POST", onCluster(`/${name}`), values);
  },
};

function emit(topic, value) { for (const take of subscribers.get(topic) ?? []) take(value); }

function showOutcome(text, kind) {
  $("outcome").hidden = false;
  $("outcome").className = kind;
  $("outcome").firstElementChild.textContent = text;
}

function showConnection(text, kind) {
  if ($("connection").textContent !== text) $("connection").textContent = text;
  $("connection").className = kind;
}

function showProblem(error) {
  if (error instanceof TokenError) {
    $("token").hidden = false;
    showConnection("enter the control token", "bad");
  } else showConnection(error.message, "bad");
}

// ---- what the panels show --------------------------------------------------------------------

const refresh = {
  async state() { emit("state", await read(onCluster("/state"))); },
  async faults() { emit("faults", (await read(onCluster("/faults"))).faults); },
  async data() {
    const [logs, groups] = await Promise.all(
      [read(onCluster("/logs?only=written")), read(onCluster("/groups"))]);
    emit("logs", logs);
    emit("groups", await Promise.all(Object.values(groups).slice(0, MOST_GROUPS).map(async group =>
      [group, await read(onCluster(`/offsets/${encodeURIComponent(group.group_id)}`))])));
  },
  async clusters() {
    const {clusters} = await read("/clusters");
    const here = clusters.find(each => each.id === (chosen ?? "1"));
    showClusters(clusters);
    if (here === undefined) return;
    $("about").textContent = `${here.profile} · ${counted(Object.keys(here.brokers).length, "broker")}`;
    emit("clusters", here);
  },
};

function showClusters(clusters) {
  $("clusters").hidden = clusters.length < 2;
  const select = $("clusters").querySelector("select");
  if ([...select.options].map(each => each.value).join() === clusters.map(each => each.id).join()) return;
  select.replaceChildren(...clusters.map(each => new Option(`${each.id}: ${each.profile}`, each.id)));
  select.value = chosen ?? "1";
}

const soon = (topic, milliseconds) =>
  paced(() => refresh[topic]().catch(showProblem), milliseconds);
const stateSoon = soon("state", 60), faultsSoon = soon("faults", 300), clustersSoon = soon("clusters", 60);
const dataSoon = soon("data", 300);

// Events come one by one; panels get those of one moment together.
function batches(topic) {
  let batch = [];
  const pass = paced(() => { const full = batch; batch = []; emit(topic, full); }, 80);
  return event => { batch.push(event); pass(); };
}

function tick() {
  if (document.hidden) return;
  stateSoon();
  faultsSoon();
  clustersSoon();
  dataSoon();
  emit("tick");
}

async function begin() {
  try {
    const [newest, log] = await Promise.all([
      read(onCluster(`/journal?last=${FIRST_ENTRIES}`)), read(onCluster(`/log?last=${FIRST_ACTIONS}`)),
      refresh.clusters(), refresh.state(), refresh.faults(), refresh.data(),
    ]);
    emit("entries", newest);
    emit("actions", log);
    const newEntry = batches("entries"), newAction = batches("actions");
    follow(after => onCluster(`/journal/stream?latest=${LATEST}&after=${after}`), newest.at(-1)?.sequence ?? 0,
      (event, data) => {
        if (event === "entry") { newEntry(data); faultsSoon(); dataSoon(); }
        if (event === "gap") emit("gap", data);
      }, showConnection).catch(showProblem);
    follow(seen => onCluster(`/log/stream?since=${seen + 1}`), log.at(-1)?.offset ?? -1,
      (event, data) => {
        if (event === "action") { newAction(data); stateSoon(); clustersSoon(); dataSoon(); }
      }, showConnection).catch(showProblem);
    setInterval(tick, TICK_MS);
  } catch (error) { showProblem(error); }
}

// ---- start -----------------------------------------------------------------------------------

$("outcome").querySelector("button").addEventListener("click", () => { $("outcome").hidden = true; });
for (const link of document.querySelectorAll("nav a"))
  link.addEventListener("click", event => {
    event.preventDefault();  // the fragment names the cluster
    const section = document.querySelector(link.getAttribute("href"));
    section.scrollIntoView();
    section.focus({preventScroll: true});
  });
$("clusters").addEventListener("change", event => {
  location.hash = `cluster=${encodeURIComponent(event.target.value)}`;
  location.reload();
});
$("token").addEventListener("submit", event => {
  event.preventDefault();
  setToken($("token").querySelector("input").value);
});

const roots = [...document.querySelectorAll("[data-panel]")];
const modules = await Promise.all(roots.map(root => import(`./panels/${root.dataset.panel}.js`)));
modules.forEach((module, at) => module.start(roots[at], page));
if ("wantsToken" in document.body.dataset && !hasToken()) showProblem(new TokenError()); else begin();
