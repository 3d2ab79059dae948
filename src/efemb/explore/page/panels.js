/** The panels beside the map: mostly lists of answers, whose questions and texts are in lists.json. */

import { button, downloadCsv, element, labelNode, note, percent, shortNumber, swatch } from "./dom.js";

/**
 * @import { Basket, List, Part, Row, Shown, Term } from "./types"
 * @import { Explorer } from "./main.js"
 */

const NAMES = /\{(\w+)\}/g;

/** A text with values in place of their names in braces. @param {string} text */
function fill(text, values) {
  return text.replace(NAMES, (whole, name) => {
    const value = values[name] ?? whole;
    return typeof value === "number" ? shortNumber(value) : value;
  });
}

/** The first text of each group whose values are known. @param {string[][]} groups */
function describe(groups, values) {
  const isKnown = ([, name]) => values[name] || values[name] === 0;
  const isComplete = (text) => [...text.matchAll(NAMES)].every(isKnown);
  const texts = groups.flatMap((alternatives) => alternatives.find(isComplete) ?? []);
  return texts.map((text) => fill(text, values)).join(" · ");
}

/** What is known of an item, by the names of columns. @param {Explorer} app @param {number} code */
function factsOf({ map: { header, arrays } }, code) {
  return Object.fromEntries(header.columns.map(({ key, names }) => (
    [key, names ? names[arrays[key][code]] : arrays[key][code]])));
}

/**
 * A list by its name in lists.json: a section, and what it lights on the map.
 * @param {Explorer} app @param {string} name @param {List} [changes] to how it is listed
 * @param {Record<string, any>} [given] what the question and the title take
 * @returns {Promise<Shown>}
 */
async function showList(app, name, changes, given = app.given) {
  const { marks, lists } = app.map.header;
  /** @type {List} */ const list = { ...lists[name], ...changes };
  const { title = "", value = "", color, below, view = app.map, marked = 6 } = list;
  const colorOf = (row) => marks[row.color || (below && row[value] < 0 ? below : color)];
  /** @type {Row[]} */ let rows = [];
  let content = note(list.empty || "Nothing to list.");
  try {
    const body = Object.fromEntries((list.takes || []).map((part) => [part, given[part]]));
    rows = await (list.answer || list.rows || (list.takes ? app.map.ask(name, body) : []));
    if (list.by_size) rows.sort((a, b) => Math.abs(b[value]) - Math.abs(a[value]));
    if (rows.length) content = element("ol", { class: "items" }, ...showRows(app, list, rows));
  } catch (error) {
    content = note(/** @type {Error} */ (error).message);
  }
  const sum = rows.reduce((total, row) => total + row[value], 0);
  const node = element("section", {},
    element("h3", {}, color && !below ? swatch(marks[color]) : "", fill(title, given)),
    list.note ? note(list.note) : "",
    content,
    list.foot ? note(fill(list.foot, { sum })) : "",
    ...(list.after || []));
  const lit = rows.filter((row) => colorOf(row) && row.kind !== "unclear").slice(0, marked)
    .map((row) => ({ view, code: row.code, weight: row.weight, color: colorOf(row) }));
  return { node, lit, rows };
}

/** Lines with bars, which start at zero. @param {Explorer} app @param {List} list @param {Row[]} rows */
function showRows(app, list, rows) {
  const { header: { lists: { pair } }, arrays: { counts } } = app.map;
  const { value = "", view = app.map, detail = pair.detail || [], shown } = list;
  const numbers = rows.slice(0, shown).map((row) => Number(row[value]));
  const low = Math.min(0, ...numbers);
  const range = Math.max(0, ...numbers) - low || 1;
  return numbers.map((number, i) => {
    const row = rows[i];
    const text = list.percent ? percent(number) : shortNumber(number);
    const width = `${(100 * Math.abs(number)) / range}%`;
    const marginLeft = `${(100 * (Math.min(number, 0) - low)) / range}%`;
    const bar = element("span", { class: number < 0 ? "negative" : "", style: { width, marginLeft } });
    const take = list.choose || (row.code === undefined ? null : () => app.selectItem(row.code));
    const pressing = take && { "aria-pressed": row.chosen || false, onclick: () => take(row) };
    const facts = { count: counts?.[row.code], ...row, kind: pair.kinds?.[row.kind] };
    const item = element(take ? "button" : "div", { class: "item", ...pressing },
      labelNode(String(row[list.label || ""] ?? view.labels[row.code]), 80),
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
  const facts = describe(header.lists.item.detail || [], factsOf(app, code));
  return element("header", { class: "title" },
    element("h2", {}, labelNode(labels[code], 120)),
    addButton(app, code),
    element("p", { class: "facts" }, facts));
}

// -- controls ----------------------------------------------------------------------------------

/**
 * A labeled control; a slider has its number beside it.
 * @param {string} id @param {Node | string} label @param {Record<string, any>} properties
 * @param {(text: string) => void} set @param {(number: number) => string} [format] of a slider
 */
function control(id, label, properties, set, shown = "", format = () => "") {
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
    return control(id, name, { ...input, value: value || center }, set, shown, shortNumber);
  }
  const list = `${id}-list`;
  const options = choices.slice(0, 2000).map((choice) => element("option", { value: choice }));
  const node = control(id, name, { ...input, value, list }, set);
  node.append(element("datalist", { id: list }, ...options));
  return node;
}

/** A slider for the price of the selected item, and what changes with it. @returns {Part[]} */
function changeParts(/** @type {Explorer} */ app, table, columns) {
  const { item, factor } = app.state;
  const { article, prediction: { terms } } = app.map.header;
  if (item === null) return [note(`Select ${article} to change its ${table}.`)];
  const name = element("span", {}, `${table} of `, labelNode(app.map.labels[item], 24));
  const limits = { type: "range", min: 0.5, max: 1.5, step: 0.05, value: factor };
  const set = (text) => app.set({ factor: Number(text) });
  const slider = control(`change-${table}`, name, limits, set, percent(factor), percent);
  if (factor === 1) return [slider];
  // Prices are by week, for example: those of the last one, unless another is chosen.
  const row = { ...app.given.row };
  for (const column of columns) {
    row[column] ??= terms.find((term) => term.columns[0] === column)?.choices?.at(-1);
  }
  const where = columns.map((column) => `, ${column} ${row[column] ?? "unknown"}`).join("");
  return [slider, showList(app, "what_if", {}, { ...app.given, table, row, where, level: percent(factor) })];
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
  const answer = app.map.ask("trajectory", { item }).then((path) => path.map(describeSlice));
  const choose = (/** @type {Row} */ { group, chosen }) => app.set({ slice: chosen ? "" : group });
  return showList(app, "trajectory", { answer, choose });
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

/** The basket with its amounts. @param {Explorer} app @param {Basket} basket */
function basketList(app, basket) {
  const change = (sign, name, code, amount) => (
    button(sign, () => app.setAmount(code, amount), { "aria-label": name }));
  return showList(app, "basket", {
    answer: basket.map(([code, amount]) => ({ code, amount })),
    buttons: ({ code, amount }) => [
      change("−", "One less", code, amount - 1),
      element("b", {}, shortNumber(amount)),
      change("+", "One more", code, amount + 1),
      change("×", "Remove", code, 0),
    ],
  });
}

/** Panels, by the names of their tabs. @type {Record<string, (app: Explorer) => Part[] | Promise<Part[]>>} */
const TABS = {
  item(app) {
    const { article, slices, lists, item_lists } = app.map.header;
    const { item } = app.state;
    if (item === null) {
      const hint = note(`Click a point, or search for ${article} above.`);
      const ready = ["drift", "frequent"].filter((name) => lists[name].rows?.length);
      return [hint, ready.map((name) => showList(app, name))];
    }
    const path = slices?.in_order ? timeList(app, item) : [];
    return [itemTitle(app, item), item_lists.map((name) => showList(app, name)), path];
  },

  async compare(app) {
    const { views, map: { labels }, state: { item } } = app;
    if (item === null) return [note("Click an item to compare its neighbors in the two models.")];
    const codes = views.map((view) => view.find(labels[item]));
    if (codes[1] < 0) return [itemTitle(app, item), note("The other model does not have this item.")];
    const answers = await Promise.all(views.map((view, i) => view.ask("similar", { item: codes[i] })));
    const names = answers.map((rows, i) => rows.map(({ code }) => views[i].labels[code]));
    const shared = new Set(names[0].filter((name) => names[1].includes(name)));
    const lists = views.map((view, i) => showList(app, "compared", {
      view,
      answer: answers[i].map((row, place) => {
        const lit = !shared.has(names[i][place]);
        return { ...row, lit, color: lit ? "changed" : "similar" };
      }),
      choose: ({ code }) => app.selectItem(app.map.find(view.labels[code])),
    }, { name: view.header.name }));
    const remark = `${shared.size} of ${names[0].length} neighbors are the same; the others are marked.`;
    return [itemTitle(app, item), note(remark), lists];
  },

  analogy(app) {
    const { item, positive } = app.state;
    const words = (/** @type {"positive" | "negative"} */ side, title) => {
      const codes = app.state[side];
      const set = (changed) => app.set({ [side]: changed });
      const keep = (code) => set(codes.filter((other) => other !== code));
      const remove = (code) => button("×", () => keep(code), { "aria-label": "Remove" });
      const add = (code) => (
        button(`${title} `, () => set([...codes, code]), {}, labelNode(app.map.labels[code], 20)));
      return showList(app, "words", {
        title,
        answer: codes.map((code) => ({ code })),
        buttons: ({ code }) => [remove(code)],
        after: item === null || codes.includes(item) ? [] : [add(item)],
      });
    };
    const hint = note("Search for words and add them: with king and woman, without man, for example.");
    const answer = positive.length ? showList(app, "analogy") : [];
    return [hint, words("positive", "With"), words("negative", "Without"), answer];
  },

  async basket(app) {
    const { noun, prediction: { refused, remark, explains, terms, tables = {} } } = app.map.header;
    if (refused) return [note(refused)];
    const { basket, row } = app.given;
    const columns = new Map(terms.map((term) => [term.columns[0], term]));  // some share a column
    columns.delete(/** @type {any} */ (undefined));  // and some have none
    /** @type {Part[]} */ const parts = [...columns.values()].map((term) => termControl(app, term));
    parts.push(basketList(app, basket));
    parts.push(...Object.entries(tables).flatMap(([table, names]) => changeParts(app, table, names)));
    if (!basket.length && !Object.keys(row).length) {
      const hint = `Add ${noun}s with +: the page then lists what goes with all of them, and why.`;
      return [...parts, note(hint)];
    }
    if (remark) parts.push(note(remark));
    const answer = app.map.ask("complete", { basket, row }).then((rows) => {
      const chosen = rows.find(({ code }) => code === app.explained) || rows[0];
      return rows.map((one) => ({ ...one, chosen: one === chosen }));
    });
    const choose = (/** @type {Row} */ { code }) => app.explain(code);
    const complete = await showList(app, "complete", { answer, choose });
    const item = complete.rows.find(({ chosen }) => chosen)?.code;
    if (item === undefined || !explains) return [...parts, complete];
    const label = app.map.labels[item].slice(0, 60);
    const after = [button("Show this item", () => app.selectItem(item), { class: "plain" })];
    return [...parts, complete, showList(app, "explain", { after }, { basket, row, item, label })];
  },

  selection(app) {
    const { selection: items, map } = app;
    const { columns, noun } = map.header;
    const view = button("Select what is in view", () => app.setSelection(map.visible()));
    const tools = element("p", { class: "tools" }, view);
    if (!items.length) {
      return [note(`Press Lasso and draw around points to see what these ${noun}s share.`), tools];
    }
    const save = button("Export as CSV", () => exportSelection(app));
    tools.append(save, button("Clear", () => app.setSelection([])));
    const shares = columns.flatMap(({ key, title, names }) => (
      names ? showList(app, "shares", { title, answer: shareRows(items, map.arrays[key], names) }) : []));
    const answer = map.ask("share", { items, group: app.given.group });
    const lists = ["central", "near"].map((name) => (
      showList(app, name, { answer: answer.then((both) => both[name]) })));
    const size = `${items.length.toLocaleString("en")} ${noun}${items.length === 1 ? "" : "s"}`;
    return [tools, element("h2", {}, size), shares, lists];
  },

  model({ map: { header: { name, notes, card: { verdict, facts, history } } } }) {
    const lines = facts.flatMap(([term, fact]) => [element("dt", {}, term), element("dd", {}, fact)]);
    const line = element("polyline", { points: history?.points || "" });
    const curve = element("svg", { class: "curve", viewBox: "0 -2 300 66" }, line);
    return [
      element("h2", {}, name),
      verdict ? element("p", { class: "score" }, verdict) : [],
      element("dl", {}, ...lines),
      history ? element("section", {}, element("h3", {}, history.title), curve, note(history.caption)) : [],
      notes.map(note),
    ];
  },
};
