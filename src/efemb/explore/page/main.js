/** The explorer: one or two models, their maps, the panels and the state in the address. */

import { askPage, askServer } from "./answers.js";
import { colorItems } from "./colors.js";
import { element, labelNode, note, refill } from "./dom.js";
import { reason } from "./lists.js";
import { MapView } from "./map.js";
import { PANELS } from "./panels.js";
import { readPayload, unpack } from "./payload.js";
import { connectSearch } from "./search.js";
import { labelFinder, readState, writeState } from "./state.js";
import { openSurface } from "./surface.js";

/** @import { Ask, MapEvents, Payload, State, Surface, View } from "./types" */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
/** Panels that are about the selected item. */
const OF_ITEM = ["item", "analogy", "compare"];
const KEYS = new Map(Object.entries({
  "/": "find", "+": "in", "-": "out", 0: "whole", l: "lasso", v: "see", d: "theme", "?": "help", b: "add", Escape: "clear",
}));

/** One model with its map. */
export class ModelView {
  /** @param {Payload} payload @param {Ask} ask @param {Surface} surface @param {MapEvents} events */
  constructor(payload, ask, surface, events) {
    this.payload = payload;
    this.header = payload.header;
    this.arrays = payload.arrays;
    this.labels = payload.header.labels;
    this.find = labelFinder(this.labels);
    this.ask = ask;
    const { counts } = payload.arrays, order = Int32Array.from(this.labels.keys());
    this.order = counts ? order.sort((a, b) => counts[b] - counts[a] || a - b) : order;  // the most frequent first
    this.map = new MapView(surface, this.labels, this.order, events);
  }

  /** @param {State} state @param {View | null} view */
  async showMap({ map, color, solid }, view) {
    const { array, space, method } = this.header.maps.find((entry) => entry.array === map) || this.header.maps[0];
    this.arrays[array] ||= Float32Array.from(await this.ask("map", { space, method }));
    const points = /** @type {Float32Array} */ (this.arrays[array]);
    this.map.solid = solid;
    await this.map.show(points, Math.round(points.length / this.header.n), colorItems(this.payload, color), view);
  }
}

/** The first model, the panels and everything a person can do. */
export class Explorer extends ModelView {
  /** @type {ModelView | null} */ other = null;
  /** @type {number[]} */ selection = [];
  explained = -1;
  asked = 0;
  subject = "";

  /** @param {Payload} payload @param {Ask} ask @param {Surface} surface */
  constructor(payload, ask, surface) {
    super(payload, ask, surface, {
      onClick: (code) => this.selectItem(code), onSelect: (codes) => this.setSelection(codes),
      onView: (view) => { this.state.view = view; this.keepState(); },
    });
    this.surface = surface;
    const { maps, slices, colorings } = this.header;
    /** @type {State} */
    this.first = {
      map: maps[0].array, color: colorings[0].key, item: null, tab: "item", basket: [], slice: undefined, row: {},
      theme: "", view: null, factor: 1, solid: false, positive: [], negative: [],
    };
    this.state = { ...this.first, ...readState(location.hash.slice(1), this.find) };
    if (!maps.some((entry) => entry.array === this.state.map)) this.state.map = this.first.map;
    if (!colorings.some((entry) => entry.key === this.state.color)) this.state.color = this.first.color;
    if (!((this.state.slice ?? 0) < (slices?.labels.length ?? 0))) this.state.slice = undefined;
  }

  /** The vectors that are looked at. */
  get space() {
    const { maps, spaces } = this.header, space = maps.find(({ array }) => array === this.state.map)?.space || "";
    return spaces.includes(space) ? space : spaces[0];
  }

  /** Values of row columns, that of the slice among them. @returns {State["row"]} */
  get row() {
    const { slices } = this.header, { row, slice } = this.state;
    return slices && slice !== undefined ? { ...row, [slices.column]: slices.labels[slice] } : row;
  }

  /** @returns {ModelView[]} */
  get views() {
    return this.other ? [this, this.other] : [this];
  }

  // -- what a person does -----------------------------------------------------------------------

  /** Change the state and show what follows. @param {Partial<State>} changes */
  set(changes) {
    Object.assign(this.state, changes);
    return this.showPanel();
  }

  /** @param {number} code */
  selectItem(code) {
    const { tab } = this.state;
    this.map.reveal(code);
    return this.set({ item: code, tab: OF_ITEM.includes(tab) ? tab : this.other ? "compare" : "item" });
  }

  /** Select an item by a label of either model, if this one has it. @param {string} label */
  selectLabel(label) {
    if (this.find(label) >= 0) this.selectItem(this.find(label));
  }

  /** @param {number} code */
  addToBasket(code) {
    this.state.tab = "basket";
    return this.setAmount(code, (new Map(this.state.basket).get(code) || 0) + 1);
  }

  /** @param {number} code @param {number} amount */
  setAmount(code, amount) {
    return this.set({ basket: [...new Map(this.state.basket).set(code, amount)].filter((pair) => pair[1] > 0) });
  }

  /** @param {string} name @param {string | number | undefined} value */
  setRow(name, value) {
    const { [name]: _, ...row } = this.state.row;
    return this.set({ row: value === undefined ? row : { ...row, [name]: value } });
  }

  /** @param {number | undefined} slice */
  setSlice(slice) {
    byId("slice").value = slice ?? "";
    return this.set({ slice });
  }

  toggleLasso(mode = this.map.mode === "lasso" ? "pan" : "lasso") {
    this.map.setMode(mode);
    byId("lasso").setAttribute("aria-pressed", String(mode === "lasso"));
    return this.state.tab === "selection" ? this.showPanel() : Promise.resolve();
  }

  /** @param {number[]} codes */
  setSelection(codes, tab = "selection") {
    this.selection = codes;
    this.map.chosen = codes.length ? new Set(codes) : null;
    this.state.tab = tab;
    return Promise.all([this.map.redraw(), this.toggleLasso("pan")]);
  }

  // -- what is shown ----------------------------------------------------------------------------

  /** Fill the panel; of two questions in a row, the answer to the later one stays. */
  async showPanel() {
    const turn = ++this.asked, tabs = Object.entries({ ...(this.other && { compare: "Compare" }), ...this.header.tabs });
    if (!tabs.some(([key]) => key === this.state.tab)) this.state.tab = tabs[0][0];
    const { tab, item, basket } = this.state;
    refill(byId("tabs"), tabs.map(([key, title]) => element("button", {
      role: "tab", id: `tab-${key}`, "aria-selected": String(key === tab), "aria-controls": "panel",
      onclick: () => this.set({ tab: key }),
    }, key === "basket" && basket.length ? `${title} (${basket.length})` : title)));
    this.keepState();
    const shown = await PANELS[tab](this);
    if (turn !== this.asked) return;
    const subject = `${tab} ${item} ${this.selection.length}`;
    refill(byId("panel"), shown.nodes, subject === this.subject);
    if (subject !== this.subject) byId("panel").scrollTop = 0;  // but not if only an amount changed
    this.subject = subject;
    const lit = OF_ITEM.includes(tab) ? item : null;
    this.map.light(shown.marks, lit);
    const twin = lit === null || !this.other ? -1 : this.other.find(this.labels[lit]);
    this.other?.map.light(shown.others || [], twin < 0 ? null : twin);
    if (twin >= 0) this.other?.map.reveal(twin);
    document.documentElement.dataset.turn = String(turn);
  }

  keepState() {
    try {
      history.replaceState(null, "", `#${writeState(this.state, this.first, this.labels)}`);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }

  applyTheme() {
    const dark = this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    for (const { documentElement } of [document, this.surface.document]) documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").textContent = dark ? "Light" : "Dark";
    const style = getComputedStyle(document.documentElement);
    const [ink, paper, soft] = ["ink", "paper", "soft"].map((name) => style.getPropertyValue(`--${name}`).trim());
    for (const { map } of this.views) map.theme = { ink, paper, soft };
    return this.draw();
  }

  /** Draw the maps, then the panel and what it lights on them. */
  async draw() {
    const { map, solid, view } = this.state;
    this.status(this.arrays[map] ? "Drawing the map…" : "Making the map; this may take a minute…");
    try {
      for (const one of this.views) await one.showMap(this.state, one === this ? view : null);
      this.status("");
    } catch (error) {
      this.status(reason(error));
    }
    this.showLegend();
    byId("solid").hidden = this.map.dimensions < 3;
    byId("solid").setAttribute("aria-pressed", String(solid));
    return this.showPanel();
  }

  showLegend() {
    const { title, buckets } = this.map.coloring;
    const shown = buckets.slice().sort((a, b) => Number(a.isRest) - Number(b.isRest)).filter(({ name }) => name);
    const lines = shown.map(({ name, color }) => element("li", {}, element("i", { style: { background: color } }), labelNode(name, 38)));
    byId("legend").replaceChildren(element("summary", {}, title), element("ul", {}, ...lines));
    byId("legend").hidden = !lines.length;
  }

  /** @param {string} text */
  status(text) {
    byId("status").textContent = text;
    byId("status").hidden = !text;
  }

  // -- connections ------------------------------------------------------------------------------

  connect() {
    const { name, n, noun, maps, slices, colorings } = this.header;
    byId("legend").open = innerWidth > 800;  // it would cover the map of a phone
    byId("title").textContent = this.views.map((view) => view.header.name).join(" and ");
    document.title = `${name} – efemb explorer`;
    byId("search").placeholder = `Search ${n.toLocaleString("en")} ${noun}s  ( / )`;
    connectSearch(byId("search"), byId("found"), this.labels, this.order, (code) => { byId("panel").focus(); this.selectItem(code); });
    this.fillSelect("map", maps.map((entry) => [entry.array, [entry.space, entry.title].filter(Boolean).join(" · ")]), (map) => {
      Object.assign(this.state, { map, view: null });
      this.draw();
    });
    this.fillSelect("color", colorings.map((entry) => [entry.key, entry.name]), (color) => { this.state.color = color; this.draw(); });
    byId("slices").hidden = !slices;
    byId("slice-name").textContent = slices?.column || "";
    this.fillSelect("slice", [["", "all"], ...(slices?.labels || []).map((label, i) => [String(i), String(label)])],
      (value) => this.setSlice(value === "" ? undefined : Number(value)));
    for (const [id, action] of Object.entries(this.actions)) byId(id)?.addEventListener("click", action);
    for (const target of new Set([document, this.surface.document])) target.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => { for (const view of this.views) view.map.resize(); }).observe(byId("maps"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme());
    addEventListener("hashchange", () => location.reload());
  }

  /** @param {"map" | "color" | "slice"} name @param {string[][]} options @param {(value: string) => void} choose */
  fillSelect(name, options, choose) {
    const select = byId(name);
    select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    select.value = this.state[name] ?? "";
    select.addEventListener("change", () => choose(select.value));
  }

  /** What buttons of that name do, and keys. @type {Record<string, () => void>} */
  actions = {
    in: () => { for (const { map } of this.views) map.zoomBy(0.6); },
    out: () => { for (const { map } of this.views) map.zoomBy(1 / 0.6); },
    whole: () => { for (const { map } of this.views) map.zoomTo(map.wholeView()); this.state.view = null; this.keepState(); },
    lasso: () => { this.toggleLasso(); },
    solid: () => { this.state.solid = !this.state.solid; this.draw(); },
    theme: () => { this.state.theme = byId("theme").textContent.toLowerCase(); this.applyTheme(); },
    help: () => byId("keys").showModal(),
    find: () => byId("search").focus(),
    see: () => { this.setSelection(this.map.visible()); },
    add: () => { if (this.state.item !== null && !this.header.prediction.refused) this.addToBasket(this.state.item); },
    clear: () => { this.setSelection([], this.state.tab); this.set({ item: null }); },
  };

  /** @param {KeyboardEvent} event */
  press(event) {
    const { tagName } = /** @type {HTMLElement} */ (event.target), action = KEYS.get(event.key);
    if (!action || /^(INPUT|SELECT|TEXTAREA)$/.test(tagName) || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    event.preventDefault();
    this.actions[action]();
  }
}

/** @param {number} number @param {boolean} served @returns {Promise<Payload>} */
async function loadPayload(number, served) {
  if (!served) return readPayload(await unpack(`payload-${number}`));
  const response = await fetch(`api/payload/${number}`);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return readPayload(await response.arrayBuffer());
}

async function start() {
  const { served, models } = /** @type {Record<string, string>} */ (document.documentElement.dataset);
  const isServed = served === "true";
  const opening = openSurface(byId("maps"), isServed);  // first: it takes longest
  const loading = Array.from({ length: Number(models) }, (_, number) => loadPayload(number, isServed));
  const [surface, ...payloads] = await Promise.all([opening, ...loading]);
  const asks = payloads.map((payload, number) => (isServed ? askServer(number) : askPage(payload)));
  const app = new Explorer(payloads[0], asks[0], surface);
  if (payloads[1]) {
    const other = app.other = new ModelView(payloads[1], asks[1], surface, {
      onClick: (code) => app.selectLabel(other.labels[code]), onSelect: () => {}, onView: () => {},
    });
    app.first.tab = "compare";
    if (!location.hash) app.state.tab = "compare";
  }
  app.connect();
  await app.applyTheme();
  Object.assign(globalThis, { explorer: app });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  byId("panel").replaceChildren(note(`The explorer cannot start: ${error.message}`));
  byId("status").hidden = true;
  throw error;
});
