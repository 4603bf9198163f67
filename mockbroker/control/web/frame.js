// One frame: its bytes by field, and its body as JSON.

import {cut, make, printable} from "./dom.js";
import {errorOfField} from "./errors.js";

const MOST_FIELDS = 600, BYTES_A_LINE = 8, MOST_LINES = 16;

function hex(bytes, offset, length) {
  const lines = [];
  for (let at = offset; at < offset + length; at += BYTES_A_LINE) {
    const end = Math.min(at + BYTES_A_LINE, offset + length);
    lines.push(bytes.slice(2 * at, 2 * end).replace(/../g, "$& ").trimEnd());
    if (lines.length >= MOST_LINES && end < offset + length) { lines.push(`… ${length} bytes`); break; }
  }
  return lines.join("\n");
}

function fieldRow(bytes, {offset, length, path, type, value}) {
  const row = document.createElement("tr");
  const text = value === null ? "" : cut(JSON.stringify(value), 80);
  row.append(make("td", offset, "soft"), make("td", "", "bytes"), make("td", path), make("td", type, "soft"),
    make("td", text));
  row.cells[1].textContent = hex(bytes, offset, length);  // its line breaks are ours
  const error = errorOfField(path, value);
  if (error !== null) row.cells[4].append(" ", make("span", error, "bad error"));
  return row;
}

// The JSON text line by line, with the names of error codes.
function jsonParts(body) {
  return JSON.stringify(body, null, 2).split("\n").flatMap(line => {
    const found = /^\s*"(\w+)": (-?\d+)/.exec(line);
    const error = found === null ? null : errorOfField(found[1], Number(found[2]));
    return [printable(line), ...error === null ? [] : [" ", make("span", error, "bad error")], "\n"];
  });
}

// The elements of an answer to GET /journal/SEQUENCE.
export function frameParts({entry, hex: bytes, fields, end, problem}) {
  if (bytes === "") return [make("p", entry.note || "This event has no frame.", "soft")];
  const leaves = fields.filter(each => each.leaf), most = leaves.length > MOST_FIELDS;
  const box = make("div", "", "scroll"), table = make("table", "", "mono hex");
  box.tabIndex = 0;
  box.role = "group";
  box.ariaLabel = "Bytes of the frame";
  const rows = table.createTBody();
  rows.append(...leaves.slice(0, MOST_FIELDS).map(each => fieldRow(bytes, each)));
  if (!most && end < bytes.length / 2)
    rows.append(fieldRow(bytes,
      {offset: end, length: bytes.length / 2 - end, path: "(outside all fields)", type: "", value: null}));
  box.append(table);
  const count = `${bytes.length / 2} bytes, ${leaves.length} fields`;
  const parts = [make("p", count + (most ? `, the first ${MOST_FIELDS} shown` : ""), "soft"), box];
  if (problem !== undefined) parts.push(make("p", problem, "bad"));
  if (entry.body !== undefined) {
    const details = make("details"), text = make("pre", "", "mono");
    text.append(...jsonParts(entry.body));
    details.append(make("summary", "JSON"), text);
    parts.push(details);
  }
  return parts;
}
