/** The explorer: one or two models, their maps, the panels and the state in the address. */

import { askPage, askServer } from "./answers.js";
import { button, byId, element, labelNode, note, refill, swatch } from "./dom.js";
import { loadPayload, openSurface } from "./load.js";
import { ModelView } from "./map.js";
import { showTab } from "./panels.js";
import { connectSearch } from "./search.js";
import { countItems, readState, writeState } from "./state.js";

/** @import { State, Surface } from "./types" */

const OF_ITEM = ["item", "analogy", "compare"];  // panels that are about the selected item
const DRAWN = ["map", "color", "solid", "theme"];  // parts of the state that maps show
const WHOLE = { "xaxis.autorange": true, "yaxis.autorange": true };
const DARK = matchMedia("(prefers-color-scheme: dark)");
const WIDE = 800;  // pixels; the legend would cover the map of a phone

/** One or two models, the panels of the first, and everything a person can do. */
export class Explorer {
  /** @type {number[]} */ selection = [];
  asked = 0;
  subject = "";  // of the panel; the same if only an amount changed, for example

  /** @param {ModelView[]} views @param {Surface} surface */
  constructor(views, surface) {
    const [map] = views;
    const { choices } = map.header;
    this.views = views;
    this.surface = surface;
    this.map = map;
    this.ask = map.ask;
    this.first = readState("", choices, map.find);
    this.state = readState(location.hash.slice(1), choices, map.find);
    map.limits = this.state.view;
    map.onSelect = (codes) => this.setSelection(codes);
    map.onView = (view) => {
      this.state.view = view;
      this.keepState();
    };
    for (const view of views) view.onClick = (code) => this.selectItem(code, view);
  }

  /** What is chosen, by the names that questions have for it. @returns {Record<string, any>} */
  get given() {
    const { header: { slices, prediction: { terms } }, entry: { space } } = this.map;
    const { basket, slice } = this.state;
    /** @type {Record<string, any>} */ const row = {};
    for (const { asked, columns: [name], center, choices = [] } of terms) {
      const text = this.state.row[name];
      const chosen = choices.find((choice) => String(choice) === text) ?? text;
      if (asked && text) row[name] = center === undefined ? chosen : Number(text);
    }
    if (slices && slice) row[slices.column] = slices.labels[Number(slice)];
    return {
      ...this.state,
      row,
      space,
      basket: countItems(basket),
      group: slice ? Number(slice) : undefined,
      column: slices?.column,
    };
  }

  /** Change the state and show what follows. @param {Partial<State>} changes */
  set(changes) {
    Object.assign(this.state, changes);
    if ("map" in changes) {
      this.state.view = null;
      for (const view of this.views) view.limits = null;
    }
    return DRAWN.some((name) => name in changes) ? this.draw() : this.showPanel();
  }

  /** @param {number} code in a view, of which the first one need not have the item */
  selectItem(code, view = this.map) {
    const label = view.labels[code];
    const item = view === this.map ? code : this.map.find(label);
    if (item < 0) return undefined;
    const { tab } = this.state;
    for (const one of this.views) one.reveal(one.find(label));
    return this.set({ item, tab: OF_ITEM.includes(tab) ? tab : this.first.tab });
  }

  /** @param {number} code */
  addToBasket(code) {
    if (this.map.header.prediction.refused) return undefined;
    return this.set({ tab: "basket", basket: [...this.state.basket, code] });
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
    const turn = ++this.asked;
    const { tab, item, slice } = this.state;
    this.showTabs();
    byId("slice").value = slice;
    this.keepState();
    const { nodes, lit } = await showTab(this);
    if (turn !== this.asked) return;
    const subject = `${tab} ${item} ${this.selection.length}`;
    const isSame = subject === this.subject;
    this.subject = subject;
    refill(byId("panel"), nodes, isSame);
    if (!isSame) byId("panel").scrollTop = 0;
    const label = item !== null && OF_ITEM.includes(tab) ? this.map.labels[item] : null;
    for (const view of this.views) {
      const marks = lit.filter((mark) => mark.view === view);
      view.light(marks, label === null ? -1 : view.find(label));
    }
    document.documentElement.dataset.turn = String(turn);
  }

  showTabs() {
    const { tab, basket } = this.state;
    const tabs = this.map.header.choices.tab.map(([key, title]) => button(
      key === "basket" && basket.length ? `${title} (${basket.length})` : title,
      () => this.set({ tab: key }),
      { role: "tab", id: `tab-${key}`, "aria-selected": key === tab, "aria-controls": "panel" },
    ));
    refill(byId("tabs"), tabs, true);
  }

  keepState() {
    try {
      history.replaceState(null, "", `#${writeState(this.state, this.first, this.map.labels)}`);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }

  /** Draw the maps, then the panel and what it lights on them. */
  async draw() {
    const { map, solid, theme } = this.state;
    const look = theme || (DARK.matches ? "dark" : "light");
    for (const one of [document, this.surface.document]) one.documentElement.dataset.theme = look;
    byId("theme").textContent = look === "dark" ? "Light" : "Dark";
    const isMade = map in this.map.arrays;
    byId("status").textContent = isMade ? "Drawing the map…" : "Making the map: this takes a minute…";
    try {
      for (const view of this.views) await view.show(this.state);
      byId("status").textContent = "";
    } catch (error) {
      byId("status").textContent = /** @type {Error} */ (error).message;
    }
    this.showLegend();
    byId("solid").hidden = this.map.dimensions < 3;
    byId("solid").setAttribute("aria-pressed", solid);
    for (const id of ["in", "out", "whole", "lasso"]) byId(id).disabled = !this.map.isFlat;
    return this.showPanel();
  }

  showLegend() {
    const { title, buckets } = this.map.coloring;
    const ordered = [...buckets].sort((a, b) => Number(a.isRest) - Number(b.isRest));
    const lines = ordered.map(({ name, color }) => element("li", {}, swatch(color), labelNode(name)));
    byId("legend").replaceChildren(element("summary", {}, title), element("ul", {}, ...lines));
  }

  connect() {
    const { header: { n, noun, slices, choices }, labels, arrays } = this.map;
    document.title = this.views.map((view) => view.header.name).join(" and ");
    byId("title").textContent = document.title;
    byId("legend").open = innerWidth > WIDE;
    byId("slice-name").textContent = slices?.column || "";
    byId("search").placeholder = `Search ${n.toLocaleString("en")} ${noun}s  ( / )`;
    connectSearch(byId("search"), byId("found"), labels, arrays.order, (code) => {
      byId("panel").focus();
      this.selectItem(code);
    });
    for (const part of ["map", "color", "slice"]) {
      const options = choices[part].map(([value, text]) => element("option", { value }, text));
      byId(part).replaceChildren(...options);
      byId(part).value = /** @type {any} */ (this.state)[part];
      byId(part).addEventListener("change", () => this.set({ [part]: byId(part).value }));
    }
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
    clear: () => {
      this.state.item = null;
      this.setSelection([], this.state.tab);
    },
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
