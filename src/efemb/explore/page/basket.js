/** The panel of a basket: what is in it, what to add and why, and what another price would change. */

import { MARKS } from "./colors.js";
import { barList, button, element, labelNode, note, percent, section, shortNumber } from "./dom.js";
import { answered, listing } from "./lists.js";

/**
 * @import { Mark, Shown, TermEntry } from "./types"
 * @import { Explorer } from "./main.js"
 */

/** @param {Explorer} app @returns {Promise<Shown>} */
export async function basketPanel(app) {
  const { prediction } = app.header, { basket } = app.state, row = app.row;
  if (prediction.refused) return { nodes: [note(prediction.refused)], marks: [] };
  const controls = new Map(prediction.terms.filter((term) => term.columns.length).map((term) => [term.columns[0], term]));
  const nodes = [...Array.from(controls.values(), (term) => termControl(app, term)), basketList(app)];
  for (const table of Object.keys(prediction.tables || {})) nodes.push(...await changeSections(app, table));
  /** @type {Mark[]} */ const members = basket.map(([code]) => ({ code, color: MARKS.member }));
  if (!basket.length && !Object.keys(row).length) {
    nodes.push(note(`Add ${app.header.noun}s with +, or with the button beside a selected one: the page then `
      + "lists what goes with all of them, and why."));
    return { nodes, marks: members };
  }
  if (prediction.remark) nodes.push(note(prediction.remark));
  const value = prediction.columns[0];
  const list = await listing(app, "What to add", app.ask("complete", { basket, row }), {
    value, format: value === "mean" ? shortNumber : percent, color: MARKS.complement, adds: true,
    pick: (rows) => {
      if (!rows.some((one) => one.code === app.explained)) app.explained = rows[0]?.code ?? -1;
      return rows;
    },
    chosen: (one) => one.code === app.explained, choose: (code) => { app.explained = code; app.showPanel(); },
    detail: (one) => (one.mean !== undefined && value !== "mean" ? `expected amount ${shortNumber(one.mean)}` : undefined),
  });
  nodes.push(list.node);
  if (list.rows.length && prediction.explains) nodes.push(await explanation(app, app.explained));
  return { nodes, marks: [...members, ...list.marks] };
}

/** A slider for the price of the selected item, and what changes with it. @param {Explorer} app @param {string} table */
async function changeSections(app, table) {
  const { item, factor, basket } = app.state, { tables = {}, terms } = app.header.prediction;
  if (item === null) return [note(`Select ${app.header.article} to change its ${table}.`)];
  // Prices are by week, for example: those of the last one, unless another is chosen.
  const last = tables[table].map((name) => [name, terms.find((term) => term.columns[0] === name)?.choices?.at(-1)]);
  const row = { ...Object.fromEntries(last.filter(([, value]) => value !== undefined)), ...app.row };
  const where = tables[table].map((name) => `, ${name} ${row[name] ?? "unknown"}`).join("");
  const slider = range(`change-${table}`, element("span", {}, `${table} of `, labelNode(app.labels[item], 24)),
    { min: 0.5, max: 1.5, step: 0.05, value: factor }, percent(factor), percent, (value) => app.set({ factor: value }));
  if (factor === 1) return [slider];
  const answer = app.ask("what_if", { basket, row, table, item, factor });
  const list = await listing(app, `What changes at ${percent(factor)}${where}`, answer, {
    value: "change", pick: (rows) => rows.filter((one) => one.change !== 0), empty: "Nothing changes.",
    detail: (one) => `expected amount ${shortNumber(one.before)} → ${shortNumber(one.after)}`,
  });
  return [slider, list.node];
}

/** @param {Explorer} app */
function basketList(app) {
  const { basket } = app.state;
  const rows = basket.map(([code, amount]) => element("li", {}, labelNode(app.labels[code], 40),
    element("span", { class: "amount" },
      button("−", () => app.setAmount(code, amount - 1), { "aria-label": "One less" }),
      element("b", {}, shortNumber(amount)),
      button("+", () => app.setAmount(code, amount + 1), { "aria-label": "One more" }),
      button("×", () => app.setAmount(code, 0), { "aria-label": "Remove" }))));
  return section(app.header.prediction.text ? "Words around the gap" : "Basket",
    rows.length ? element("ul", { class: "basket" }, ...rows) : note("empty"),
    rows.length ? button("Empty the basket", () => app.set({ basket: [] }), { class: "plain" }) : null);
}

/** Contributions to the predictor of an item, which add up to it exactly. @param {Explorer} app @param {number} item */
function explanation(app, item) {
  const answer = app.ask("explain", { basket: app.state.basket, item, row: app.row });
  return answered(element("span", {}, "Why ", labelNode(app.labels[item], 40)), answer, (/** @type {any[]} */ parts) => {
    const sum = parts.reduce((total, part) => total + part.contribution, 0);
    return [
      barList(parts.map(({ term, contribution }) => ({ label: term, value: contribution }))),
      note(`They add up to ${shortNumber(sum)}: ${app.header.prediction.total}.`),
      button("Show this item", () => app.selectItem(item), { class: "plain" }),
      button("Add it to the basket", () => app.addToBasket(item), { class: "plain" }),
    ];
  });
}

/**
 * A slider with its number.
 * @param {string} id @param {string | Node} label @param {{ min: number, max: number, step: number, value: number }} limits
 * @param {string} shown @param {(value: number) => string} format @param {(value: number) => void} set
 */
function range(id, label, limits, shown, format, set) {
  const output = element("output", {}, shown);
  return element("p", { class: "term" }, element("label", { for: id }, label), element("input", {
    id, type: "range", ...limits, onchange: (/** @type {any} */ event) => set(Number(event.target.value)),
    oninput: (/** @type {any} */ event) => { output.textContent = format(Number(event.target.value)); },
  }), output);
}

/** What a person chooses for a term: a household, a price. @param {Explorer} app @param {TermEntry} term */
function termControl(app, term) {
  const name = term.columns[0], value = app.state.row[name], id = `term-${name}`;
  const { center = 0, scale = 1, choices = [] } = term;
  if (term.kind === "number") {
    const limits = { min: center - 3 * scale, max: center + 3 * scale, step: scale / 10, value: Number(value ?? center) };
    return range(id, name, limits, value === undefined ? "average" : shortNumber(Number(value)), shortNumber, (number) => app.setRow(name, number));
  }
  const list = element("datalist", { id: `${id}-list` }, ...choices.slice(0, 2000).map((choice) => element("option", { value: choice })));
  const set = (/** @type {string} */ typed) => {
    app.setRow(name, typed === "" ? undefined : choices.find((choice) => String(choice) === typed) ?? typed);
  };
  return element("p", { class: "term" }, element("label", { for: id }, name), element("input", {
    id, list: `${id}-list`, value: value ?? "",
    placeholder: `${choices.length ? `one of ${choices.length.toLocaleString("en")}` : "any known one"}, or empty`,
    onchange: (/** @type {any} */ event) => set(event.target.value.trim()),
  }), list);
}
