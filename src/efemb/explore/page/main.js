/** The explorer: one or two models, their maps, the panels and the state in the address. */

import { askPage, askServer } from "./answers.js";
import { button, element, labelNode, note, refill, swatch } from "./dom.js";
import { loadPayload, openSurface } from "./load.js";
import { ModelView } from "./map.js";
import { showTab } from "./panels.js";
import { connectSearch } from "./search.js";
import { readState, writeState } from "./state.js";

/** @import { State, Surface } from "./types" */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
const OF_ITEM = ["item", "analogy", "compare"];  // panels that are about the selected item
const DRAWN = ["map", "color", "solid", "theme"];  // parts of the state that maps show
const WHOLE = { "xaxis.autorange": true, "yaxis.autorange": true };
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** One or two models, the panels of the first, and everything a person can do. */
export class Explorer {
  /** @type {number[]} */ selection = [];
  explained = -1;
  asked = 0;
  subject = "";

  /** @param {ModelView[]} views @param {Surface} surface */
  constructor(views, surface) {
    const [map, other] = views;
    this.views = views;
    this.surface = surface;
    this.map = map;
    this.header = map.header;
    this.arrays = map.arrays;
    this.labels = map.labels;
    this.find = map.find;
    this.ask = map.ask;
    this.first = readState("", this.header.choices, this.find);
    this.state = readState(location.hash.slice(1), this.header.choices, this.find);
    map.limits = this.state.view;
    map.onClick = (code) => this.selectItem(code);
    map.onSelect = (codes) => this.setSelection(codes);
    map.onView = (view) => { this.state.view = view; this.keepState(); };
    if (other) other.onClick = (code) => this.selectLabel(other.labels[code]);
  }

  /** What is chosen, by the names that questions have for it. @returns {Record<string, any>} */
  get given() {
    const { slices, spaces, prediction } = this.header, { map, slice } = this.state;
    const space = map.split(".")[1], group = slice ? Number(slice) : undefined;
    /** @type {Record<string, any>} */ const row = {};
    for (const [name, text] of Object.entries(this.state.row).filter(([, one]) => one !== "")) {
      const { kind, choices } = prediction.terms.find(({ columns: [one] }) => one === name) || {};
      row[name] = kind === "number" ? Number(text) : choices?.find((one) => `${one}` === text) ?? text;
    }
    if (slices && slice) row[slices.column] = slices.labels[Number(slice)];
    const asked = spaces.includes(space) ? space : spaces[0];  // positions are no vectors
    return { ...this.state, row, group, column: slices?.column, space: asked };
  }

  /** Change the state and show what follows. @param {Partial<State>} changes */
  set(changes) {
    Object.assign(this.state, "map" in changes ? { view: null } : {}, changes);
    for (const view of "map" in changes ? this.views : []) view.limits = null;
    return DRAWN.some((name) => name in changes) ? this.draw() : this.showPanel();
  }

  /** @param {number} code */
  selectItem(code) {
    const { tab } = this.state;
    for (const view of this.views) view.reveal(view.find(this.labels[code]));
    return this.set({ item: code, tab: OF_ITEM.includes(tab) ? tab : this.first.tab });
  }

  /** Select an item by a label of either model, if the first one has it. @param {string} label */
  selectLabel(label) {
    if (this.find(label) >= 0) this.selectItem(this.find(label));
  }

  /** @param {number} code */
  addToBasket(code) {
    if (this.header.prediction.refused) return this.showPanel();
    this.state.tab = "basket";
    return this.setAmount(code, (new Map(this.state.basket).get(code) || 0) + 1);
  }

  /** @param {number} code @param {number} amount */
  setAmount(code, amount) {
    const basket = [...new Map(this.state.basket).set(code, amount)];
    return this.set({ basket: basket.filter((pair) => pair[1] > 0) });
  }

  toggleLasso(mode = this.map.mode === "lasso" ? "pan" : "lasso") {
    this.map.setMode(mode);
    byId("lasso").setAttribute("aria-pressed", mode === "lasso");
    return this.showPanel();
  }

  /** @param {number[]} codes */
  setSelection(codes, tab = "selection") {
    this.selection = codes;
    this.map.chosen = codes.length ? new Set(codes) : null;
    this.state.tab = tab;
    return Promise.all([this.map.redraw(), this.toggleLasso("pan")]);
  }

  /** Fill the panel; of two questions in a row, the answer to the later one stays. */
  async showPanel() {
    const turn = ++this.asked, { tab, item, basket, slice } = this.state;
    refill(byId("tabs"), this.header.choices.tab.map(([key, title]) => button(
      key === "basket" && basket.length ? `${title} (${basket.length})` : title,
      () => this.set({ tab: key }),
      { role: "tab", id: `tab-${key}`, "aria-selected": key === tab, "aria-controls": "panel" },
    )), true);
    byId("slice").value = slice;
    this.keepState();
    const { nodes, lit } = await showTab(this), subject = `${tab} ${item} ${this.selection.length}`;
    if (turn !== this.asked) return;
    refill(byId("panel"), nodes, subject === this.subject);
    if (subject !== this.subject) byId("panel").scrollTop = 0;  // but not if only an amount changed
    this.subject = subject;
    const label = item === null || !OF_ITEM.includes(tab) ? null : this.labels[item];
    for (const view of this.views) {
      view.light(lit.filter((mark) => mark.view === view), label === null ? -1 : view.find(label));
    }
    document.documentElement.dataset.turn = String(turn);
  }

  keepState() {
    try {
      history.replaceState(null, "", `#${writeState(this.state, this.first, this.labels)}`);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }

  /** Draw the maps, then the panel and what it lights on them. */
  async draw() {
    const { map, solid, theme = "" } = this.state, status = byId("status");
    const look = theme || (DARK.matches ? "dark" : "light");
    for (const one of [document, this.surface.document]) one.documentElement.dataset.theme = look;
    byId("theme").textContent = look === "dark" ? "Light" : "Dark";
    status.textContent = this.arrays[map] ? "Drawing the map…" : "Making the map: this takes a minute…";
    try {
      for (const view of this.views) await view.show(this.state);
      status.textContent = "";
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
    const { title, buckets } = this.map.coloring;
    const lines = [...buckets].sort((a, b) => Number(a.isRest) - Number(b.isRest))
      .map(({ name, color }) => element("li", {}, swatch(color), labelNode(name, 38)));
    byId("legend").replaceChildren(element("summary", {}, title), element("ul", {}, ...lines));
    byId("solid").hidden = this.map.dimensions < 3;
    byId("solid").setAttribute("aria-pressed", solid);
    return this.showPanel();
  }

  connect() {
    const { n, noun, slices, choices } = this.header;
    const name = this.views.map((view) => view.header.name).join(" and ");
    byId("legend").open = innerWidth > 800;  // it would cover the map of a phone
    byId("title").textContent = document.title = name;
    byId("search").placeholder = `Search ${n.toLocaleString("en")} ${noun}s  ( / )`;
    connectSearch(byId("search"), byId("found"), this.labels, this.arrays.order, (code) => {
      byId("panel").focus();
      this.selectItem(code);
    });
    for (const part of ["map", "color", "slice"]) {
      const options = choices[part].map(([value, text]) => element("option", { value }, text));
      byId(part).replaceChildren(...options);
      byId(part).value = /** @type {any} */ (this.state)[part];
      byId(part).addEventListener("change", () => this.set({ [part]: byId(part).value }));
    }
    byId("slice-name").textContent = slices?.column || "";
    for (const [id, action] of Object.entries(this.actions)) byId(id).addEventListener("click", action);
    for (const one of new Set([document, this.surface.document])) {
      one.addEventListener("keydown", (event) => this.press(event));
    }
    DARK.addEventListener("change", () => this.draw());
    addEventListener("hashchange", () => location.reload());
  }

  /** What the buttons of these names do. @type {Record<string, () => any>} */
  actions = {
    in: () => this.views.forEach((view) => view.zoomBy(0.6)),
    out: () => this.views.forEach((view) => view.zoomBy(1 / 0.6)),
    whole: () => this.views.forEach((view) => view.relayout(WHOLE)),
    lasso: () => this.toggleLasso(),
    solid: () => this.set({ solid: !this.state.solid }),
    theme: () => this.set({ theme: byId("theme").textContent.toLowerCase() }),
    help: () => byId("keys").showModal(),
    find: () => byId("search").focus(),
    see: () => this.setSelection(this.map.visible()),
    add: () => this.state.item !== null && this.addToBasket(this.state.item),
    clear: () => { this.state.item = null; this.setSelection([], this.state.tab); },
  };

  /** Buttons say which key presses them. @param {KeyboardEvent} event */
  press(event) {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const pressed = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(/** @type {HTMLElement} */ (target).tagName);
    if (!pressed || isTyping || ctrlKey || metaKey || altKey || byId("keys").open) return;
    event.preventDefault();
    this.actions[pressed.id]();
  }
}

async function start() {
  const { served, models } = document.documentElement.dataset, isServed = served === "true";
  const opening = openSurface(byId("maps"), isServed);  // first: it takes longest
  const loading = Array.from({ length: Number(models) }, (_, number) => loadPayload(number, isServed));
  const [surface, ...payloads] = await Promise.all([opening, ...loading]);
  const app = new Explorer(payloads.map((payload, number) => (
    new ModelView(payload, isServed ? askServer(number) : askPage(payload), surface))), surface);
  app.connect();
  await app.draw();
  Object.assign(globalThis, { explorer: app });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  byId("panel").replaceChildren(note(`The explorer cannot start: ${error.message}`));
  byId("status").textContent = "";
  throw error;
});
