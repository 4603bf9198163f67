// Error codes of Kafka by name.

import {make} from "./dom.js";
import {tables} from "./tables.js";

const IS_CODE = /error_?code$/i;

export const errorName = code => tables.errorNames[code] ?? `error ${code}`;

// The codes other than NONE in a decoded body, each once.
export function errorCodes(value, found = new Set()) {
  if (Array.isArray(value)) for (const each of value) errorCodes(each, found);
  else if (value !== null && typeof value === "object")
    for (const [name, member] of Object.entries(value))
      if (typeof member !== "number") errorCodes(member, found);
      else if (member !== 0 && IS_CODE.test(name)) found.add(member);
  return found;
}

export const errorTag = code => make("span", `✗ ${errorName(code)} (${code})`, "bad error");

// The name of the code that a field holds; null for any other field and for NONE.
export const errorOfField = (name, value) =>
  IS_CODE.test(name) && typeof value === "number" && value !== 0 ? errorName(value) : null;
