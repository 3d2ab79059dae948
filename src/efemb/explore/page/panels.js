/** The panels beside the map: mostly lists of answers, whose questions and texts are in lists.json. */

import { button, byId, downloadCsv, element, labelNode, note, percent, shortNumber, swatch } from "./dom.js";
import { countItems } from "./state.js";

/**
 * @import { List, Part, Row, Term, Shown } from "./types"
 * @import { Explorer } from "./main.js"
 */

/** A text with values in place of their names in braces; nothing if one is not known. @param {string} text */
function fill(text, values) {
  const names = [...text.matchAll(/\{(\w+)\}/g)];
  if (names.some(([, name]) => !values[name] && values[name] !== 0)) return "";
  const write = (value) => (typeof value === "number" ? shortNumber(value) : value);
  return names.reduce((filled, [place, name]) => filled.replace(place, () => write(values[name])), text);
}

/** The first text of each group whose values are known. @param {string[][]} groups */
const describe = (groups, values) => (
  groups.map((texts) => texts.map((text) => fill(text, values)).find(Boolean)).filter(Boolean).join(" · "));

/** What is known of an item, by the names of columns. @param {Explorer} app @param {number} code */
function factsOf({ map: { header, arrays } }, code) {
  return Object.fromEntries(header.columns.map(({ key, names }) => (
    [key, names ? names[arrays[key][code]] : arrays[key][code]])));
}

/**
 * A list by its name in lists.json: a section, and what it lights on the map.
 * @param {Explorer} app @param {string} name @param {Partial<List>} [changes] to how it is listed
 * @param {Record<string, any>} [given] what the question and the title take
 * @returns {Promise<Shown>}
 */
async function showList(app, name, changes, given = app.given) {
  /** @type {List} */ const list = { view: app.map, ...app.map.header.lists[name], ...changes };
  const { value, color, other } = list;
  /** @type {Row[]} */ let rows = [];
  let content = note(list.empty);
  try {
    const body = Object.fromEntries(list.takes.map((part) => [part, given[part]]));
    rows = await (list.rows || app.map.ask(name, body));
    if (list.by_size) rows.sort((a, b) => Math.abs(b[value]) - Math.abs(a[value]));
    if (rows.length) content = element("ol", { class: "items" }, ...showRows(app, list, rows));
  } catch (error) {
    content = note(/** @type {Error} */ (error).message);
  }
  const sum = rows.reduce((total, row) => total + row[value], 0);
  const node = element("section", {},
    element("h3", {}, color && !other ? swatch(color) : "", fill(list.title, given)),
    list.note ? note(list.note) : "",
    content,
    list.foot ? note(fill(list.foot, { sum })) : "",
    ...(list.after || []));
  const sure = color ? rows.filter((row) => row.kind !== "unclear").slice(0, list.marked) : [];
  const lit = sure.map((row) => (
    { view: list.view, code: row.code, weight: row.weight, color: row.lit || row.weight < 0 ? other : color }));
  return { node, lit, rows };
}

/** Lines with bars, which start at zero. @param {Explorer} app @param {List} list @param {Row[]} rows */
function showRows(app, list, rows) {
  const { value, view, detail, kinds } = list;
  const numbers = rows.slice(0, list.shown).map((row) => Number(row[value]));
  const low = Math.min(0, ...numbers);
  const range = Math.max(0, ...numbers) - low || 1;
  return numbers.map((number, i) => {
    const row = rows[i];
    const text = list.percent ? percent(number) : shortNumber(number);
    const width = `${(100 * Math.abs(number)) / range}%`;
    const marginLeft = `${(100 * (Math.min(number, 0) - low)) / range}%`;
    const bar = element("span", { class: number < 0 ? "negative" : "", style: { width, marginLeft } });
    const take = list.choose || (row.code === undefined ? null : () => app.selectItem(row.code, view));
    const pressing = take && { "aria-pressed": row.chosen || false, onclick: () => take(row) };
    const facts = { count: app.map.arrays.counts?.[row.code], ...row, kind: kinds[row.kind] };
    const item = element(take ? "button" : "div", { class: "item", ...pressing },
      labelNode(String(row[list.label] ?? view.labels[row.code])),
      ...(value ? [element("span", { class: "value" }, text), element("span", { class: "bar" }, bar)] : []),
      element("small", {}, describe(detail, facts)));
    const buttons = list.buttons?.(row) || [list.adds ? addButton(app, row.code) : ""];
    return element("li", { class: row.lit ? "lit" : "" }, item, ...buttons);
  });
}

/** What a tab shows: nodes, and what is lit on the maps. @param {Explorer} app */
export async function showTab(app) {
  const parts = await Promise.all((await TABS[app.state.tab](app)).flat());
  const shown = parts.map((part) => (part instanceof Node ? { node: part, lit: [] } : part));
  return { nodes: shown.map(({ node }) => node), lit: shown.flatMap(({ lit }) => lit) };
}

/** @param {Explorer} app @param {number} code */
function addButton(app, code) {
  const { header, labels } = app.map;
  if (header.prediction.refused) return "";
  const title = "Add to the basket";
  const name = `Add ${labels[code].slice(0, 60)} to the basket`;
  return button("+", () => app.addToBasket(code), { class: "add", title, "aria-label": name });
}

/** @param {Explorer} app @param {number} code */
function itemTitle(app, code) {
  const { header, labels } = app.map;
  return element("header", { class: "title" },
    element("h2", {}, labelNode(labels[code], 120)),
    addButton(app, code),
    element("p", { class: "facts" }, describe(header.lists.item.detail, factsOf(app, code))));
}

/** Items that a person put together, with buttons that change them. @param {"words" | "basket"} name */
function memberList(/** @type {Explorer} */ app, name, side, changes = {}) {
  const codes = app.state[side];
  const change = (sign, title, changed) => (
    button(sign, () => app.set({ [side]: changed }), { "aria-label": title }));
  const buttons = (/** @type {Row} */ { code, amount }) => {
    const remove = change("×", "Remove", codes.filter((one) => one !== code));
    if (name === "words") return [remove];
    const less = change("−", "One less", codes.toSpliced(codes.lastIndexOf(code), 1));
    return [less, element("b", {}, shortNumber(amount)), change("+", "One more", [...codes, code]), remove];
  };
  const rows = countItems(codes).map(([code, amount]) => ({ code, amount }));
  return showList(app, name, { rows, buttons, ...changes });
}

// -- controls ----------------------------------------------------------------------------------

/**
 * A labeled control; a slider has its number beside it.
 * @param {string} id @param {Node | string} label @param {Record<string, any>} properties
 * @param {(text: string) => void} set @param {(number: number) => string} [format] of a slider
 */
function control(id, label, properties, set, format = () => "", shown = format(properties.value)) {
  const output = element("output", {}, shown);
  const onchange = ({ target }) => set(target.value.trim());
  const oninput = ({ target }) => { output.textContent = format(Number(target.value)); };
  const input = element("input", { id, ...properties, onchange, oninput });
  return element("p", { class: "term" }, element("label", { for: id }, label), input, output);
}

/** What a person chooses for a term: a household, a price. @param {Explorer} app @param {Term} term */
function termControl(app, { columns: [name], input, center, choices = [] }) {
  const { row } = app.state;
  const value = row[name] || "";
  const set = (text) => app.set({ row: { ...row, [name]: text } });
  const id = `term-${name}`;
  if (center !== undefined) {
    const shown = value ? shortNumber(Number(value)) : "average";
    return control(id, name, { ...input, value: value || center }, set, shortNumber, shown);
  }
  const list = `${id}-list`;
  const options = choices.slice(0, 2000).map((choice) => element("option", { value: choice }));
  const node = control(id, name, { ...input, value, list }, set);
  node.append(element("datalist", { id: list }, ...options));
  return node;
}

/**
 * A slider for the price of the selected item, and what changes with it.
 * @param {Explorer} app @param {string} table @param {Record<string, any>} usual row, for lack of a choice
 * @returns {Part[]}
 */
function changeParts(app, table, usual) {
  const { item, factor } = app.state;
  if (item === null) return [note(`Select ${app.map.header.article} to change its ${table}.`)];
  const name = element("span", {}, `${table} of `, labelNode(app.map.labels[item], 24));
  const limits = { type: "range", min: 0.5, max: 1.5, step: 0.05, value: factor };
  const slider = control(`change-${table}`, name, limits, (text) => app.set({ factor: Number(text) }), percent);
  const row = { ...usual, ...app.given.row };
  const level = [percent(factor), ...Object.keys(usual).map((column) => `${column} ${row[column]}`)].join(", ");
  return [slider, factor === 1 ? [] : showList(app, "what_if", {}, { ...app.given, table, row, level })];
}

// -- tabs --------------------------------------------------------------------------------------

/** An item in each slice of time: how similar it is to itself at first, and its nearest then. */
function timeList(/** @type {Explorer} */ app, item) {
  const { header: { slices, n }, arrays, labels } = app.map;
  const counts = arrays["slices.counts"];
  const describeSlice = ({ group, similarity, near }) => ({
    similarity,
    group: String(group),
    at: slices?.labels[group],
    chosen: app.state.slice === String(group),
    near: near.map(({ code }) => labels[code].slice(0, 40)).join(", "),
    count: counts?.[group * n + item],
  });
  const rows = app.map.ask("trajectory", { item }).then((path) => path.map(describeSlice));
  const choose = (/** @type {Row} */ { group, chosen }) => app.set({ slice: chosen ? "" : group });
  return showList(app, "trajectory", { rows, choose });
}

/** Categories of a selection beside their share of everything. @param {string[]} names @returns {Row[]} */
function shareRows(items, values, names) {
  const inside = names.map(() => 0);
  const everywhere = names.map(() => 0);
  for (const item of items) inside[values[item]] += 1;
  for (const value of values) everywhere[value] += 1;
  const rows = names.map((name, i) => {
    const share = inside[i] / items.length;
    return { name, share, lift: (share * values.length) / everywhere[i] };
  });
  return rows.filter(({ share }) => share).sort((a, b) => b.share - a.share).slice(0, 6);
}

/** @param {Explorer} app */
function exportSelection(app) {
  const { map, selection } = app;
  const titles = map.header.columns.map(({ title }) => title);
  const rows = selection.map((code) => (
    [map.labels[code], ...Object.values(factsOf(app, code)), map.at(code, 0), map.at(code, 1)]));
  downloadCsv("selection.csv", [["label", ...titles, "x", "y"], ...rows]);
}

/** Panels, by the names of their tabs. @type {Record<string, (app: Explorer) => Part[] | Promise<Part[]>>} */
const TABS = {
  item(app) {
    const { hints, slices, lists, item_lists } = app.map.header;
    const { item } = app.state;
    if (item === null) {
      const ready = ["drift", "frequent"].filter((name) => lists[name].rows);
      return [note(hints.item), ready.map((name) => showList(app, name))];
    }
    const path = slices?.in_order ? timeList(app, item) : [];
    return [itemTitle(app, item), item_lists.map((name) => showList(app, name)), path];
  },

  async compare(app) {
    const { views, map: { labels, header: { hints } }, state: { item } } = app;
    if (item === null) return [note(hints.compare)];
    const codes = views.map((view) => view.find(labels[item]));
    if (codes[1] < 0) return [itemTitle(app, item), note("The other model does not have this item.")];
    const answers = await Promise.all(views.map((view, i) => view.ask("similar", { item: codes[i] })));
    const names = answers.map((rows, i) => rows.map(({ code }) => views[i].labels[code]));
    const shared = new Set(names[0].filter((name) => names[1].includes(name)));
    const lists = views.map((view, i) => {
      const rows = answers[i].map((row, place) => ({ ...row, lit: !shared.has(names[i][place]) }));
      return showList(app, "compared", { view, rows }, { name: view.header.name });
    });
    const remark = `${shared.size} of ${names[0].length} neighbors are the same; the others are marked.`;
    return [itemTitle(app, item), note(remark), lists];
  },

  analogy(app) {
    const { item, positive } = app.state;
    const words = (/** @type {"positive" | "negative"} */ side, title) => {
      const codes = app.state[side];
      const isNew = item !== null && !codes.includes(item);
      const add = () => app.set({ [side]: [...codes, item] });
      const after = isNew ? [button(`${title} `, add, {}, labelNode(app.map.labels[item], 20))] : [];
      return memberList(app, "words", side, { title, after });
    };
    const answer = positive.length ? showList(app, "analogy") : [];
    return [note(app.map.header.hints.analogy), words("positive", "With"), words("negative", "Without"), answer];
  },

  async basket(app) {
    const { hints, prediction: { refused, remark, explains, terms, tables } } = app.map.header;
    if (refused) return [note(refused)];
    const { basket, row, explained } = app.given;
    /** @type {Part[]} */ const parts = terms.filter(({ asked }) => asked).map((term) => termControl(app, term));
    parts.push(memberList(app, "basket", "basket"));
    parts.push(...Object.entries(tables).flatMap(([table, usual]) => changeParts(app, table, usual)));
    if (!basket.length && !Object.keys(row).length) return [...parts, note(hints.basket)];
    if (remark) parts.push(note(remark));
    const rows = app.map.ask("complete", { basket, row }).then((answer) => {
      const chosen = answer.find(({ code }) => code === explained) || answer[0];
      return answer.map((one) => ({ ...one, chosen: one === chosen }));
    });
    const choose = (/** @type {Row} */ { code }) => app.set({ explained: code });
    const complete = await showList(app, "complete", { rows, choose });
    const item = complete.rows.find(({ chosen }) => chosen)?.code;
    if (item === undefined || !explains) return [...parts, complete];
    const label = app.map.labels[item].slice(0, 60);
    const after = [button("Show this item", () => app.selectItem(item), { class: "plain" })];
    return [...parts, complete, showList(app, "explain", { after }, { basket, row, item, label })];
  },

  selection(app) {
    const { selection: items, map } = app;
    const { columns, hints, noun } = map.header;
    const view = button("Select what is in view", () => app.setSelection(map.visible()));
    const tools = element("p", { class: "tools" }, view);
    if (!items.length) return [note(hints.selection), tools];
    const save = button("Export as CSV", () => exportSelection(app));
    tools.append(save, button("Clear", () => app.setSelection([])));
    const shares = columns.flatMap(({ key, title, names }) => (
      names ? showList(app, "shares", { title, rows: shareRows(items, map.arrays[key], names) }) : []));
    const answer = map.ask("share", { items, group: app.given.group });
    const lists = ["central", "near"].map((name) => (
      showList(app, name, { rows: answer.then((both) => both[name]) })));
    const size = `${items.length.toLocaleString("en")} ${noun}${items.length === 1 ? "" : "s"}`;
    return [tools, element("h2", {}, size), shares, lists];
  },

  model({ map: { header: { name, notes, card: { verdict, facts, history } } } }) {
    const lines = facts.flatMap(([term, fact]) => [element("dt", {}, term), element("dd", {}, fact)]);
    const score = element("p", { class: "score" }, verdict);
    const parts = [element("h2", {}, name), score, element("dl", {}, ...lines)];
    if (history) {
      const curve = byId("curve").content.cloneNode(true);
      curve.querySelector("polyline").setAttribute("points", history.points);
      parts.push(element("section", {}, element("h3", {}, history.title), curve, note(history.caption)));
    }
    return [...parts, ...notes.map(note)];
  },
};
