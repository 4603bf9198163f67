// Requests to the control port: JSON there and back, the token, and event streams.

const fragment = new URLSearchParams(location.hash.slice(1));

// The id of the cluster in `#cluster=2`; null for the first one.
export const chosen = fragment.get("cluster");
const base = chosen === null ? "" : `/clusters/${encodeURIComponent(chosen)}`;
const token = takeToken();

// A token in the URL's fragment is kept for this tab and removed from the address bar.
function takeToken() {
  if (fragment.has("token")) {
    sessionStorage.setItem("token", fragment.get("token"));
    history.replaceState(null, "", chosen === null ? "/" : `/#cluster=${encodeURIComponent(chosen)}`);
  }
  return sessionStorage.getItem("token");
}

export const hasToken = () => token !== null;

// Use another token: the page starts anew with it.
export function setToken(text) {
  sessionStorage.setItem("token", text);
  location.reload();
}

// The path of a route about the chosen cluster.
export const onCluster = path => base + path;

export class TokenError extends Error {}

async function request(method, path, body) {
  const headers = token === null ? {} : {Authorization: `Bearer ${token}`};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, headers, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 401) throw new TokenError("the token is missing or wrong");
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

// Returns the answer. Throws an Error with the text of a refusal.
export const send = async (method, path, body) => (await request(method, path, body)).json();
export const read = path => send("GET", path);

// Pass each event of a stream to `take`; reconnect where the stream ended. `report` is given the
// state of the connection. Throws a TokenError.
export async function follow(path, first, take, report) {
  for (let next = first;;) {
    try {
      const {body} = await request("GET", path(next));
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      report("live", "good");
      for (let rest = "";;) {
        const {value, done} = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const text of events) {
          const event = {};
          for (const line of text.split("\n")) {
            const at = line.indexOf(": ");
            if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
          }
          if (event.id !== undefined) next = Number(event.id);
          if (event.data !== undefined) take(event.event, JSON.parse(event.data));
        }
      }
      report("stream closed, reconnecting", "bad");
    } catch (error) {
      if (error instanceof TokenError) throw error;
      report(`${error.message}, reconnecting`, "bad");
    }
    await new Promise(resolve => setTimeout(resolve, 1000));
  }
}
