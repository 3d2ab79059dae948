/** The state of a view, kept in the address, so that it can be shared; items are kept by their labels. */

/** @import { Basket, Header, State } from "./types" */

/** @type {("item" | "explained" | "positive" | "negative" | "basket")[]} */
const ITEMS = ["item", "explained", "positive", "negative", "basket"];

/**
 * What an address says; what it lacks or says wrongly is as at first.
 * @param {string} address @param {Header["choices"]} choices @param {(label: string) => number} find
 * @returns {State}
 */
export function readState(address, choices, find) {
  const fields = new URLSearchParams(address);
  const codes = (name) => fields.getAll(name).map(find).filter((code) => code >= 0);
  const choice = (name) => {
    const values = choices[name].map(([value]) => value);
    return values.find((value) => value === fields.get(name)) ?? values[0];
  };
  const [left, right, bottom, top] = (fields.get("view") || "").split(",").map(Number);
  const factor = Number(fields.get("factor"));
  return {
    map: choice("map"), color: choice("color"), slice: choice("slice"), tab: choice("tab"),
    theme: choice("theme"), solid: fields.has("solid"),
    item: codes("item")[0] ?? null, explained: codes("explained")[0] ?? null,
    positive: codes("positive"), negative: codes("negative"), basket: codes("basket"),
    row: Object.fromEntries(new URLSearchParams(fields.get("row") || "")),
    factor: factor > 0 && factor < 10 ? factor : 1,
    view: left < right && bottom < top ? { x: [left, right], y: [bottom, top] } : null,
  };
}

/** What differs from how a page begins, as an address. @param {State} state @param {State} first */
export function writeState(state, first, labels) {
  const { row, view } = state;
  const packed = { row: new URLSearchParams(row).toString(), view: view && [...view.x, ...view.y].join() };
  /** @type {Record<string, any>} */ const parts = { ...state, ...packed };
  for (const name of ITEMS) parts[name] = [state[name] ?? []].flat().map((code) => labels[code]);
  const fields = new URLSearchParams();
  for (const [name, part] of Object.entries(parts)) {
    if (!part || part === /** @type {any} */ (first)[name]) continue;
    for (const text of [part].flat()) fields.append(name, text);
  }
  return fields.toString();
}

/** Items that are listed once or more, and how often. @param {number[]} codes @returns {Basket} */
export const countItems = (codes) => (
  [...new Set(codes)].map((code) => [code, codes.filter((one) => one === code).length]));
