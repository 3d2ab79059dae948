/** The explorer: one or two models, their maps, the panels and the state in the address. */

import { askPage, askServer } from "./answers.js";
import { button, element, labelNode, note, refill, swatch } from "./dom.js";
import { loadPayload, openSurface } from "./load.js";
import { MapView } from "./map.js";
import { showTab } from "./panels.js";
import { connectSearch } from "./search.js";
import { readState, writeState } from "./state.js";

/** @import { Ask, MapEvents, Payload, State, Surface } from "./types" */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
const OF_ITEM = ["item", "analogy", "compare"];  // panels that are about the selected item
const DRAWN = ["map", "color", "solid", "theme"];  // parts of the state that maps show

/** One model with its map. */
export class ModelView {
  /** @param {Payload} payload @param {Ask} ask @param {Surface} surface @param {MapEvents} events */
  constructor({ header, arrays }, ask, surface, events) {
    this.header = header;
    this.arrays = arrays;
    this.labels = header.labels;
    this.ask = ask;
    /** @type {Map<string, number>} */ const codes = new Map();
    for (let code = header.n - 1; code >= 0; code--) codes.set(this.labels[code], code);
    this.find = (/** @type {string} */ label) => codes.get(label) ?? -1;
    this.map = new MapView({ header, arrays }, surface, events);
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
    const { choices } = this.header;
    this.first = readState("", choices, this.find);
    this.state = readState(location.hash.slice(1), choices, this.find);
    this.map.limits = this.state.view;
  }

  /** @returns {ModelView[]} */
  get views() {
    return this.other ? [this, this.other] : [this];
  }

  /** What is chosen, by the names that questions have for it. @returns {Record<string, any>} */
  get given() {
    const { slices, maps, spaces, prediction } = this.header, { map, slice } = this.state;
    const space = maps.find(({ array }) => array === map)?.space || "";
    /** @type {Record<string, any>} */ const row = {};
    for (const [name, text] of Object.entries(this.state.row).filter(([, one]) => one !== "")) {
      const { kind, choices = [] } = prediction.terms.find(({ columns }) => columns[0] === name) || {};
      row[name] = kind === "number" ? Number(text) : choices.find((one) => String(one) === text) ?? text;
    }
    if (slices && slice) row[slices.column] = slices.labels[Number(slice)];
    return {
      ...this.state, row, group: slice ? Number(slice) : undefined, column: slices?.column,
      space: spaces.includes(space) ? space : spaces[0],
    };
  }

  /** Change the state and show what follows. @param {Partial<State>} changes */
  set(changes) {
    if ("map" in changes) this.state.view = null;
    for (const { map } of "map" in changes ? this.views : []) map.limits = null;
    Object.assign(this.state, changes);
    return DRAWN.some((name) => name in changes) ? this.draw() : this.showPanel();
  }

  /** @param {number} code */
  selectItem(code) {
    const { tab } = this.state;
    this.map.reveal(code);
    return this.set({ item: code, tab: OF_ITEM.includes(tab) ? tab : this.header.choices.tab[0][0] });
  }

  /** Select an item by a label of either model, if this one has it. @param {string} label */
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
      key === "basket" && basket.length ? `${title} (${basket.length})` : title, () => this.set({ tab: key }),
      { role: "tab", id: `tab-${key}`, "aria-selected": key === tab, "aria-controls": "panel" })), true);
    byId("slice").value = slice;
    this.keepState();
    const { nodes, lit } = await showTab(this), subject = `${tab} ${item} ${this.selection.length}`;
    if (turn !== this.asked) return;
    refill(byId("panel"), nodes, subject === this.subject);
    if (subject !== this.subject) byId("panel").scrollTop = 0;  // but not if only an amount changed
    this.subject = subject;
    for (const view of this.views) {
      const selected = item === null || !OF_ITEM.includes(tab) ? -1 : view.find(this.labels[item]);
      view.map.light(lit.filter((mark) => mark.view === view), selected < 0 ? null : selected);
      if (view !== this && selected >= 0) view.map.reveal(selected);
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
    const { map, solid } = this.state, status = byId("status");
    const theme = this.state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    for (const one of [document, this.surface.document]) one.documentElement.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
    const style = getComputedStyle(document.documentElement);
    const colors = ["ink", "paper", "soft"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
    status.textContent = this.arrays[map] ? "Drawing the map…" : "Making the map: this takes a minute…";
    try {
      for (const view of this.views) {
        view.map.theme = Object.fromEntries(colors);
        await view.map.show(this.state, ({ space, method }) => view.ask("map", { space, method }));
      }
      status.textContent = "";
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
    const { title, buckets } = this.map.coloring, legend = byId("legend");
    const lines = [...buckets.filter(({ isRest }) => !isRest), ...buckets.filter(({ isRest }) => isRest)]
      .map(({ name, color }) => element("li", {}, swatch(color), labelNode(name, 38)));
    legend.replaceChildren(element("summary", {}, title), element("ul", {}, ...lines));
    legend.hidden = !title;
    byId("solid").hidden = this.map.dimensions < 3;
    byId("solid").setAttribute("aria-pressed", solid);
    return this.showPanel();
  }

  connect() {
    const { n, noun, slices, choices } = this.header;
    const name = this.views.map((view) => view.header.name).join(" and ");
    byId("legend").open = innerWidth > 800;  // it would cover the map of a phone
    byId("title").textContent = name;
    document.title = `${name} – efemb explorer`;
    byId("search").placeholder = `Search ${n.toLocaleString("en")} ${noun}s  ( / )`;
    connectSearch(byId("search"), byId("found"), this.labels, this.arrays.order, (code) => {
      byId("panel").focus();
      this.selectItem(code);
    });
    for (const part of ["map", "color", "slice"]) {
      byId(part).replaceChildren(...choices[part].map(([value, text]) => element("option", { value }, text)));
      byId(part).value = /** @type {any} */ (this.state)[part];
      byId(part).addEventListener("change", () => this.set({ [part]: byId(part).value }));
    }
    byId("slices").hidden = !slices;
    byId("slice-name").textContent = slices?.column || "";
    for (const [id, action] of Object.entries(this.actions)) byId(id).addEventListener("click", action);
    for (const one of new Set([document, this.surface.document])) one.addEventListener("keydown", this.press);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.views.forEach(({ map }) => map.resize())).observe(byId("maps"));
    addEventListener("hashchange", () => location.reload());
  }

  /** What the buttons of these names do. @type {Record<string, () => any>} */
  actions = {
    in: () => this.views.forEach(({ map }) => map.zoomBy(0.6)),
    out: () => this.views.forEach(({ map }) => map.zoomBy(1 / 0.6)),
    whole: () => this.views.forEach(({ map }) => map.showAll()),
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
  press = (event) => {
    const pressed = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(/** @type {HTMLElement} */ (event.target).tagName);
    if (!pressed || isTyping || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    event.preventDefault();
    this.actions[pressed.id]();
  };
}

async function start() {
  const { served, models } = document.documentElement.dataset, isServed = served === "true";
  const opening = openSurface(byId("maps"), isServed);  // first: it takes longest
  const loading = Array.from({ length: Number(models) }, (_, number) => loadPayload(number, isServed));
  const [surface, ...payloads] = await Promise.all([opening, ...loading]);
  const asks = payloads.map((payload, number) => (isServed ? askServer(number) : askPage(payload)));
  const app = new Explorer(payloads[0], asks[0], surface);
  if (payloads[1]) {
    const other = app.other = new ModelView(payloads[1], asks[1], surface, {
      onClick: (code) => app.selectLabel(other.labels[code]), onSelect: () => {}, onView: () => {},
    });
  }
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
