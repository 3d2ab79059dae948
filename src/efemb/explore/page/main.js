/** The explorer: one or two models, their maps, the panel, and the address, which keeps what a person chose. */

import { askPage, askServer } from "./answers.js";
import { byId, element, labelNode, note, refill, swatch } from "./dom.js";
import { loadPayload, openSurface } from "./load.js";
import { ModelView } from "./map.js";
import { countItems, showTab } from "./panels.js";
import { connectSearch } from "./search.js";

/** @import { State, Surface } from "./types" */

const OF_ITEM = ["item", "analogy", "compare"];  // panels that are about the selected item
const DRAWN = ["map", "color", "theme"];  // what maps show
const WHOLE = { "xaxis.autorange": true, "yaxis.autorange": true };
const DARK = matchMedia("(prefers-color-scheme: dark)");
const WIDE = 800;  // pixels; the legend would cover the map of a phone

/** One or two models, the panels of the first, and everything a person can do. */
export class Explorer {
  address = new URLSearchParams(location.hash.slice(1));
  /** @type {number[]} */ selection = [];
  asked = 0;
  subject = "";  // of the panel; the same if only an amount changed, for example

  /** @param {ModelView[]} views @param {Surface} surface */
  constructor(views, surface) {
    const [map] = views;
    this.views = views;
    this.documents = new Set([document, surface.document]);
    this.map = map;
    this.ask = map.ask;
    map.limits = this.state.view;
    map.onSelect = (codes) => this.setSelection(codes);
    map.onView = (view) => this.keep({ view: view ? [...view.x, ...view.y].join() : "" });
    for (const view of views) view.onClick = (code) => this.selectItem(code, view);
  }

  /** Items that the address lists under a name. @returns {number[]} */
  codes(name) {
    return this.address.getAll(name).map(this.map.find).filter((code) => code >= 0);
  }

  /** What the address says, by the names that questions have for it, as far as it is right. @returns {State} */
  get state() {
    const { address, map: { header: { choices, maps, slices, prediction: { terms } } } } = this;
    const choose = (name) => (choices[name].find(([value]) => value === address.get(name)) || choices[name][0])[0];
    const [map, slice] = [choose("map"), choose("slice")];
    const [left, right, bottom, top] = (address.get("view") || "").split(",").map(Number);
    const factor = Number(address.get("factor"));
    /** @type {Record<string, any>} */ const row = {};
    for (const { asked, name, columns: [column], kind, choices: known = [] } of terms) {
      const text = address.get(name);
      const chosen = known.find((choice) => String(choice) === text) ?? text;
      if (asked && text) row[column] = kind === "number" ? Number(text) : chosen;
    }
    if (slices && slice) row[slices.column] = slices.labels[Number(slice)];
    return {
      map, slice, row, color: choose("color"), tab: choose("tab"), theme: choose("theme"),
      item: this.codes("item")[0] ?? null, explained: this.codes("explained")[0] ?? null,
      positive: this.codes("positive"), negative: this.codes("negative"), basket: countItems(this.codes("basket")),
      factor: factor > 0 && factor < 10 ? factor : 1,
      view: left < right && bottom < top ? { x: [left, right], y: [bottom, top] } : null,
      group: slice ? Number(slice) : undefined, column: slices?.column,
      space: maps.find(({ key }) => key === map)?.space,
    };
  }

  /** Put changes into the address, items by their labels. @param {Record<string, any>} changes */
  keep(changes) {
    for (const [name, value] of Object.entries(changes)) {
      this.address.delete(name);
      const parts = [value].flat().filter((part) => part !== "" && part !== null);
      for (const part of parts) this.address.append(name, typeof part === "number" ? this.map.labels[part] : part);
    }
    try {
      history.replaceState(null, "", `#${this.address}`);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }

  /** Change what is chosen, and show what follows. @param {Record<string, any>} changes */
  set(changes) {
    this.keep("map" in changes ? { ...changes, view: "" } : changes);
    if ("map" in changes) for (const view of this.views) view.limits = null;
    return DRAWN.some((name) => name in changes) ? this.draw() : this.showPanel();
  }

  /** @param {number} code in a view, of which the first one need not have the item */
  selectItem(code, view = this.map) {
    const label = view.labels[code];
    const item = this.map.find(label);
    if (item < 0) return undefined;
    for (const one of this.views) one.reveal(one.find(label));
    const { tab } = this.state;
    return this.set({ item, tab: OF_ITEM.includes(tab) ? tab : this.map.header.choices.tab[0][0] });
  }

  /** @param {number} code */
  addToBasket(code) {
    if (this.map.header.prediction.refused) return undefined;
    this.address.append("basket", this.map.labels[code]);
    return this.set({ tab: "basket" });
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
    this.keep({ tab });
    return Promise.all([this.map.redraw(), this.toggleLasso("pan")]);
  }

  /** Fill the panel; of two questions in a row, the answer to the later one stays. */
  async showPanel() {
    const turn = ++this.asked;
    const { state, map: { labels } } = this;
    this.showChoices(state);
    const { nodes, lit } = await showTab(this, state);
    if (turn !== this.asked) return;
    const subject = `${state.tab} ${state.item} ${this.selection.length}`;
    const isSame = subject === this.subject;
    this.subject = subject;
    refill(byId("panel"), nodes, isSame);
    if (!isSame) byId("panel").scrollTop = 0;
    const label = OF_ITEM.includes(state.tab) ? labels[state.item ?? -1] : undefined;
    for (const view of this.views) view.light(lit.filter((mark) => mark.view === view), view.find(label));
    document.documentElement.dataset.turn = String(turn);
  }

  /** The tabs, and what is chosen above the map. @param {State} state */
  showChoices({ tab, basket, map, color, slice }) {
    for (const one of byId("tabs").children) one.setAttribute("aria-selected", one.value === tab);
    byId("tab-basket")?.setAttribute("data-size", basket.length || "");
    for (const [id, value] of Object.entries({ map, color, slice })) byId(id).value = value;
  }

  /** Draw the maps, then the panel and what it lights on them. */
  async draw() {
    const { map, color, theme } = this.state;
    const look = theme || (DARK.matches ? "dark" : "light");
    for (const one of this.documents) one.documentElement.dataset.theme = look;
    byId("theme").textContent = look === "dark" ? "Light" : "Dark";
    const isMade = this.map.header.maps.some(({ key, array }) => key === map && array in this.map.arrays);
    byId("status").textContent = isMade ? "Drawing the map…" : "Making the map: this takes a minute…";
    try {
      for (const view of this.views) await view.show(map, color);
      byId("status").textContent = "";
    } catch (error) {
      byId("status").textContent = /** @type {Error} */ (error).message;
    }
    const { title, buckets } = this.map.coloring;
    const ordered = [...buckets].sort((a, b) => Number(a.isRest) - Number(b.isRest));
    const lines = ordered.map(({ name, color: shade }) => element("li", {}, swatch(shade), labelNode(name)));
    byId("legend").replaceChildren(element("summary", {}, title), element("ul", {}, ...lines));
    for (const id of ["in", "out", "whole", "lasso"]) byId(id).disabled = !this.map.isFlat;
    return this.showPanel();
  }

  connect() {
    const { labels, arrays } = this.map;
    byId("legend").open = innerWidth > WIDE;
    connectSearch(byId("search"), labels, arrays.order, (code) => {
      byId("panel").focus();
      this.selectItem(code);
    });
    // Whatever has a name is kept in the address: controls, and buttons of one of several values.
    const keep = (/** @type {any} */ { type, target: { name, value, type: kind } }) => {
      if (name && (type === "change" || kind === "button")) this.set({ [name]: value.trim() });
    };
    for (const type of ["change", "click"]) document.addEventListener(type, keep);
    for (const [id, action] of Object.entries(this.actions)) byId(id).addEventListener("click", action);
    for (const one of this.documents) one.addEventListener("keydown", (event) => this.press(event));
    DARK.addEventListener("change", () => this.draw());
    addEventListener("hashchange", () => location.reload());
  }

  /** What the buttons of these names do. @type {Record<string, () => any>} */
  actions = {
    in: () => this.views.forEach((view) => view.zoomBy(0.6)),
    out: () => this.views.forEach((view) => view.zoomBy(1 / 0.6)),
    whole: () => this.views.forEach((view) => view.relayout(WHOLE)),
    lasso: () => this.toggleLasso(),
    theme: () => this.set({ theme: byId("theme").textContent.toLowerCase() }),
    help: () => byId("keys").showModal(),
    find: () => byId("search").focus(),
    see: () => this.setSelection(this.map.visible()),
    add: () => this.state.item !== null && this.addToBasket(this.state.item),
    clear: () => {
      this.keep({ item: null });
      this.setSelection([], this.state.tab);
    },
  };

  /** Buttons say which key presses them. @param {KeyboardEvent} event */
  press(event) {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    /** @type {HTMLElement | null} */ const pressed = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(/** @type {HTMLElement} */ (target).tagName);
    if (!pressed || isTyping || ctrlKey || metaKey || altKey || byId("keys").open) return;
    event.preventDefault();
    pressed.click();
  }
}

async function start() {
  const { served, models } = document.documentElement.dataset;
  const isServed = served === "true";
  const opening = openSurface(byId("maps"), isServed);  // first: it takes longest
  const loading = Array.from({ length: Number(models) }, (_, number) => loadPayload(number, isServed));
  const [surface, ...payloads] = await Promise.all([opening, ...loading]);
  const views = payloads.map((payload, number) => (
    new ModelView(payload, isServed ? askServer(number) : askPage(payload), surface)));
  const explorer = new Explorer(views, surface);
  explorer.connect();
  await explorer.draw();
  Object.assign(globalThis, { explorer });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  byId("panel").replaceChildren(note(`The explorer cannot start: ${error.message}`));
  byId("status").textContent = "";
  throw error;
});
