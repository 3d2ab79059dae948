/** The state of a view, kept in the address, so that it can be shared; items are kept by their labels. */

/** @import { Header, State } from "./types" */

/** @param {[string, any][]} pairs @returns {string | null} */
const pack = (pairs) => (pairs.length ? new URLSearchParams(pairs).toString() : null);
/** @param {string | null} text */
const unpackPairs = (text) => [...new URLSearchParams(text || "")];

/**
 * What an address says; what it lacks or says wrongly is as at first.
 * @param {string} address @param {Header["choices"]} choices @param {(label: string) => number} find
 * @returns {State}
 */
export function readState(address, choices, find) {
  const fields = new URLSearchParams(address), factor = Number(fields.get("factor"));
  const choice = (name) => (choices[name].find(([one]) => one === fields.get(name)) || choices[name][0])[0];
  const codes = (name) => fields.getAll(name).map(find).filter((code) => code >= 0);
  const [left, right, bottom, top] = (fields.get("view") || "").split(",").map(Number);
  return {
    map: choice("map"), color: choice("color"), slice: choice("slice"), tab: choice("tab"),
    theme: choice("theme"), solid: fields.has("solid"), factor: factor > 0 && factor < 10 ? factor : 1,
    item: codes("item")[0] ?? null, positive: codes("positive"), negative: codes("negative"),
    basket: unpackPairs(fields.get("basket")).map(([label, amount]) => /** @type {[number, number]} */ (
      [find(label), Number(amount)])).filter(([code, amount]) => code >= 0 && amount > 0 && amount < 1e9),
    row: Object.fromEntries(unpackPairs(fields.get("row"))),
    view: left < right && bottom < top ? { x: [left, right], y: [bottom, top] } : null,
  };
}

/** What differs from how a page begins, as an address. @param {State} state @param {State} first */
export function writeState(state, first, labels) {
  const { item, basket, row, view, positive, negative } = state, fields = new URLSearchParams();
  const name = (code) => labels[code];
  const written = {
    ...state, item: item === null ? [] : name(item), view: view && [...view.x, ...view.y].join(),
    positive: positive.map(name), negative: negative.map(name), row: pack(Object.entries(row)),
    basket: pack(basket.map(([code, amount]) => [name(code), amount])),
  };
  for (const [part, value] of Object.entries(written)) {
    if (value === null || value === /** @type {any} */ (first)[part]) continue;
    for (const one of [value].flat()) fields.append(part, String(one));
  }
  return fields.toString();
}
