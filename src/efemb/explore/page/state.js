/** The state of a view, kept in the address, so that it can be shared; items are kept by their labels. */

/** @import { Header, State } from "./types" */

/**
 * What an address says; what it lacks or says wrongly is as at first.
 * @param {string} address @param {Header["choices"]} choices @param {(label: string) => number} find
 * @returns {State}
 */
export function readState(address, choices, find) {
  const fields = new URLSearchParams(address);
  const pairs = (name) => [...new URLSearchParams(fields.get(name) || "")];
  const codes = (name) => fields.getAll(name).map(find).filter((code) => code >= 0);
  const choice = (name) => {
    const values = choices[name].map(([value]) => value);
    return values.find((value) => value === fields.get(name)) ?? values[0];
  };
  /** @type {State["basket"]} */
  const basket = pairs("basket").map(([label, amount]) => [find(label), Number(amount)]);
  const [left, right, bottom, top] = (fields.get("view") || "").split(",").map(Number);
  const factor = Number(fields.get("factor"));
  return {
    map: choice("map"), color: choice("color"), slice: choice("slice"), tab: choice("tab"),
    theme: choice("theme"), solid: fields.has("solid"),
    item: codes("item")[0] ?? null, positive: codes("positive"), negative: codes("negative"),
    basket: basket.filter(([code, amount]) => code >= 0 && amount > 0 && amount < 1e9),
    row: Object.fromEntries(pairs("row")),
    factor: factor > 0 && factor < 10 ? factor : 1,
    view: left < right && bottom < top ? { x: [left, right], y: [bottom, top] } : null,
  };
}

/** What differs from how a page begins, as an address. @param {State} state @param {State} first */
export function writeState(state, first, labels) {
  const pack = (pairs) => (pairs.length ? new URLSearchParams(pairs).toString() : null);
  const name = (code) => labels[code];
  const written = {
    ...state,
    item: state.item === null ? null : name(state.item),
    positive: state.positive.map(name), negative: state.negative.map(name),
    basket: pack(state.basket.map(([code, amount]) => [name(code), amount])),
    row: pack(Object.entries(state.row)),
    view: state.view && [...state.view.x, ...state.view.y].join(),
  };
  const fields = new URLSearchParams();
  for (const [part, value] of Object.entries(written)) {
    if (value === null || value === /** @type {any} */ (first)[part]) continue;
    for (const one of [value].flat()) fields.append(part, String(one));
  }
  return fields.toString();
}
