/** Lists of items, made of answers: the part that all panels have in common. */

import { barList, button, element, note, shortNumber } from "./dom.js";

/**
 * @import { Row } from "./types"
 * @import { Explorer, ModelView } from "./main.js"
 * @typedef {{ value: string, format?: (value: number) => string, detail?: (row: Row) => string | undefined,
 *   pick?: (rows: Row[]) => Row[], shown?: number, color?: string | ((row: Row) => string), marked?: number,
 *   empty?: string, lit?: (row: Row) => boolean, chosen?: (row: Row) => boolean,
 *   choose?: (code: number) => void, adds?: boolean }} Listing how an answer is listed and lit
 */

/** How often an item occurs. @param {ModelView} view @param {number | undefined} count */
export function describeCount(view, count) {
  if (count === undefined) return "";
  return view.header.noun === "word" ? `${shortNumber(count)} times` : `in ${shortNumber(count)} rows`;
}

/** What the data say of a pair. @type {Record<string, string>} */
const KINDS = {
  substitute: "less often together than by chance", suggested: "suggested by the vectors", unclear: "too few rows to tell",
};

/** Kind and support of a pair in words. @param {ModelView} view @param {Row} row */
export function describePair(view, row) {
  const between = (/** @type {number} */ low, /** @type {number} */ high) => `(${shortNumber(low)} to ${shortNumber(high)})`;
  const support = row.together === undefined ? describeCount(view, row.count)
    : `${shortNumber(row.together)} together · lift ${shortNumber(row.lift)} ${between(row.lift_low, row.lift_high)}`;
  const interval = Number.isFinite(row.low) ? `score ${between(row.low, row.high)}` : "";
  return [KINDS[row.kind], support, interval].filter(Boolean).join(" · ");
}

/** @param {Explorer} app @param {number} code */
export function addButton(app, code) {
  if (app.header.prediction.refused) return null;
  return button("+", () => app.addToBasket(code), {
    class: "add", title: "Add to the basket", "aria-label": `Add ${app.labels[code].slice(0, 60)} to the basket`,
  });
}

/** The lines of items. @param {Explorer} app @param {ModelView} view whose items they are @param {Row[]} rows @param {Listing} how */
export function itemLines(app, view, rows, how) {
  const choose = how.choose || ((/** @type {number} */ code) => app.selectItem(code));
  return rows.map((row) => ({
    label: view.labels[row.code], value: row[how.value], text: (how.format || shortNumber)(row[how.value]),
    detail: how.detail?.(row), lit: how.lit?.(row), chosen: how.chosen?.(row), choose: () => choose(row.code),
    add: how.adds ? addButton(app, row.code) : null,
  }));
}

/** An answer as a section, or the reason why there is none. */
/** @template T @param {string | Node} title @param {Promise<T>} answer @param {(answer: T) => Node[]} show */
export async function answered(title, answer, show) {
  const nodes = await answer.then(show).catch((error) => [note(reason(error))]);
  return element("section", {}, element("h3", {}, title), ...nodes);
}

/** A section with a list of items, and what is lit for it. */
/** @param {Explorer} app @param {string} title @param {Promise<Row[]>} answer @param {Listing} how @param {ModelView} [view] */
export async function listing(app, title, answer, how, view = app) {
  /** @type {Row[]} */ let rows = [];
  const node = await answered(title, answer, (answers) => {
    rows = how.pick ? how.pick(answers) : answers;
    const shown = rows.slice(0, how.shown ?? rows.length);
    return [rows.length || !how.empty ? barList(itemLines(app, view, shown, how)) : note(how.empty)];
  });
  const { color } = how, sure = color ? rows.filter((row) => row.kind !== "unclear") : [];
  const marks = sure.slice(0, how.marked ?? 6).map((row) => (
    { code: row.code, weight: row.weight, color: typeof color === "function" ? color(row) : String(color) }));
  return { node, marks, rows };
}

/** @param {unknown} error */
export const reason = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string} text @returns {Promise<Row[]>} */
export const refuse = (text) => Promise.reject(new Error(text));
