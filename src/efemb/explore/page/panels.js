/** The panels beside the map: mostly lists of answers, whose questions and texts are in lists.json. */

import { readColumns } from "./answers.js";
import { button, byId, downloadCsv, element, labelNode, note, percent, shortNumber, swatch } from "./dom.js";

/**
 * @import { Basket, Column, List, Row, Section, Shown, State, Term } from "./types"
 * @import { Explorer } from "./main.js"
 */

/** Items that are listed once or more, and how often. @param {number[]} codes @returns {Basket} */
export const countItems = (codes) => (
  [...new Set(codes)].map((code) => [code, codes.filter((one) => one === code).length]));

/** A text with values in place of their names in braces; nothing if one is not known. @param {string} text */
function fill(text, values) {
  const isKnown = [...text.matchAll(/\{(\w+)\}/g)].every(([, name]) => values[name] || values[name] === 0);
  const write = (value) => (typeof value === "number" ? shortNumber(value) : value);
  return isKnown ? text.replace(/\{(\w+)\}/g, (_, name) => write(values[name])) : "";
}

/** The first text of each group whose values are known. @param {string[][]} groups */
const describe = (groups, values) => (
  groups.map((texts) => texts.map((text) => fill(text, values)).find(Boolean)).filter(Boolean).join(" · "));

/**
 * A list by its name in lists.json: a section, and what it lights on the map.
 * @param {Explorer} app @param {string} name @param {Record<string, any>} given what the question and the title take
 * @param {Partial<List>} [changes] to how it is listed @returns {Promise<Shown>}
 */
async function showList(app, name, given, changes) {
  /** @type {List} */ const list = { view: app.map, ...app.map.header.lists[name], ...changes };
  const { value, view, color, other } = list;
  /** @type {Row[]} */ let rows = [];
  let content = note(list.empty);
  try {
    const body = Object.fromEntries(list.takes.map((part) => [part, given[part]]));
    rows = await (list.rows || view.ask(name, body));
    if (list.by_size) rows.sort((a, b) => Math.abs(b[value]) - Math.abs(a[value]));
    if (rows.length) content = element("ol", { class: "items" }, ...showRows(app, list, rows));
  } catch (error) {
    content = note(/** @type {Error} */ (error).message);
  }
  const title = element("h3", {}, color && !other ? swatch(color) : "", fill(list.title, given));
  const sum = rows.reduce((total, row) => total + row[value], 0);
  const foot = list.foot ? note(fill(list.foot, { sum })) : "";
  const sure = color ? rows.filter((row) => row.kind !== "unclear").slice(0, list.marked) : [];
  const lit = sure.map(({ code, weight, isOther }) => (
    { view, code, weight, color: isOther || weight < 0 ? other : color }));
  return { node: element("section", {}, title, content, foot, ...(list.after ?? [])), lit, rows };
}

/** Lines with bars, which start at zero. @param {Explorer} app @param {List} list @param {Row[]} rows */
function showRows(app, list, rows) {
  const { value, view, label, choose, kinds } = list;
  const numbers = rows.slice(0, list.shown).map((row) => Number(row[value]));
  const low = Math.min(0, ...numbers);
  const range = Math.max(0, ...numbers) - low || 1;
  return numbers.map((number, i) => {
    const row = rows[i];
    const { code, chosen = false, isOther } = row;
    const left = Math.min(number, 0) - low;
    const style = { width: `${(100 * Math.abs(number)) / range}%`, marginLeft: `${(100 * left) / range}%` };
    const bar = element("span", { class: "bar" }, element("span", { class: number < 0 ? "negative" : "", style }));
    const text = element("span", { class: "value" }, list.percent ? percent(number) : shortNumber(number));
    const facts = { count: view.arrays.counts?.[code], ...row, kind: kinds[row.kind] };
    const parts = [
      labelNode(String(row[label] ?? view.labels[code])), ...(value ? [text, bar] : []),
      element("small", {}, describe(list.detail, facts)),
    ];
    const take = choose || (code === undefined ? null : () => app.selectItem(code, view));
    const item = take
      ? element("button", { class: "item", "aria-pressed": chosen, onclick: () => take(row) }, ...parts)
      : element("div", { class: "item" }, ...parts);
    const buttons = list.buttons?.(row) ?? (list.adds ? [addButton(app, code)] : []);
    return element("li", { class: isOther ? "lit" : "" }, item, ...buttons);
  });
}

/** @param {Explorer} app @param {number} code */
function addButton(app, code) {
  if (app.map.header.prediction.refused) return "";
  const title = "Add to the basket";
  const name = `Add ${app.map.labels[code].slice(0, 60)} to the basket`;
  return button("+", () => app.addToBasket(code), { class: "add", title, "aria-label": name });
}

/** @param {Explorer} app @param {number} code */
function itemTitle(app, code) {
  const { header: { columns, lists }, arrays, labels } = app.map;
  const facts = describe(lists.item.detail, readColumns(columns, arrays, code));
  return element("header", { class: "title" },
    element("h2", {}, labelNode(labels[code])), addButton(app, code), element("p", { class: "facts" }, facts));
}

/** Items that a person put together, with buttons that change them. @param {"basket" | "positive" | "negative"} side */
function memberList(/** @type {Explorer} */ app, name, side, changes = {}) {
  const codes = app.codes(side);
  const change = (sign, title, changed) => (
    button(sign, () => app.set({ [side]: changed }), { "aria-label": title }));
  const buttons = (/** @type {Row} */ { code, amount }) => [
    change("−", amount > 1 ? "One less" : "Remove", codes.toSpliced(codes.lastIndexOf(code), 1)),
    element("b", {}, shortNumber(amount)),
    change("+", "One more", [...codes, code]),
  ];
  const rows = countItems(codes).map(([code, amount]) => ({ code, amount }));
  return showList(app, name, app.state, { rows, buttons, ...changes });
}

/**
 * A labeled control, whose value is kept in the address by its name; a slider has its number beside it.
 * @param {Explorer} app @param {Node | string} label @param {Term} term
 */
function control(app, label, { name, value, input, choices = [] }, write = shortNumber) {
  const text = app.address.get(name);
  const isSlider = input.type === "range";
  const output = element("output", {}, isSlider ? (text && write(Number(text))) || "usual" : "");
  const oninput = ({ target }) => { if (isSlider) output.textContent = write(Number(target.value)); };
  const known = choices.slice(0, 2000).map((choice) => new Option("", String(choice)));
  const list = element("datalist", { id: `known-${name}` }, ...known);
  const box = element("input", { ...input, name, id: name, list: list.id, value: text || (value ?? ""), oninput });
  return element("p", { class: "term" }, element("label", { for: name }, label), box, output, list);
}

/** A slider for the price of the selected item, for example, and what changes with it. @returns {Section[]} */
function changeParts(/** @type {Explorer} */ app, state, table, usual) {
  const { header: { article, prediction: { factor } }, labels } = app.map;
  if (state.item === null) return [note(`Select ${article} to change its ${table}.`)];
  const name = element("span", {}, `${table} of `, labelNode(labels[state.item]));
  const row = { ...usual, ...state.row };
  const level = [percent(state.factor), ...Object.keys(usual).map((column) => `${column} ${row[column]}`)];
  const given = { ...state, table, row, level: level.join(", ") };
  return [control(app, name, factor, percent), state.factor === 1 ? [] : showList(app, "what_if", given)];
}

/** An item in each slice of time: how similar it is to itself at first, and its nearest then. */
function timeList(/** @type {Explorer} */ app, state) {
  const { header: { slices }, labels } = app.map;
  const rows = app.ask("trajectory", { item: state.item }).then((path) => path.map((row, group) => ({
    ...row, group, at: slices?.labels[group], near: labels[row.nearest].slice(0, 60), chosen: group === state.group,
  })));
  const choose = (/** @type {Row} */ { group, chosen }) => app.set({ slice: chosen ? "" : String(group) });
  return showList(app, "trajectory", state, { rows, choose });
}

/** Categories of a selection beside their share of everything. @param {number[]} items @param {Column} column */
function shareRows(items, { array, names = [], shares = [] }, arrays) {
  const places = items.map((code) => arrays[array][code]);
  const rows = names.map((name, i) => {
    const share = places.filter((place) => place === i).length / items.length;
    return { name, share, lift: share / shares[i] };
  });
  return rows.filter(({ share }) => share).sort((a, b) => b.share - a.share).slice(0, 6);
}

/** @param {Explorer} app */
function exportSelection({ map, map: { header: { columns }, arrays, labels }, selection }) {
  const rows = selection.map((code) => (
    [labels[code], ...Object.values(readColumns(columns, arrays, code)), map.at(code, 0), map.at(code, 1)]));
  downloadCsv("selection.csv", [["label", ...columns.map(({ title }) => title), "x", "y"], ...rows]);
}

/** Panels, by the names of their tabs. @type {Record<string, (app: Explorer, state: State) => any>} */
const TABS = {
  item(app, state) {
    const { hints, slices, lists, item_lists } = app.map.header;
    if (state.item !== null) {
      const path = slices?.in_order ? [timeList(app, state)] : [];
      return [itemTitle(app, state.item), ...item_lists.map((name) => showList(app, name, state)), ...path];
    }
    const ready = ["drift", "frequent"].filter((name) => lists[name].rows);
    return [note(hints.item), ...ready.map((name) => showList(app, name, state))];
  },

  async compare(app, { item }) {
    const { views, map: { labels, header: { hints } } } = app;
    if (item === null) return [note(hints.compare)];
    const codes = views.map((view) => view.find(labels[item]));
    if (codes[1] < 0) return [itemTitle(app, item), note("The other model does not have this item.")];
    const answers = await Promise.all(views.map((view, i) => view.ask("similar", { item: codes[i] })));
    const names = answers.map((rows, i) => rows.map(({ code }) => views[i].labels[code]));
    const shared = names[0].filter((name) => names[1].includes(name));
    const lists = views.map((view, i) => {
      const rows = answers[i].map((row, place) => ({ ...row, isOther: !shared.includes(names[i][place]) }));
      return showList(app, "compared", { name: view.header.name }, { view, rows });
    });
    const remark = `${shared.length} of ${names[0].length} neighbors are the same; the others are marked.`;
    return [itemTitle(app, item), note(remark), ...lists];
  },

  analogy(app, state) {
    const { item, positive } = state;
    const words = (/** @type {"positive" | "negative"} */ side, title) => {
      const isNew = item !== null && !state[side].includes(item);
      const add = () => app.set({ [side]: [...state[side], item] });
      const after = isNew ? [button(`${title} `, add, {}, labelNode(app.map.labels[item]))] : [];
      return memberList(app, "words", side, { title, after });
    };
    const answer = positive.length ? [showList(app, "analogy", state)] : [];
    return [note(app.map.header.hints.analogy), words("positive", "With"), words("negative", "Without"), ...answer];
  },

  async basket(app, state) {
    const { noun, hints, prediction: { refused, remark, explains, terms, tables } } = app.map.header;
    if (refused) return [note(refused)];
    const { basket, row, explained } = state;
    const parts = terms.filter(({ asked }) => asked).map((term) => control(app, term.columns[0], term));
    parts.push(memberList(app, "basket", "basket"));
    parts.push(...Object.entries(tables).flatMap(([table, usual]) => changeParts(app, state, table, usual)));
    if (!basket.length && !Object.keys(row).length) return [...parts, note(hints.basket)];
    if (remark) parts.push(note(remark));
    const rows = app.ask("complete", { basket, row }).then((answer) => {
      const chosen = answer.find(({ code }) => code === explained) || answer[0];
      return answer.map((one) => ({ ...one, chosen: one === chosen }));
    });
    const choose = (/** @type {Row} */ { code }) => app.set({ explained: code });
    const complete = await showList(app, "complete", state, { rows, choose });
    const item = complete.rows.find(({ chosen }) => chosen)?.code;
    if (item === undefined || !explains) return [...parts, complete];
    const after = [button(`Show this ${noun}`, () => app.selectItem(item), { class: "plain" })];
    const given = { basket, row, item, label: app.map.labels[item].slice(0, 60) };
    return [...parts, complete, showList(app, "explain", given, { after })];
  },

  selection(app, state) {
    const { selection: items, map } = app;
    const { columns, hints, noun } = map.header;
    const tools = element("p", { class: "tools" },
      button("Select all in view", () => app.setSelection(map.visible())));
    if (!items.length) return [note(hints.selection), tools];
    tools.append(
      button("Export as CSV", () => exportSelection(app)), button("Clear", () => app.setSelection([])));
    const shares = columns.filter(({ names }) => names).map((column) => (
      showList(app, "shares", column, { rows: shareRows(items, column, map.arrays) })));
    const answer = map.ask("share", { items, group: state.group });
    const lists = ["central", "near"].map((name) => (
      showList(app, name, state, { rows: answer.then((both) => both[name]) })));
    const size = `${items.length.toLocaleString("en")} ${noun}${items.length === 1 ? "" : "s"}`;
    return [tools, element("h2", {}, size), ...shares, ...lists];
  },

  model: () => [byId("card").content.cloneNode(true)],
};

/** What a tab shows: nodes, and what is lit on the maps. @param {Explorer} app @param {State} state */
export async function showTab(app, state) {
  const parts = await Promise.all((await TABS[state.tab](app, state)).flat());
  const shown = parts.map((part) => (part instanceof Node ? { node: part, lit: [] } : part));
  return { nodes: shown.map(({ node }) => node), lit: shown.flatMap(({ lit }) => lit) };
}
