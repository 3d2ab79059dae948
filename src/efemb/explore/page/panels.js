/** The panels beside the map: mostly lists of answers, whose questions and texts are in lists.json. */

import { button, downloadCsv, element, labelNode, note, percent, shortNumber, swatch } from "./dom.js";

/**
 * @import { List, Mark, Part, Row, Shown, Term } from "./types"
 * @import { Explorer } from "./main.js"
 */

const NAMES = /\{(\w+)\}/g;

/** A text with values in place of their names in braces. @param {string} text */
const fill = (text, values) => text.replace(NAMES, (whole, name) => (
  typeof values[name] === "number" ? shortNumber(values[name]) : values[name] ?? whole));

/** Of each group the first text whose values are known. @param {string[][]} groups */
function describe(groups, values) {
  const fits = (text) => [...text.matchAll(NAMES)].every(([, name]) => values[name] || values[name] === 0);
  return groups.flatMap((texts) => texts.find(fits) ?? []).map((text) => fill(text, values)).join(" · ");
}

/** What is known of an item, by the names of columns. @param {Explorer} app @param {number} code */
const factsOf = ({ header, arrays }, code) => Object.fromEntries(header.columns.map(({ key, names }) => (
  [key, names ? names[arrays[key][code]] : arrays[key][code]])));

/**
 * A list by its name in lists.json, of what is chosen: a section, and what it lights on the map.
 * @param {Explorer} app @param {string} name @param {List} [more] @returns {Promise<Shown>}
 */
async function list(app, name, more, instead = {}) {
  const given = { ...app.given, ...instead }, { marks, lists } = app.header;
  const shown = { view: app.map, marked: 6, value: "", ...lists[name], ...more };
  const { title = "", value, color, below, view, note: remark, foot, after = [] } = shown;
  const body = Object.fromEntries((shown.takes || []).map((part) => [part, given[part]]));
  const colorOf = (row) => marks[row.color || (below && row[value] < 0 ? below : color)];
  let content = note(shown.empty || "Nothing to list."), rows = /** @type {Row[]} */ ([]);
  try {
    rows = await (shown.answer || shown.rows || (shown.takes ? app.ask(name, body) : []));
    rows = rows.filter((row) => !shown.without?.includes(row.kind ?? row[value]));
    if (shown.by_size) rows.sort((a, b) => Math.abs(b[value]) - Math.abs(a[value]));
    if ("pick" in shown && rows.length) {
      (rows.find(({ code }) => code === shown.pick) || rows[0]).chosen = true;
    }
    if (rows.length) content = element("ol", { class: "items" }, ...showRows(app, shown, rows));
  } catch (error) {
    content = note(/** @type {Error} */ (error).message);
  }
  const sum = rows.reduce((all, row) => all + row[value], 0);
  const sure = rows.filter((row) => colorOf(row) && row.kind !== "unclear").slice(0, shown.marked);
  const heading = element("h3", {}, color && !below ? swatch(marks[color]) : "", fill(title, given));
  const notes = [remark, foot].map((text) => (text ? note(fill(text, { sum })) : ""));
  const node = element("section", {}, heading, notes[0], content, notes[1], ...after);
  const lit = sure.map((row) => ({ view, code: row.code, weight: row.weight, color: colorOf(row) }));
  return { node, lit, rows };
}

/**
 * Lines with bars, which start at zero; negative ones go the other way if there are both.
 * @param {Explorer} app @param {List} list @param {Row[]} rows
 */
function showRows(app, { value = "", label = "", detail, view = app.map, ...how }, rows) {
  const values = rows.slice(0, how.shown).map((row) => Number(row[value])), { pair } = app.header.lists;
  const low = Math.max(...values) > 0 ? Math.min(0, ...values) : 0;
  const range = Math.max(...values.map((one) => Math.max(one - low, Math.abs(one)))) || 1;
  const width = (number) => `${(100 * number) / range}%`;
  return values.map((number, i) => {
    const row = rows[i], start = number < 0 && low < 0 ? number - low : -low;
    const style = { width: width(Math.abs(number)), marginLeft: width(start) };
    const facts = { count: app.arrays.counts?.[row.code], ...row, kind: pair.kinds?.[row.kind] };
    const numbers = value ? [
      element("span", { class: "value" }, how.percent ? percent(number) : shortNumber(number)),
      element("span", { class: "bar" }, element("span", { class: number < 0 ? "negative" : "", style })),
    ] : [];
    const take = how.choose || (row.code === undefined ? undefined : () => app.selectItem(row.code));
    const properties = take && { "aria-pressed": row.chosen || false, onclick: () => take(row) };
    return element("li", { class: row.lit ? "lit" : "" },
      element(take ? "button" : "div", { class: "item", ...properties },
        labelNode(String(row[label] ?? view.labels[row.code]), 80), ...numbers,
        element("small", {}, describe(detail || pair.detail || [], facts))),
      ...(how.buttons?.(row) || []), how.adds ? addButton(app, row.code) : "");
  });
}

/** What a tab shows: nodes, and what is lit on the maps. @param {Explorer} app */
export async function showTab(app) {
  const parts = await Promise.all((await TABS[app.state.tab](app)).flat());
  const shown = parts.map((part) => (part instanceof Node ? { node: part, lit: [] } : part));
  /** @type {Mark[]} */ const lit = shown.flatMap((part) => part.lit);
  return { nodes: shown.map(({ node }) => node), lit };
}

/** @param {Explorer} app @param {number} code */
function addButton(app, code) {
  if (app.header.prediction.refused) return "";
  const title = "Add to the basket", name = `Add ${app.labels[code].slice(0, 60)} to the basket`;
  return button("+", () => app.addToBasket(code), { class: "add", title, "aria-label": name });
}

/** @param {Explorer} app @param {number} code */
const itemTitle = (app, code) => element("header", { class: "title" },
  element("h2", {}, labelNode(app.labels[code], 120)), addButton(app, code),
  element("p", { class: "facts" }, describe(app.header.lists.item.detail || [], factsOf(app, code))));

/**
 * A labeled control; a slider has its number beside it.
 * @param {Record<string, any>} properties @param {(text: string) => void} set
 */
function control(id, label, properties, set, shown = "", format = (number) => "") {
  const output = element("output", {}, shown);
  const onchange = ({ target }) => set(target.value.trim());
  const oninput = ({ target }) => { output.textContent = format(Number(target.value)); };
  const input = element("input", { id, ...properties, onchange, oninput });
  return element("p", { class: "term" }, element("label", { for: id }, label), input, output);
}

/** What a person chooses for a term: a household, a price. @param {Explorer} app @param {Term} term */
function termControl(app, { columns: [name], input, center, choices = [] }) {
  const { row } = app.state, id = `term-${name}`, list = `${id}-list`, value = row[name] || "";
  const set = (text) => app.set({ row: { ...row, [name]: text } });
  if (center !== undefined) {
    const shown = value ? shortNumber(Number(value)) : "average";
    return control(id, name, { ...input, value: value || center }, set, shown, shortNumber);
  }
  const options = choices.slice(0, 2000).map((choice) => element("option", { value: choice }));
  const node = control(id, name, { ...input, value, list }, set);
  node.append(element("datalist", { id: list }, ...options));
  return node;
}

/** A slider for the price of the selected item, and what changes with it. @returns {Part[]} */
function changeParts(/** @type {Explorer} */ app, table, columns) {
  const { item, factor } = app.state, { article, prediction: { terms } } = app.header;
  if (item === null) return [note(`Select ${article} to change its ${table}.`)];
  // Prices are by week, for example: those of the last one, unless another is chosen.
  const { row: chosen } = app.given, row = { ...chosen };
  for (const one of columns) row[one] ??= terms.find(({ columns: [name] }) => name === one)?.choices?.at(-1);
  const where = columns.map((one) => `, ${one} ${row[one] ?? "unknown"}`).join("");
  const limits = { type: "range", min: 0.5, max: 1.5, step: 0.05, value: factor };
  const name = element("span", {}, `${table} of `, labelNode(app.labels[item], 24));
  const set = (text) => app.set({ factor: Number(text) });
  const slider = control(`change-${table}`, name, limits, set, percent(factor), percent);
  return factor === 1 ? [slider]
    : [slider, list(app, "what_if", {}, { table, row, where, level: percent(factor) })];
}

/** Categories of a selection beside their share of everything. @param {string[]} names @returns {Row[]} */
function shareRows(items, values, names) {
  const inside = names.map(() => 0), everywhere = names.map(() => 0);
  for (const item of items) inside[values[item]]++;
  for (const value of values) everywhere[value]++;
  const rows = names.map((name, i) => {
    const share = inside[i] / items.length;
    return { name, share, lift: (share * values.length) / everywhere[i] };
  });
  return rows.filter(({ share }) => share).sort((a, b) => b.share - a.share).slice(0, 6);
}

/** @param {Explorer} app */
function exportSelection(app) {
  const { map, labels, selection, header: { columns } } = app;
  const places = (code) => [map.at(code, 0), map.at(code, 1)];
  const rows = selection.map((code) => [labels[code], ...Object.values(factsOf(app, code)), ...places(code)]);
  downloadCsv("selection.csv", [["label", ...columns.map(({ title }) => title), "x", "y"], ...rows]);
}

/** An item in each slice of time: how similar it is to itself at first, and its nearest then. */
function timeList(/** @type {Explorer} */ app, item) {
  const { header: { slices, n }, arrays: { "slices.counts": counts }, labels, state: { slice } } = app;
  const answer = app.ask("trajectory", { item }).then((path) => path.map(({ group, similarity, near }) => ({
    similarity, group: String(group), at: slices?.labels[group], chosen: slice === String(group),
    near: near.map(({ code }) => labels[code].slice(0, 40)).join(", "), count: counts?.[group * n + item],
  })));
  return list(app, "trajectory", {
    answer, choose: ({ group, chosen }) => app.set({ slice: chosen ? "" : group }),
  });
}

/** Panels, by the names of their tabs. @type {Record<string, (app: Explorer) => Part[] | Promise<Part[]>>} */
const TABS = {
  item(app) {
    const { article, slices, lists, item_lists } = app.header, { item } = app.state;
    const ready = ["drift", "frequent"].filter((name) => lists[name].rows?.length);
    const hint = note(`Click a point, or search for ${article} above.`);
    if (item === null) return [hint, ready.map((name) => list(app, name))];
    return [itemTitle(app, item), item_lists.map((name) => list(app, name)),
      slices?.in_order ? timeList(app, item) : []];
  },

  async compare(app) {
    const { views, labels, state: { item } } = app;
    if (item === null) return [note("Click an item to compare its neighbors in the two models.")];
    const codes = views.map((view) => view.find(labels[item]));
    if (codes[1] < 0) return [itemTitle(app, item), note("The other model does not have this item.")];
    const answers = await Promise.all(views.map((view, i) => (
      view.ask("similar", { item: codes[i], space: "rho" }))));
    const names = answers.map((rows, i) => new Set(rows.map(({ code }) => views[i].labels[code])));
    const same = [...names[0]].filter((name) => names[1].has(name)).length;
    return [itemTitle(app, item),
      note(`${same} of ${names[0].size} neighbors are the same; the others are marked.`),
      views.map((view, i) => list(app, "compared", {
        view, choose: ({ code }) => app.selectLabel(view.labels[code]), answer: answers[i].map((row) => {
          const lit = !names[1 - i].has(view.labels[row.code]);
          return { ...row, lit, color: lit ? "changed" : "similar" };
        }),
      }, { name: view.header.name }))];
  },

  analogy(app) {
    const { item, positive } = app.state;
    const words = (/** @type {"positive" | "negative"} */ side, title) => {
      const codes = app.state[side], set = (changed) => app.set({ [side]: [...new Set(changed)] });
      const remove = (gone) => set(codes.filter((code) => code !== gone));
      const add = (code) => button(`${title} `, () => set([...codes, code]), {},
        labelNode(app.labels[code], 20));
      return list(app, "words", {
        title, answer: codes.map((code) => ({ code })), after: item === null ? [] : [add(item)],
        buttons: ({ code }) => [button("×", () => remove(code), { "aria-label": "Remove" })],
      });
    };
    return [note("Search for words and add them: with king and woman, without man, for example."),
      words("positive", "With"), words("negative", "Without"), positive.length ? list(app, "analogy") : []];
  },

  async basket(app) {
    const { noun, prediction } = app.header, { tables = {}, terms } = prediction, { row, basket } = app.given;
    if (prediction.refused) return [note(prediction.refused)];
    const change = (sign, name, code, to) => (
      button(sign, () => app.setAmount(code, to), { "aria-label": name }));
    const empty = button("Empty the basket", () => app.set({ basket: [] }), { class: "plain" });
    const named = new Map(terms.map((term) => [term.columns[0], term]));  // some share a column
    named.delete(/** @type {any} */ (undefined));
    /** @type {Part[]} */ const parts = [...named.values()].map((term) => termControl(app, term));
    parts.push(list(app, "basket", {
      answer: basket.map(([code, amount]) => ({ code, amount })), after: basket.length ? [empty] : [],
      buttons: ({ code, amount }) => [
        change("−", "One less", code, amount - 1), element("b", {}, shortNumber(amount)),
        change("+", "One more", code, amount + 1), change("×", "Remove", code, 0)],
    }), ...Object.entries(tables).flatMap(([table, columns]) => changeParts(app, table, columns)));
    const hint = note(`Add ${noun}s with +: the page then lists what goes with all of them, and why.`);
    if (!basket.length && !Object.keys(row).length) return [...parts, hint];
    const explain = (/** @type {Row} */ { code }) => { app.explained = code; app.showPanel(); };
    const complete = await list(app, "complete", { choose: explain, pick: app.explained });
    parts.push(prediction.remark ? note(prediction.remark) : [], complete);
    const chosen = complete.rows.find((one) => one.chosen);
    if (!chosen || !prediction.explains) return parts;
    const show = button("Show this item", () => app.selectItem(chosen.code), { class: "plain" });
    const label = app.labels[chosen.code].slice(0, 60);
    return [...parts, list(app, "explain", { after: [show] }, { item: chosen.code, label })];
  },

  selection(app) {
    const { selection: items, header: { columns, noun }, arrays, map } = app;
    const tools = element("p", { class: "tools" },
      button("Draw a lasso", () => app.toggleLasso(), { "aria-pressed": map.mode === "lasso" }),
      button("Select what is in view", () => app.setSelection(map.visible())));
    if (!items.length) return [tools, note(`Draw a lasso around points to see what these ${noun}s share.`)];
    const size = `${items.length.toLocaleString("en")} ${noun}${items.length === 1 ? "" : "s"}`;
    tools.append(button("Export as CSV", () => exportSelection(app)),
      button("Clear", () => app.setSelection([])));
    const shared = app.ask("share", { items, group: app.given.group });
    return [tools, element("h2", {}, size),
      columns.flatMap(({ key, title, names }) => (names
        ? list(app, "shares", { title, answer: shareRows(items, arrays[key], names) }) : [])),
      ["central", "near"].map((name) => (
        list(app, name, { answer: shared.then((both) => both[name]) })))];
  },

  model({ header: { name, notes, card: { verdict, facts, history } } }) {
    const lines = facts.flatMap(([term, fact]) => [element("dt", {}, term), element("dd", {}, fact)]);
    const line = element("polyline", { points: history?.points || "" });
    return [element("h2", {}, name), verdict ? element("p", { class: "score" }, verdict) : [],
      element("dl", {}, ...lines), history ? element("section", {}, element("h3", {}, history.title),
        element("svg", { class: "curve", viewBox: "0 -2 300 66" }, line), note(history.caption)) : [],
      notes.map(note)];
  },
};
