/** The state of a view, kept in the address, so that it can be shared. */

/** @import { State } from "./types" */

/** @param {string[]} labels @returns {(label: any) => number} */
export function labelFinder(labels) {
  /** @type {Map<string, number>} */
  const codes = new Map();
  for (let code = labels.length - 1; code >= 0; code--) codes.set(labels[code], code);
  return (label) => codes.get(label) ?? -1;
}

/** @param {any} value @param {(value: any) => boolean} check */
const listOf = (value, check) => (Array.isArray(value) && value.every(check) ? value : undefined);

/**
 * How each part of a state becomes JSON, and what JSON becomes: undefined if it is not that part. Items are
 * kept by their labels. @type {Record<string, { write?: (value: any, labels: string[]) => any, read: (value: any, find: (label: any) => number) => any }>}
 */
const FIELDS = {
  ...Object.fromEntries(["map", "color", "tab", "theme"].map((name) => (
    [name, { read: (value) => (typeof value === "string" ? value : undefined) }]))),
  item: { write: (code, labels) => labels[code], read: (value, find) => (find(value) >= 0 ? find(value) : undefined) },
  basket: {
    write: (pairs, labels) => pairs.map(([code, amount] = [0, 0]) => [labels[code], amount]),
    read: (value, find) => listOf(value, Array.isArray)?.map(([label, amount]) => [find(label), Number(amount)])
      .filter(([code, amount]) => code >= 0 && amount > 0 && amount < 1e9),
  },
  ...Object.fromEntries(["positive", "negative"].map((name) => [name, {
    write: (codes, labels) => codes.map((/** @type {number} */ code) => labels[code]),
    read: (value, find) => listOf(value, () => true)?.map(find).filter((code) => code >= 0),
  }])),
  row: { read: (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : undefined) },
  slice: { read: (value) => (Number.isInteger(value) && value >= 0 ? value : undefined) },
  factor: { read: (value) => (value > 0 && value < 10 ? Number(value) : undefined) },
  solid: { read: (value) => (value === true ? value : undefined) },
  view: {
    write: ({ x, y }) => [...x, ...y].map((value) => Number(value.toPrecision(6))),
    read: (value) => {
      const [a, b, c, d] = listOf(value, Number.isFinite) ?? [];
      return a < b && c < d ? { x: [a, b], y: [c, d] } : undefined;
    },
  },
};

/** What differs from how a page begins, as an address. @param {State} state @param {State} first @param {string[]} labels */
export function writeState(state, first, labels) {
  const fields = new URLSearchParams();
  for (const [name, { write }] of Object.entries(FIELDS)) {
    const [value, before] = [state, first].map((one) => /** @type {any} */ (one)[name]);
    if (value === null || JSON.stringify(value) === JSON.stringify(before)) continue;
    const plain = write ? write(value, labels) : value;
    fields.set(name, typeof plain === "string" ? plain : JSON.stringify(plain));
  }
  return fields.toString();
}

/** What an address says; anything unknown or broken in it is ignored. */
/** @param {string} address @param {(label: string) => number} find @returns {Partial<State>} */
export function readState(address, find) {
  /** @type {Record<string, any>} */
  const state = {};
  for (const [name, text] of new URLSearchParams(address)) {
    const value = Object.hasOwn(FIELDS, name) ? FIELDS[name].read(parse(name, text), find) : undefined;
    if (value !== undefined) state[name] = value;
  }
  return state;
}

/** @param {string} name @param {string} text @returns {any} */
function parse(name, text) {
  if (["map", "color", "tab", "theme", "item"].includes(name)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
