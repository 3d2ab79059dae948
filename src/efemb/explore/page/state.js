/** The state of a view, kept in the address, so that it can be shared. */

/**
 * @typedef {{ map: string, color: string, item: number | null, tab: string, basket: Map<number, number>,
 *   row: Record<string, string | number>, theme: string, view: import("./map.js").View | null,
 *   factor: number, solid: boolean, positive: number[], negative: number[] }} State
 */

/** @param {string[]} labels @returns {(label: string) => number} */
export function labelFinder(labels) {
  /** @type {Map<string, number>} */
  const codes = new Map();
  labels.forEach((label, code) => { if (!codes.has(label)) codes.set(label, code); });
  return (label) => codes.get(label) ?? -1;
}

/** Address of a state. @param {State} state @param {string[]} labels */
export function writeState(state, labels) {
  const fields = new URLSearchParams();
  const names = (/** @type {number[]} */ codes) => JSON.stringify(codes.map((code) => labels[code]));
  fields.set("map", state.map);
  fields.set("color", state.color);
  fields.set("tab", state.tab);
  if (state.item !== null) fields.set("item", labels[state.item]);
  if (state.basket.size) {
    fields.set("basket", JSON.stringify([...state.basket].map(([code, amount]) => [labels[code], amount])));
  }
  if (Object.keys(state.row).length) fields.set("row", JSON.stringify(state.row));
  if (state.positive.length) fields.set("plus", names(state.positive));
  if (state.negative.length) fields.set("minus", names(state.negative));
  if (state.factor !== 1) fields.set("factor", String(state.factor));
  if (state.theme) fields.set("theme", state.theme);
  if (state.solid) fields.set("solid", "1");
  if (state.view) {
    fields.set("view", [...state.view.x, ...state.view.y].map((value) => Number(value.toPrecision(6))).join(","));
  }
  return fields.toString();
}

/** What an address says; anything unknown or broken in it is ignored. */
/** @param {string} address @param {string[]} labels @returns {Partial<State>} */
export function readState(address, labels) {
  const fields = new URLSearchParams(address);
  const find = labelFinder(labels);
  /** @type {Partial<State>} */
  const state = {};
  for (const name of /** @type {("map" | "color" | "tab" | "theme")[]} */ (["map", "color", "tab", "theme"])) {
    const value = fields.get(name);
    if (value) state[name] = value;
  }
  const item = find(fields.get("item") ?? "");
  if (fields.has("item") && item >= 0) state.item = item;
  const pairs = parse(fields.get("basket"));
  if (Array.isArray(pairs)) {
    state.basket = new Map(pairs.filter(Array.isArray).map(([label, amount]) => (
      /** @type {[number, number]} */ ([find(String(label)), Number(amount)])))
      .filter(([code, amount]) => code >= 0 && Number.isFinite(amount) && amount > 0));
  }
  for (const [name, key] of /** @type {["positive" | "negative", string][]} */ ([["positive", "plus"], ["negative", "minus"]])) {
    const listed = parse(fields.get(key));
    if (Array.isArray(listed)) state[name] = listed.map((label) => find(String(label))).filter((code) => code >= 0);
  }
  const row = parse(fields.get("row"));
  if (row && typeof row === "object" && !Array.isArray(row)) state.row = row;
  if (fields.get("solid")) state.solid = true;
  const factor = Number(fields.get("factor"));
  if (factor > 0 && factor < 10) state.factor = factor;
  const view = (fields.get("view") ?? "").split(",").map(Number);
  if (view.length === 4 && view.every(Number.isFinite) && view[0] < view[1] && view[2] < view[3]) {
    state.view = { x: [view[0], view[1]], y: [view[2], view[3]] };
  }
  return state;
}

/** @param {string | null} text @returns {any} */
function parse(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
