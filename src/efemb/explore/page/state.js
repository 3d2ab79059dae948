/** The state of a view, kept in the address, so that it can be shared; items are kept by their labels. */

/** @import { State } from "./types" */

/** @param {string[]} labels @returns {(label: any) => number} */
export function labelFinder(labels) {
  /** @type {Map<any, number>} */ const codes = new Map();
  for (let code = labels.length - 1; code >= 0; code--) codes.set(labels[code], code);
  return (label) => codes.get(label) ?? -1;
}

/** A list with other names; what has none (-1) is left out. @param {any} value @param {(value: any) => any} convert @returns {any} */
const mapList = (value, convert) => (Array.isArray(value)
  ? value.map(convert).filter((one) => one !== -1 && one?.[0] !== -1) : undefined);

/** What becomes of the parts that name items. @type {Record<string, (value: any, name: (item: any) => any) => any>} */
const RENAMED = {
  item: (value, name) => name(value),
  positive: (value, name) => mapList(value, name),
  negative: (value, name) => mapList(value, name),
  basket: (value, name) => mapList(value, (pair) => (Array.isArray(pair) ? [name(pair[0]), pair[1]] : pair)),
};

/** What the parts of a state must be; an address may say anything. @type {Record<string, (value: any) => boolean>} */
const CHECKS = {
  map: isText, color: isText, tab: isText, theme: isText, item: isCode, slice: isCode,
  positive: (value) => Array.isArray(value) && value.every(isCode), negative: (value) => CHECKS.positive(value),
  basket: (value) => Array.isArray(value) && value.every((pair) => isCode(pair?.[0]) && pair[1] > 0 && pair[1] < 1e9),
  row: (value) => value !== null && typeof value === "object" && !Array.isArray(value),
  factor: (value) => value > 0 && value < 10,
  solid: (value) => value === true,
  view: (value) => [value?.x, value?.y].every((side) => Array.isArray(side) && side.every(Number.isFinite) && side[0] < side[1]),
};

/** @param {any} value */
function isText(value) { return typeof value === "string"; }
/** @param {any} value */
function isCode(value) { return Number.isInteger(value) && value >= 0; }

/** What differs from how a page begins, as an address. @param {State} state @param {State} first @param {string[]} labels */
export function writeState(state, first, labels) {
  const fields = new URLSearchParams(), [now, before] = /** @type {Record<string, any>[]} */ ([state, first]);
  for (const [part, value] of Object.entries(now)) {
    if (value === null || JSON.stringify(value) === JSON.stringify(before[part])) continue;
    const renamed = RENAMED[part]?.(value, (code) => labels[code]) ?? value;
    fields.set(part, isText(renamed) && parse(renamed) === renamed ? renamed : JSON.stringify(renamed));
  }
  return fields.toString();
}

/** What an address says; unknown or broken parts are ignored. @param {string} address @param {(label: any) => number} find */
export function readState(address, find) {
  /** @type {Record<string, any>} */ const state = {};
  for (const [part, text] of new URLSearchParams(address)) {
    if (!Object.hasOwn(CHECKS, part)) continue;
    const value = RENAMED[part]?.(parse(text), find) ?? parse(text);
    if (CHECKS[part](value)) state[part] = value;
  }
  return /** @type {Partial<State>} */ (state);
}

/** @param {string} text @returns {any} the value of JSON, or any other text itself */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
