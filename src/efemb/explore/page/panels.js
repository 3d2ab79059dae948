/** The panels beside the map: item, comparison, basket, selection and analogy. */

import { bar, barScale, downloadCsv, element, labelNode, note, percent, section } from "./dom.js";
import { shortNumber } from "./colors.js";
import { MARKS } from "./map.js";

/**
 * @typedef {import("./main.js").Explorer} Explorer
 * @typedef {import("./main.js").ModelView} ModelView
 * @typedef {import("./answers.js").Row} Row
 * @typedef {import("./map.js").Mark} Mark
 */

/** What the data say of a substitute. @type {Record<string, string>} */
const KINDS = {
  substitute: "less often together than by chance", suggested: "suggested by the vectors", unclear: "too few rows to tell",
};

/** How often an item occurs. @param {Explorer | ModelView} app @param {number} count */
function describeCount(app, count) {
  return app.header.noun === "word" ? `${shortNumber(count)} times` : `in ${shortNumber(count)} rows`;
}

/** Support of a pair in words. @param {Explorer | ModelView} app @param {Row} row */
function describeSupport(app, row) {
  if (row.together === undefined) return row.count === undefined ? "" : describeCount(app, row.count);
  const interval = `${shortNumber(row.lift_low)} to ${shortNumber(row.lift_high)}`;
  return `${shortNumber(row.together)} together · lift ${shortNumber(row.lift)} (${interval})`;
}

/**
 * A list of items with a bar each; choosing one shows it.
 * @param {Explorer} app @param {Row[]} rows
 * @param {{ value: string, format?: (value: number) => string, detail?: (row: Row) => string,
 *   chosen?: number, onChoose?: (code: number) => void, adds?: boolean,
 *   lit?: (row: Row) => boolean }} how
 */
function itemList(app, rows, how) {
  if (!rows.length) return note("Nothing to list.");
  const format = how.format || shortNumber;
  const scale = barScale(rows.map((row) => row[how.value]));
  const choose = how.onChoose || ((/** @type {number} */ code) => app.selectItem(code));
  return element("ol", { class: "items" }, ...rows.map((row) => element(
    "li", { class: how.lit?.(row) ? "lit" : "" },
    element("button", {
      class: "item", "aria-pressed": String(how.chosen === row.code), onclick: () => choose(row.code),
    }, labelNode(app.labels[row.code], 80),
    element("span", { class: "value" }, format(row[how.value])),
    bar(row[how.value], scale),
    how.detail ? element("small", {}, how.detail(row)) : null),
    how.adds === false ? null : addButton(app, row.code),
  )));
}

/** @param {Explorer} app @param {number} code */
function addButton(app, code) {
  if (app.header.prediction.refused) return null;
  return element("button", {
    class: "add", title: "Add to the basket", "aria-label": `Add ${app.labels[code].slice(0, 60)} to the basket`,
    onclick: () => app.addToBasket(code),
  }, "+");
}

/** An answer that takes a moment, or the reason why there is none. */
/** @template T @param {Promise<T>} answer @param {(value: T) => Node} show */
async function settle(answer, show) {
  try {
    return show(await answer);
  } catch (error) {
    return note(String(error instanceof Error ? error.message : error));
  }
}

// -- item ----------------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<{ nodes: Node[], marks: Mark[] }>} */
export async function itemPanel(app) {
  const code = app.state.item;
  if (code === null) {
    return { marks: [], nodes: [note(`Click a point, or search for ${app.article} above.`), ...suggestions(app)] };
  }
  const nodes = [itemTitle(app, code)];
  if (app.arrays["lists.pointers"]) return weightsPanel(app, code, nodes);
  const space = app.space();
  /** @type {Mark[]} */
  const marks = [];
  const mark = (/** @type {Row[]} */ rows, /** @type {string} */ color) => {
    marks.push(...rows.slice(0, 6).map((row) => ({ code: row.code, color })));
  };
  const detail = (/** @type {Row} */ row) => [KINDS[row.kind], describeSupport(app, row)].filter(Boolean).join(" · ");
  const { relations } = app.header;
  const reason = relations.refused || relations.refused_substitutes;
  // All at once: a server answers them side by side.
  const lists = await Promise.all([
    settle(app.answers.similar(code, space), (rows) => {
      mark(rows, MARKS.similar);
      return itemList(app, rows, { value: "similarity", detail });
    }),
    settle(relations.refused ? refuse(relations.refused) : app.answers.complements(code), (rows) => {
      mark(rows, MARKS.complement);
      return itemList(app, rows, { value: "score", detail });
    }),
    settle(reason ? refuse(reason) : app.answers.substitutes(code), (rows) => {
      const listed = rows.filter((row) => row.kind !== "apart");
      mark(listed, MARKS.substitute);
      if (!listed.length) return note("No item shares its contexts without coming together with it.");
      return itemList(app, listed, { value: "score", detail });
    }),
  ]);
  const titles = [`Similar (cosine of ${space})`, "Complements (it makes them more likely)",
    "Substitutes (same contexts, not together)"];
  const sections = titles.map((title, i) => section(title, lists[i]));
  if (!relations.refused) nodes.push(legend(sections));
  return { nodes: [...nodes, ...sections], marks };
}

/** What the colors on the map mean; each leads to its list. @param {HTMLElement[]} sections */
function legend(sections) {
  const kinds = [["similar", MARKS.similar], ["complements", MARKS.complement], ["substitutes", MARKS.substitute]];
  return element("p", { class: "legend" }, ...kinds.map(([name, color], i) => (
    element("button", { title: `Go to ${name}`, onclick: () => sections[i].scrollIntoView() },
      element("i", { style: { background: color } }), name))));
}

/** @param {string} reason @returns {Promise<Row[]>} */
function refuse(reason) {
  return Promise.reject(new Error(reason));
}

/** @param {Explorer} app @param {number} code */
function itemTitle(app, code) {
  const { header, arrays } = app;
  const facts = [];
  if (header.groups && arrays.groups[code] >= 0) facts.push(header.groups.names[arrays.groups[code]]);
  if (arrays.counts) facts.push(describeCount(app, arrays.counts[code]));
  if (arrays.r2) facts.push(`R² ${shortNumber(arrays.r2[code])}`);
  if (arrays.uncertainty) facts.push(`relative error ${shortNumber(arrays.uncertainty[code])}`);
  if (arrays.topics && arrays.topics[code] >= 0) facts.push(`topic: ${header.topics[arrays.topics[code]].slice(0, 80)}`);
  return element("header", { class: "title" },
    element("h2", {}, labelNode(app.labels[code], 120)), addButton(app, code),
    element("p", { class: "facts" }, facts.join(" · ")));
}

/** The most frequent items, to begin with. @param {Explorer} app */
function suggestions(app) {
  const rows = Array.from(app.order.slice(0, 8), (code) => ({ code, count: app.arrays.counts?.[code] ?? 0 }));
  if (!app.arrays.counts) return [];
  return [section("Most frequent", itemList(app, rows, { value: "count" }))];
}

/** @param {Explorer} app @param {number} code @param {Node[]} nodes */
async function weightsPanel(app, code, nodes) {
  /** @type {Mark[]} */
  const marks = [];
  nodes.push(section("Weights of its neighbors", await settle(app.answers.weights(code), (rows) => {
    const color = (/** @type {Row} */ row) => (row.weight < 0 ? MARKS.negative : MARKS.positive);
    marks.push(...rows.map((row) => ({ code: row.code, color: color(row), weight: row.weight })));
    const strongest = rows.slice().sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).slice(0, 20);
    return itemList(app, strongest, { value: "weight", adds: false });
  })));
  nodes.push(note("Blue: the neighbor raises the prediction; orange: it lowers it."));
  const similar = app.answers.similar(code, app.space());
  nodes.push(section("Similar", await settle(similar, (rows) => (
    itemList(app, rows, { value: "similarity", adds: false })))));
  return { nodes, marks };
}

/** Neighbors of an item in two models. */
/** @param {Explorer} app @param {ModelView} other @returns {Promise<{ nodes: Node[], marks: Mark[], others: Mark[] }>} */
export async function comparisonPanel(app, other) {
  const code = app.state.item;
  if (code === null) {
    return { nodes: [note("Click an item to compare its neighbors in the two models.")], marks: [], others: [] };
  }
  const twin = other.find(app.labels[code]);
  const nodes = [itemTitle(app, code)];
  if (twin < 0) return { nodes: [...nodes, note("The other model does not have this item.")], marks: [], others: [] };
  const [mine, theirs] = await Promise.all([app.answers.similar(code, "rho"), other.answers.similar(twin, "rho")]);
  const names = [mine, theirs].map((rows, i) => new Set(rows.map((row) => [app, other][i].labels[row.code])));
  const kept = [...names[0]].filter((label) => names[1].has(label)).length;
  const lists = [app, other].map((one, i) => {
    const isNew = (/** @type {Row} */ row) => !names[1 - i].has(one.labels[row.code]);
    const choose = (/** @type {number} */ chosen) => {
      const here = i ? app.find(one.labels[chosen]) : chosen;
      if (here >= 0) app.selectItem(here);
    };
    const list = itemList(/** @type {Explorer} */ (one), i ? theirs : mine, { value: "similarity", lit: isNew, adds: false, onChoose: choose });
    return section(`Similar in ${one.header.name}`, list);
  });
  const marks = [app, other].map((one, i) => (i ? theirs : mine).map((row) => ({
    code: row.code, color: names[1 - i].has(one.labels[row.code]) ? MARKS.similar : MARKS.changed,
  })));
  nodes.push(note(`${kept} of ${mine.length} neighbors are the same; the others are marked.`), ...lists);
  return { nodes, marks: marks[0], others: marks[1] };
}

// -- basket --------------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<{ nodes: Node[], marks: Mark[] }>} */
export async function basketPanel(app) {
  const { prediction } = app.header;
  if (prediction.refused) return { nodes: [note(prediction.refused)], marks: [] };
  const { basket, row } = app.state;
  const controls = new Map(prediction.terms.filter((term) => term.columns.length).map((term) => [term.columns[0], term]));
  const nodes = [...Array.from(controls.values(), (term) => termControl(app, term)), basketList(app)];
  for (const table of prediction.tables || []) nodes.push(...await changePanel(app, table));
  /** @type {Mark[]} */
  const marks = [...basket.keys()].map((code) => ({ code, color: MARKS.member }));
  if (!basket.size && !Object.keys(row).length) {
    nodes.push(note(`Add ${app.header.noun}s with +, or with the button beside a selected one: the page then `
      + "lists what goes with all of them, and why."));
    return { nodes, marks };
  }
  if (prediction.remark) nodes.push(note(prediction.remark));
  const columns = prediction.columns;
  const answer = app.answers.complete(basket, row);
  nodes.push(section("What to add", await settle(answer, (rows) => {
    if (rows.length && !rows.some((one) => one.code === app.explained)) app.explained = rows[0].code;
    marks.push(...rows.slice(0, 6).map((one) => ({ code: one.code, color: MARKS.complement })));
    const shown = columns.includes("probability") ? "probability" : "mean";
    return itemList(app, rows, {
      value: shown, format: shown === "mean" ? shortNumber : percent, chosen: app.explained,
      detail: (one) => (one.mean !== undefined && shown !== "mean" ? `expected amount ${shortNumber(one.mean)}` : ""),
      onChoose: (code) => { app.explained = code; app.showPanel(); },
    });
  })));
  if (app.explained >= 0 && prediction.explains) nodes.push(await explanation(app, app.explained));
  return { nodes, marks };
}

/** A slider for the price of the selected item, and what changes with it. */
/** @param {Explorer} app @param {string} table @returns {Promise<Node[]>} */
async function changePanel(app, table) {
  const { item, factor, basket, row } = app.state;
  if (item === null) return [note(`Select ${app.article} to change its ${table}.`)];
  const shown = element("output", {}, percent(factor));
  const slider = element("p", { class: "term" },
    element("label", { for: `change-${table}` }, `${table} of `, labelNode(app.labels[item], 24)),
    element("input", {
      id: `change-${table}`, type: "range", min: "0.5", max: "1.5", step: "0.05", value: String(factor),
      onchange: (/** @type {any} */ event) => app.setFactor(Number(event.target.value)),
      oninput: (/** @type {any} */ event) => { shown.textContent = percent(Number(event.target.value)); },
    }), shown);
  if (factor === 1) return [slider];
  const answer = /** @type {any} */ (app.answers).whatIf(basket, row, table, item, factor);
  return [slider, section(`What changes at ${percent(factor)}`, await settle(answer, (/** @type {Row[]} */ rows) => itemList(app, rows, {
    value: "change", adds: false, detail: (one) => `expected amount ${shortNumber(one.before)} → ${shortNumber(one.after)}`,
  })))];
}

/** @param {Explorer} app */
function basketList(app) {
  const { basket } = app.state;
  const change = (/** @type {number} */ code, /** @type {number} */ amount) => app.setAmount(code, amount);
  const rows = [...basket].map(([code, amount]) => element("li", {},
    labelNode(app.labels[code], 40),
    element("span", { class: "amount" },
      element("button", { "aria-label": "One less", onclick: () => change(code, amount - 1) }, "−"),
      element("b", {}, shortNumber(amount)),
      element("button", { "aria-label": "One more", onclick: () => change(code, amount + 1) }, "+"),
      element("button", { "aria-label": "Remove", onclick: () => change(code, 0) }, "×"))));
  const clear = element("button", { class: "plain", onclick: () => app.clearBasket() }, "Empty the basket");
  return section(app.header.prediction.text ? "Words around the gap" : "Basket",
    rows.length ? element("ul", { class: "basket" }, ...rows) : note("empty"), rows.length ? clear : null);
}

/** Contributions to the predictor of an item, which add up to it exactly. */
/** @param {Explorer} app @param {number} code */
function explanation(app, code) {
  const name = app.labels[code];
  const title = element("h3", {}, "Why ", labelNode(name, 40));
  return settle(app.answers.explain(app.state.basket, code, app.state.row), (parts) => {
    const scale = barScale(parts.map((part) => part.contribution));
    const sum = parts.reduce((total, part) => total + part.contribution, 0);
    const lines = parts.map((part) => element("li", {},
      labelNode(part.term, 36), element("span", { class: "value" }, shortNumber(part.contribution)),
      bar(part.contribution, scale)));
    return element("section", {}, title, element("ol", { class: "items why" }, ...lines),
      note(`They add up to ${shortNumber(sum)}: ${app.header.prediction.total}.`),
      element("button", { class: "plain", onclick: () => app.selectItem(code) }, "Show this item"),
      element("button", { class: "plain", onclick: () => app.addToBasket(code) }, "Add it to the basket"));
  });
}

/** What a person chooses for a term: a household, a price. */
/** @param {Explorer} app @param {import("./payload.js").TermEntry} term */
function termControl(app, term) {
  const name = term.columns[0];
  const value = app.state.row[name];
  const set = (/** @type {string} */ text) => {
    const typed = text.trim();
    const number = Number(typed);
    const known = (term.choices || []).find((choice) => String(choice) === typed);
    app.setRow(name, typed === "" ? undefined : known ?? (term.kind === "number" ? number : typed));
  };
  const id = `term-${name}`;
  const label = element("label", { for: id }, name);
  if (term.kind === "number") {
    const [low, high] = [-3, 3].map((step) => Number(term.center) + step * Number(term.scale));
    const shown = element("output", {}, value === undefined ? "average" : shortNumber(Number(value)));
    return element("p", { class: "term" }, label, element("input", {
      id, type: "range", min: String(low), max: String(high), step: String((high - low) / 60),
      value: String(value ?? term.center), onchange: (/** @type {any} */ event) => set(event.target.value),
      oninput: (/** @type {any} */ event) => { shown.textContent = shortNumber(Number(event.target.value)); },
    }), shown);
  }
  const choices = (term.choices || []).slice(0, 2000);
  const list = element("datalist", { id: `${id}-list` }, ...choices.map((choice) => (
    element("option", { value: String(choice) }))));
  const number = term.choices ? `one of ${term.choices.length.toLocaleString("en")}` : "any known one";
  return element("p", { class: "term" }, label, element("input", {
    id, list: `${id}-list`, value: String(value ?? ""), placeholder: `${number}, or empty`,
    onchange: (/** @type {any} */ event) => set(event.target.value),
  }), list);
}

// -- selection -----------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<{ nodes: Node[], marks: Mark[] }>} */
export async function selectionPanel(app) {
  const codes = app.selection;
  const tools = element("p", { class: "tools" },
    element("button", { onclick: () => app.setMode(app.mode === "lasso" ? "pan" : "lasso"), "aria-pressed": String(app.mode === "lasso") }, "Draw a lasso"),
    element("button", { onclick: () => app.setSelection(app.visible()) }, "Select what is in view"));
  if (!codes.length) {
    return { nodes: [tools, note(`Draw a lasso around points to see what these ${app.header.noun}s share.`)], marks: [] };
  }
  tools.append(
    element("button", { onclick: () => exportSelection(app) }, "Export as CSV"),
    element("button", { onclick: () => app.setSelection([]) }, "Clear"));
  const nodes = [tools, element("h2", {}, `${codes.length.toLocaleString("en")} ${app.header.noun}${codes.length === 1 ? "" : "s"}`)];
  const { groups, topics } = app.header;
  if (groups) nodes.push(section(groups.title, shareList(app, codes, app.arrays.groups, groups.names)));
  if (app.arrays.topics) nodes.push(section("Topics", shareList(app, codes, app.arrays.topics, topics)));
  const answer = app.answers.share(codes);
  nodes.push(await settle(answer, (shared) => element("div", {},
    section("In the middle", itemList(app, shared.central, { value: "similarity", detail: (row) => describeSupport(app, row) })),
    section("Nearest outside", itemList(app, shared.near, { value: "similarity", detail: (row) => describeSupport(app, row) })))));
  return { nodes, marks: [] };
}

/** Categories of a selection beside their share of everything. */
/** @param {Explorer} app @param {number[]} codes @param {ArrayLike<number>} values @param {string[]} names */
function shareList(app, codes, values, names) {
  const inside = new Array(names.length).fill(0), everywhere = new Array(names.length).fill(0);
  for (const code of codes) if (values[code] >= 0) inside[values[code]]++;
  for (let i = 0; i < app.header.n; i++) if (values[i] >= 0) everywhere[values[i]]++;
  const order = names.map((_, i) => i).filter((i) => inside[i]).sort((a, b) => inside[b] - inside[a]).slice(0, 6);
  return element("ol", { class: "items why" }, ...order.map((i) => {
    const share = inside[i] / codes.length;
    const lift = share / (everywhere[i] / app.header.n);
    return element("li", {}, labelNode(names[i], 70), element("span", { class: "value" }, percent(share)),
      bar(share, { low: 0, high: 1 }), element("small", {}, `${shortNumber(lift)} times their share of everything`));
  }));
}

/** @param {Explorer} app */
function exportSelection(app) {
  const { header, arrays, map } = app;
  const names = [["label", (/** @type {number} */ code) => app.labels[code]]];
  const add = (/** @type {string} */ name, /** @type {(code: number) => any} */ value) => names.push([name, value]);
  if (arrays.counts) add("count", (code) => arrays.counts[code]);
  const { groups } = header;
  if (groups) add(groups.title, (code) => groups.names[arrays.groups[code]] ?? "");
  if (arrays.topics) add("topic", (code) => header.topics[arrays.topics[code]] ?? "");
  if (arrays.r2) add("r2", (code) => arrays.r2[code]);
  add("x", (code) => map.points[code * map.dimensions]);
  add("y", (code) => map.points[code * map.dimensions + 1]);
  const columns = /** @type {[string, (code: number) => any][]} */ (names);
  const rows = app.selection.map((code) => columns.map(([, value]) => value(code)));
  downloadCsv("selection.csv", [columns.map(([name]) => name), ...rows]);
}

// -- words ---------------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<{ nodes: Node[], marks: Mark[] }>} */
export async function analogyPanel(app) {
  const { positive, negative, item } = app.state;
  const chips = (/** @type {number[]} */ codes, /** @type {"positive" | "negative"} */ side) => element(
    "ul", { class: "chips" }, ...codes.map((code) => element("li", {}, labelNode(app.labels[code], 30), element(
      "button", { "aria-label": "Remove", onclick: () => app.setAnalogy(side, codes.filter((one) => one !== code)) }, "×"))));
  const nodes = [note("Near all of the first, far from the second: king and woman without man.")];
  if (item !== null) {
    const put = (/** @type {"positive" | "negative"} */ side, /** @type {string} */ text) => element("button", {
      onclick: () => app.setAnalogy(side, [...new Set([...app.state[side], item])]),
    }, text, labelNode(app.labels[item], 20));
    nodes.push(element("p", { class: "tools" }, put("positive", "with "), put("negative", "without ")));
  } else {
    nodes.push(note("Search for a word first."));
  }
  nodes.push(section("With", chips(positive, "positive")), section("Without", chips(negative, "negative")));
  if (!positive.length) return { nodes, marks: [] };
  /** @type {Mark[]} */
  const marks = [...positive, ...negative].map((code) => ({ code, color: MARKS.member }));
  nodes.push(section("Answer", await settle(app.answers.analogy(positive, negative), (rows) => {
    marks.push(...rows.slice(0, 5).map((row) => ({ code: row.code, color: MARKS.similar })));
    return itemList(app, rows, { value: "similarity", adds: false });
  })));
  return { nodes, marks };
}
