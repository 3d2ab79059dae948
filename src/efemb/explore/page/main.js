/** The explorer: one or two models, their maps, the panels and the state in the address. */

import { PageAnswers, ServerAnswers } from "./answers.js";
import { colorings, colorItems } from "./colors.js";
import { element, labelNode, note } from "./dom.js";
import { shortLabel } from "./labels.js";
import { MapView } from "./map.js";
import { modelPanel } from "./card.js";
import { analogyPanel, basketPanel, comparisonPanel, itemPanel, selectionPanel } from "./panels.js";
import { decodeBase64, gunzip, readPayload } from "./payload.js";
import { connectSearch } from "./search.js";
import { labelFinder, readState, writeState } from "./state.js";
import { openSurface } from "./surface.js";

/** @typedef {import("./payload.js").Payload} Payload */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** Codes, the most frequent first; in their own order without counts. @param {Payload} payload */
function labelOrder({ header, arrays }) {
  const order = Int32Array.from({ length: header.n }, (_, code) => code);
  const { counts } = arrays;
  return counts ? order.sort((a, b) => counts[b] - counts[a] || a - b) : order;
}

/** One model with its map. */
export class ModelView {
  /** @param {Payload} payload @param {any} answers @param {any} surface @param {import("./map.js").MapEvents} events */
  constructor(payload, answers, surface, events) {
    this.payload = payload;
    this.header = payload.header;
    this.arrays = payload.arrays;
    this.labels = payload.header.labels;
    this.order = labelOrder(payload);
    this.find = labelFinder(this.labels);
    /** @type {PageAnswers} */
    this.answers = answers;
    const cell = surface.document.createElement("div");
    cell.className = "map";
    surface.root.append(cell);
    this.map = new MapView(surface, cell, this.labels, this.order, events);
  }

  /** @param {string} name @param {string} way @param {any} theme @param {any} view */
  async showMap(name, way, theme, view) {
    const entry = this.header.maps.find((one) => one.array === name) || this.header.maps[0];
    const points = await this.answers.map(entry.array);
    await this.map.show(points, Math.round(points.length / this.header.n), colorItems(this.payload, way), theme, view);
  }
}

/** The first model, the panels and everything a person can do. */
export class Explorer extends ModelView {
  /** @param {Payload} payload @param {any} answers @param {any} surface */
  constructor(payload, answers, surface) {
    super(payload, answers, surface, {
      onClick: (code) => this.selectItem(code),
      onHover: (code, x, y) => this.hover(this, code, x, y),
      onSelect: (codes) => this.setSelection(codes),
      onView: (view) => { this.state.view = view; this.keepState(); },
    });
    this.surface = surface;
    this.mode = "pan";
    /** @type {number[]} */
    this.selection = [];
    this.explained = -1;
    /** @type {ModelView | null} */
    this.other = null;
    this.ways = colorings(payload);
    /** @type {import("./state.js").State} */
    this.state = {
      map: this.header.maps[0].array, color: Object.keys(this.ways)[0], item: null, tab: "item",
      basket: new Map(), row: {}, theme: "", view: null, factor: 1, solid: false, positive: [], negative: [],
      ...readState(location.hash.slice(1), this.labels),
    };
    if (!this.header.maps.some((entry) => entry.array === this.state.map)) this.state.map = this.header.maps[0].array;
    if (!this.ways[this.state.color]) this.state.color = Object.keys(this.ways)[0];
    this.asked = 0;
    this.subject = "";
    this.tip = surface.document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    surface.root.append(this.tip);
  }

  get article() {
    return `${/^[aeiou]/.test(this.header.noun) ? "an" : "a"} ${this.header.noun}`;
  }

  /** The vectors that are looked at. */
  space() {
    const entry = this.header.maps.find((one) => one.array === this.state.map);
    const spaces = this.header.spaces;
    return entry && spaces.includes(entry.space) ? entry.space : spaces[0];
  }

  keepState() {
    const address = `#${writeState(this.state, this.labels)}`;
    try {
      history.replaceState(null, "", address);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }

  // -- what a person does -----------------------------------------------------------------------

  /** @param {number} code */
  async selectItem(code) {
    this.state.item = code;
    if (!["item", "analogy", "compare"].includes(this.state.tab)) this.state.tab = this.other ? "compare" : "item";
    this.map.reveal(code);
    await this.showPanel();
  }

  /** @param {number} code */
  addToBasket(code) {
    this.state.tab = "basket";
    return this.setAmount(code, (this.state.basket.get(code) || 0) + 1);
  }

  /** @param {number} code @param {number} amount */
  setAmount(code, amount) {
    if (amount > 0) this.state.basket.set(code, amount);
    else this.state.basket.delete(code);
    return this.showPanel();
  }

  clearBasket() {
    this.state.basket.clear();
    return this.showPanel();
  }

  /** @param {string} name @param {string | number | undefined} value */
  setRow(name, value) {
    if (value === undefined) delete this.state.row[name];
    else this.state.row[name] = value;
    return this.showPanel();
  }

  /** @param {number} factor of the price of the selected item */
  setFactor(factor) {
    this.state.factor = factor;
    return this.showPanel();
  }

  /** @param {"positive" | "negative"} side @param {number[]} codes */
  setAnalogy(side, codes) {
    this.state[side] = codes;
    return this.showPanel();
  }

  /** @param {string} mode */
  setMode(mode) {
    this.mode = mode;
    this.map.mode = mode;
    byId("lasso").setAttribute("aria-pressed", String(mode === "lasso"));
    if (this.map.isFlat) this.surface.Plotly.relayout(this.map.plot, { dragmode: mode });
    return this.state.tab === "selection" ? this.showPanel() : Promise.resolve();
  }

  /** @param {number[]} codes */
  async setSelection(codes) {
    this.selection = codes;
    this.map.chosen = codes.length ? new Set(codes) : null;
    this.state.tab = "selection";
    this.setMode("pan");
    await Promise.all([this.map.redraw(), this.showPanel()]);
  }

  visible() {
    return this.map.visible();
  }

  /** @param {ModelView} view @param {number | null} code @param {number} x @param {number} y */
  hover(view, code, x, y) {
    this.tip.hidden = code === null;
    if (code === null) return;
    this.tip.replaceChildren(shortLabel(view.labels[code], 90) || "(blank)");
    const room = this.surface.root.clientWidth;
    const left = x - (this.surface.root === document.body ? 0 : this.surface.root.getBoundingClientRect().left);
    const top = y - this.surface.root.getBoundingClientRect().top;
    this.tip.style.left = `${Math.max(4, Math.min(left + 12, room - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${top + 14}px`;
  }

  /** @param {string} tab */
  openTab(tab) {
    this.state.tab = tab;
    return this.showPanel();
  }

  // -- what is shown ----------------------------------------------------------------------------

  tabs() {
    /** @type {Record<string, string>} */
    const tabs = this.other ? { compare: "Compare", item: "Item" } : { item: capital(this.header.noun) };
    if (this.header.noun === "word") tabs.analogy = "Analogy";
    if (!this.header.prediction.refused || !this.arrays["lists.pointers"]) {
      tabs.basket = this.header.prediction.text ? "Gap" : "Basket";
    }
    return { ...tabs, selection: "Selection", model: "Model" };
  }

  /** Fill the panel; of two questions in a row, the answer to the later one stays. */
  async showPanel() {
    const turn = ++this.asked;
    const tabs = this.tabs();
    if (!(this.state.tab in tabs)) this.state.tab = Object.keys(tabs)[0];
    this.showTabs(tabs);
    this.keepState();
    const { tab } = this.state;
    const { other } = this;
    /** @type {{ nodes: Node[], marks: import("./map.js").Mark[], others?: import("./map.js").Mark[] }} */
    let shown;
    if (tab === "compare" && other) shown = await comparisonPanel(this, other);
    else if (tab === "basket") shown = await basketPanel(this);
    else if (tab === "selection") shown = await selectionPanel(this);
    else if (tab === "analogy") shown = await analogyPanel(this);
    else if (tab === "model") shown = await modelPanel(this);
    else shown = await itemPanel(this);
    if (turn !== this.asked) return;
    byId("panel").replaceChildren(...shown.nodes);
    const subject = `${tab} ${this.state.item} ${this.selection.length}`;
    if (subject !== this.subject) byId("panel").scrollTop = 0;  // but not if only an amount changed
    this.subject = subject;
    const lit = ["item", "compare", "analogy"].includes(tab) ? this.state.item : null;
    this.map.light(shown.marks, lit);
    if (other) {
      const twin = lit === null ? -1 : other.find(this.labels[lit]);
      other.map.light(shown.others || [], twin < 0 ? null : twin);
      if (twin >= 0) other.map.reveal(twin);
    }
    document.documentElement.dataset.turn = String(turn);
  }

  /** @param {Record<string, string>} tabs */
  showTabs(tabs) {
    const size = this.state.basket.size;
    const text = (/** @type {string} */ key) => (key === "basket" && size ? `${tabs[key]} (${size})` : tabs[key]);
    byId("tabs").replaceChildren(...Object.keys(tabs).map((key) => element("button", {
      role: "tab", id: `tab-${key}`, "aria-selected": String(key === this.state.tab), "aria-controls": "panel",
      onclick: () => this.openTab(key),
    }, text(key))));
  }

  theme() {
    const style = getComputedStyle(document.documentElement);
    const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    return { ink: color("ink"), paper: color("paper"), soft: color("soft"), accent: color("accent") };
  }

  applyTheme() {
    const dark = this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    for (const root of [document.documentElement, this.surface.document.documentElement]) {
      root.dataset.theme = dark ? "dark" : "light";
    }
    byId("theme").textContent = dark ? "Light" : "Dark";
  }

  async drawMaps() {
    const { map, color, view, solid } = this.state;
    this.status(this.arrays[map] ? "Drawing the map…" : "Making the map; this may take a minute…");
    for (const one of [this, this.other]) {
      if (!one) continue;
      one.map.solid = solid;
      try {
        await one.showMap(map, color, this.theme(), one === this ? view : null);
      } catch (error) {
        this.status(String(error instanceof Error ? error.message : error));
        return;
      }
    }
    this.status("");
    this.showLegend();
    byId("solid").hidden = this.map.dimensions < 3;
    byId("solid").setAttribute("aria-pressed", String(solid));
  }

  showLegend() {
    const { title, buckets } = this.map.coloring;
    const shown = buckets.slice().sort((a, b) => Number(a.name === "other") - Number(b.name === "other"));
    const lines = shown.filter(({ name }) => name).map(({ name, color }) => (
      element("li", {}, element("i", { style: { background: color } }), labelNode(name, 38))));
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
    byId("legend").open = innerWidth > 800;  // it would cover the map of a phone
    byId("title").textContent = this.other ? `${this.header.name} and ${this.other.header.name}` : this.header.name;
    document.title = `${this.header.name} – efemb explorer`;
    byId("search").placeholder = `Search ${this.header.n.toLocaleString("en")} ${this.header.noun}s  ( / )`;
    connectSearch(byId("search"), byId("found"), this.labels, this.order, (code) => { byId("panel").focus(); this.selectItem(code); });
    this.fillSelect("map", this.header.maps.map((entry) => [entry.array, [entry.space, entry.title].filter(Boolean).join(" · ")]));
    this.fillSelect("color", Object.entries(this.ways));
    byId("theme").addEventListener("click", () => {
      this.state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      this.applyTheme();
      this.keepState();
      this.drawMaps().then(() => this.showPanel());
    });
    byId("lasso").addEventListener("click", () => this.setMode(this.mode === "lasso" ? "pan" : "lasso"));
    byId("whole").addEventListener("click", () => this.showWhole());
    byId("in").addEventListener("click", () => this.zoom(0.6));
    byId("out").addEventListener("click", () => this.zoom(1 / 0.6));
    byId("solid").addEventListener("click", () => { this.state.solid = !this.state.solid; this.drawMaps().then(() => this.showPanel()); });
    byId("help").addEventListener("click", () => byId("keys").showModal());
    for (const target of new Set([document, this.surface.document])) {
      target.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.press(event));
    }
    new ResizeObserver(() => { for (const one of [this, this.other]) one?.map.resize(); }).observe(byId("maps"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.applyTheme(); this.drawMaps(); });
    addEventListener("hashchange", () => location.reload());
  }

  /** @param {"map" | "color"} name @param {string[][]} options */
  fillSelect(name, options) {
    const select = byId(name);
    select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    select.value = this.state[name];
    select.addEventListener("change", () => {
      this.state[name] = select.value;
      if (name === "map") this.state.view = null;
      this.drawMaps().then(() => this.showPanel());
    });
  }

  /** @param {number} factor */
  zoom(factor) {
    for (const one of [this, this.other]) if (one?.map.isFlat) one.map.zoomBy(factor);
  }

  showWhole() {
    this.state.view = null;
    for (const one of [this, this.other]) if (one?.map.isFlat) one.map.zoomTo(one.map.wholeView());
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      "/": () => byId("search").focus(), "+": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      0: () => this.showWhole(), l: () => { this.setMode(this.mode === "lasso" ? "pan" : "lasso"); },
      v: () => { this.setSelection(this.visible()); }, d: () => byId("theme").click(), "?": () => byId("keys").showModal(),
      b: () => { if (this.state.item !== null && !this.header.prediction.refused) this.addToBasket(this.state.item); },
      Escape: () => { this.state.item = null; this.selection = []; this.map.chosen = null; this.map.redraw(); this.showPanel(); },
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/** @param {string} text */
function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** @param {number} number @param {boolean} served @returns {Promise<Payload>} */
async function loadPayload(number, served) {
  if (!served) return readPayload(await gunzip(decodeBase64((byId(`payload-${number}`)?.textContent || "").trim())));
  const response = await fetch(`api/payload/${number}`);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return readPayload(await response.arrayBuffer());
}

async function start() {
  const { served, models } = /** @type {Record<string, string>} */ (document.documentElement.dataset);
  const numbers = Array.from({ length: Number(models) }, (_, i) => i);
  const isServed = served === "true";
  const [surface, ...payloads] = await Promise.all(
    [openSurface(byId("maps"), isServed), ...numbers.map((number) => loadPayload(number, isServed))]);
  const answers = payloads.map((payload, i) => (isServed ? new ServerAnswers(payload, i) : new PageAnswers(payload)));
  const app = new Explorer(payloads[0], answers[0], surface);
  if (payloads[1]) {
    app.other = new ModelView(payloads[1], answers[1], surface, {
      onClick: (code) => { const twin = app.find(String(app.other?.labels[code])); if (twin >= 0) app.selectItem(twin); },
      onHover: (code, x, y) => { if (app.other) app.hover(app.other, code, x, y); },
      onSelect: () => {}, onView: () => {},
    });
  }
  if (app.other && !location.hash) app.state.tab = "compare";
  app.applyTheme();
  app.connect();
  await app.drawMaps();
  await app.showPanel();
  Object.assign(globalThis, { explorer: app });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  byId("panel").replaceChildren(note(`The explorer cannot start: ${error.message}`));
  byId("status").hidden = true;
  throw error;
});
