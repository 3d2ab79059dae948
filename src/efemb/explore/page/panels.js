/** The panels beside the map: item, comparison, basket, analogy, selection and model. */

import { MARKS } from "./colors.js";
import { basketPanel } from "./basket.js";
import { barList, button, curve, downloadCsv, element, labelNode, note, percent, section, shortNumber } from "./dom.js";
import { addButton, answered, describeCount, describePair, itemLines, listing, refuse } from "./lists.js";

/**
 * @import { Line, Row, Shown, SliceEntry } from "./types"
 * @import { Explorer, ModelView } from "./main.js"
 */

// -- item ----------------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<Shown>} */
async function itemPanel(app) {
  const { item } = app.state, { relations, slices } = app.header, { counts } = app.arrays;
  if (item === null) {
    const rows = Array.from(app.order.slice(0, 8), (code) => ({ code, count: counts?.[code] ?? 0 }));
    const first = counts ? [section("Most frequent", barList(itemLines(app, app, rows, { value: "count", adds: true })))] : [];
    const moved = slices?.drift ? [await driftListing(app, slices)] : [];
    return {
      nodes: [note(`Click a point, or search for ${app.header.article} above.`), ...moved.map(({ node }) => node), ...first],
      marks: moved.flatMap(({ marks }) => marks),
    };
  }
  const space = app.space, body = { item, group: app.state.slice }, adds = true;
  const detail = (/** @type {Row} */ row) => describePair(app, row);
  const similar = listing(app, `Similar (cosine of ${space})`, app.ask("similar", { ...body, space }),
    { value: "similarity", color: app.header.neural ? undefined : MARKS.similar, detail, adds });
  const apart = relations.refused || relations.refused_substitutes;
  // All at once: a server answers them side by side. Marks are in this order, the later above the earlier.
  const lists = await Promise.all(app.header.neural ? [listing(app, "Weights of its neighbors", app.ask("weights", { item }), {
    value: "weight", color: (row) => (row.weight < 0 ? MARKS.negative : MARKS.positive), marked: Infinity, shown: 20,
    pick: (rows) => rows.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)),
  }), similar] : [similar,
    listing(app, "Complements (it makes them more likely)", relations.refused ? refuse(relations.refused) : app.ask("complements", body),
      { value: "score", color: MARKS.complement, detail, adds }),
    listing(app, "Substitutes (same contexts, not together)", apart ? refuse(apart) : app.ask("substitutes", body), {
      value: "score", color: MARKS.substitute, detail, adds, pick: (rows) => rows.filter((row) => row.kind !== "apart"),
      empty: "No item shares its contexts without coming together with it.",
    })]);
  const sections = lists.map(({ node }) => node);
  const legend = app.header.neural ? note("Blue: the neighbor raises the prediction; orange: it lowers it.")
    : relations.refused ? null : kindLegend(sections);
  if (slices?.in_order) sections.push(await timeSection(app, item, slices));
  return {
    nodes: [itemTitle(app, item), ...(legend ? [legend] : []), ...sections], marks: lists.flatMap(({ marks }) => marks),
  };
}

/** What the colors on the map mean; each leads to its list. @param {HTMLElement[]} sections */
function kindLegend(sections) {
  const kinds = [["similar", MARKS.similar], ["complements", MARKS.complement], ["substitutes", MARKS.substitute]];
  return element("p", { class: "legend" }, ...kinds.map(([name, color], i) => {
    const swatch = element("span", {}, element("i", { style: { background: color } }), name);
    return button(swatch, () => sections[i].scrollIntoView(), { title: `Go to ${name}` });
  }));
}

/** @param {Explorer} app @param {number} code */
function itemTitle(app, code) {
  const { header, arrays } = app;
  const facts = [
    header.groups?.names[arrays.groups?.[code]], arrays.counts && describeCount(app, arrays.counts[code]),
    arrays.r2 && `R² ${shortNumber(arrays.r2[code])}`, arrays.drift && `moved ${shortNumber(arrays.drift[code])}`,
    arrays.uncertainty && `relative error ${shortNumber(arrays.uncertainty[code])}`,
    arrays.topics?.[code] >= 0 && `topic: ${header.topics[arrays.topics[code]].slice(0, 80)}`,
  ];
  return element("header", { class: "title" },
    element("h2", {}, labelNode(app.labels[code], 120)), addButton(app, code),
    element("p", { class: "facts" }, facts.filter(Boolean).join(" · ")));
}

// -- time ----------------------------------------------------------------------------------------

/** An item in each slice of time: how similar it is to itself at first, and its nearest then. */
/** @param {Explorer} app @param {number} item @param {SliceEntry} slices */
function timeSection(app, item, { labels, column }) {
  const counts = app.arrays["slices.counts"], { slice } = app.state;
  return answered(`By ${column} (cosine with the first)`, app.ask("trajectory", { item }), (path) => (
    [barList(path.map((/** @type {any} */ { group, similarity, near }) => ({
      label: String(labels[group]), value: similarity, chosen: group === slice,
      detail: [`near ${near.map((/** @type {Row} */ row) => app.labels[row.code].slice(0, 40)).join(", ")}`,
        counts && describeCount(app, counts[group * app.header.n + item])].filter(Boolean).join(" · "),
      choose: () => app.setSlice(group === slice ? undefined : group),
    })))]));
}

/** The items that moved most. @param {Explorer} app @param {SliceEntry} slices */
function driftListing(app, { labels, drift = [] }) {
  const tested = drift[0]?.ratio !== undefined;
  return listing(app, `Moved most from ${labels[0]} to ${labels[labels.length - 1]}`, Promise.resolve(drift), {
    value: tested ? "ratio" : "distance", color: MARKS.changed, shown: 10,
    detail: (row) => (tested ? `distance ${shortNumber(row.distance)} · q-value ${shortNumber(row.q_value)}`
      : describeCount(app, app.arrays.counts?.[row.code])),
  });
}

// -- two models ----------------------------------------------------------------------------------

/** Neighbors of an item in two models. @param {Explorer} app @returns {Promise<Shown>} */
async function comparisonPanel(app) {
  const { item } = app.state, other = /** @type {ModelView} */ (app.other);
  if (item === null) return { nodes: [note("Click an item to compare its neighbors in the two models.")], marks: [] };
  const twin = other.find(app.labels[item]);
  if (twin < 0) return { nodes: [itemTitle(app, item), note("The other model does not have this item.")], marks: [] };
  /** @type {[ModelView, number][]} */ const sides = [[app, item], [other, twin]];
  /** @type {Row[][]} */
  const answers = await Promise.all(sides.map(([view, code]) => view.ask("similar", { item: code, space: "rho" })));
  const names = answers.map((rows, i) => new Set(rows.map((row) => sides[i][0].labels[row.code])));
  const same = answers[0].filter((row) => names[1].has(app.labels[row.code])).length;
  const lists = await Promise.all(sides.map(([view], i) => {
    const isNew = (/** @type {Row} */ row) => !names[1 - i].has(view.labels[row.code]);
    return listing(app, `Similar in ${view.header.name}`, Promise.resolve(answers[i]), {
      value: "similarity", lit: isNew, marked: Infinity, color: (row) => (isNew(row) ? MARKS.changed : MARKS.similar),
      choose: (code) => app.selectLabel(view.labels[code]),
    }, view);
  }));
  const summary = note(`${same} of ${answers[0].length} neighbors are the same; the others are marked.`);
  return { nodes: [itemTitle(app, item), summary, ...lists.map(({ node }) => node)], marks: lists[0].marks, others: lists[1].marks };
}

// -- selection -----------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<Shown>} */
async function selectionPanel(app) {
  const { selection: items, header, arrays } = app, { groups, noun } = header;
  const tools = element("p", { class: "tools" },
    button("Draw a lasso", () => app.toggleLasso(), { "aria-pressed": String(app.map.mode === "lasso") }),
    button("Select what is in view", () => app.setSelection(app.map.visible())));
  if (!items.length) return { nodes: [tools, note(`Draw a lasso around points to see what these ${noun}s share.`)], marks: [] };
  tools.append(button("Export as CSV", () => exportSelection(app)), button("Clear", () => app.setSelection([])));
  const nodes = [tools, element("h2", {}, `${items.length.toLocaleString("en")} ${noun}${items.length === 1 ? "" : "s"}`)];
  if (groups) nodes.push(section(groups.title, barList(shareLines(items, arrays.groups, groups.names))));
  if (arrays.topics) nodes.push(section("Topics", barList(shareLines(items, arrays.topics, header.topics))));
  const shared = app.ask("share", { items, group: app.state.slice });
  const how = { value: "similarity", detail: (/** @type {Row} */ row) => describePair(app, row), adds: true };
  const lists = await Promise.all([
    listing(app, "In the middle", shared.then(({ central }) => central), how),
    listing(app, "Nearest outside", shared.then(({ near }) => near), how)]);
  return { nodes: [...nodes, ...lists.map(({ node }) => node)], marks: [] };
}

/** Categories of a selection beside their share of everything. */
/** @param {number[]} items @param {ArrayLike<number>} values @param {string[]} names @returns {Line[]} */
function shareLines(items, values, names) {
  const inside = new Array(names.length).fill(0), everywhere = new Array(names.length).fill(0);
  for (const item of items) inside[values[item]]++;
  for (let i = 0; i < values.length; i++) everywhere[values[i]]++;
  const order = [...names.keys()].filter((i) => inside[i]).sort((a, b) => inside[b] - inside[a]).slice(0, 6);
  return order.map((i) => {
    const value = inside[i] / items.length, lift = value / (everywhere[i] / values.length);
    return { label: names[i], value, text: percent(value), detail: `${shortNumber(lift)} times their share of everything` };
  });
}

/** @param {Explorer} app */
function exportSelection({ header, arrays, map, labels, selection }) {
  const { groups, topics } = header;
  /** @type {[string, unknown, (code: number) => string | number][]} */ const columns = [
    ["label", true, (code) => labels[code]],
    ["count", arrays.counts, (code) => arrays.counts[code]],
    [groups?.title ?? "", groups, (code) => groups?.names[arrays.groups[code]] ?? ""],
    ["topic", arrays.topics, (code) => topics[arrays.topics[code]] ?? ""],
    ["r2", arrays.r2, (code) => arrays.r2[code]],
    ["x", true, (code) => map.at(code, 0)],
    ["y", true, (code) => map.at(code, 1)],
  ];
  const known = columns.filter(([, exists]) => exists);
  downloadCsv("selection.csv", [known.map(([name]) => name), ...selection.map((code) => known.map(([, , value]) => value(code)))]);
}

// -- words ---------------------------------------------------------------------------------------

/** @param {Explorer} app @returns {Promise<Shown>} */
async function analogyPanel(app) {
  const { positive, negative, item } = app.state;
  /** @param {"positive" | "negative"} side @param {string} title */
  const chips = (side, title) => section(title, element("ul", { class: "chips" }, ...app.state[side].map((code) => (
    element("li", {}, labelNode(app.labels[code], 30),
      button("×", () => app.set({ [side]: app.state[side].filter((one) => one !== code) }), { "aria-label": "Remove" }))))));
  /** @param {"positive" | "negative"} side @param {string} text @param {number} code */
  const put = (side, text, code) => button(element("span", {}, text, labelNode(app.labels[code], 20)),
    () => app.set({ [side]: [...new Set([...app.state[side], code])] }));
  const nodes = [
    note("Near all of the first, far from the second: king and woman without man."),
    item === null ? note("Search for a word first.")
      : element("p", { class: "tools" }, put("positive", "with ", item), put("negative", "without ", item)),
    chips("positive", "With"), chips("negative", "Without"),
  ];
  if (!positive.length) return { nodes, marks: [] };
  const list = await listing(app, "Answer", app.ask("analogy", { positive, negative, group: app.state.slice }), { value: "similarity", color: MARKS.similar });
  return { nodes: [...nodes, list.node], marks: [...[...positive, ...negative].map((code) => ({ code, color: MARKS.member })), ...list.marks] };
}

// -- the card of a model -------------------------------------------------------------------------

/** What the model is, how its training went, and how it does on held-out data. @param {Explorer} app @returns {Promise<Shown>} */
async function modelPanel({ header }) {
  const { name, notes, card: { verdict, facts, history } } = header;
  return {
    nodes: [
      element("h2", {}, name),
      ...(verdict ? [section("Held-out data", element("p", { class: "score" }, verdict))] : []),
      section("What it is", element("dl", {}, ...facts.flatMap(([term, fact]) => [
        element("dt", {}, term), element("dd", {}, fact.slice(0, 300))]))),
      ...(history.values ? [section(`Training: ${history.name} by pass`, curve(history.values))] : []),
      ...notes.map(note),
    ],
    marks: [],
  };
}

/** Panels by the name of their tab. @type {Record<string, (app: Explorer) => Promise<Shown>>} */
export const PANELS = {
  compare: comparisonPanel, item: itemPanel, analogy: analogyPanel, basket: basketPanel,
  selection: selectionPanel, model: modelPanel,
};
