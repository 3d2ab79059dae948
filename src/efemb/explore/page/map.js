/** A map: all items as points, drawn by plotly's WebGL, with labels where there is room. */

import { shortLabel } from "./dom.js";
import { Labels } from "./labels.js";

/** @import { Coloring, Floats, Frame, Interval, MapEvents, Mark, Surface, Theme, View } from "./types" */

/** An interval moved to a middle and scaled. @param {Interval} interval @param {number} middle @param {number} [factor] @returns {Interval} */
function around([low, high], middle, factor = 1) {
  const half = ((high - low) / 2) * factor;
  return [middle - half, middle + half];
}

/** @param {Interval} interval */
const middleOf = ([low, high]) => (low + high) / 2;

export class MapView {
  /** @type {Floats} */ points = new Float32Array();
  dimensions = 2;
  /** @type {Coloring} */ coloring = { title: "", buckets: [] };
  /** @type {Theme} */ theme = { ink: "", paper: "", soft: "" };
  /** @type {View} */ view = { x: [0, 1], y: [0, 1] };
  /** @type {Mark[]} */ marks = [];
  /** @type {number | null} */ selected = null;
  /** Items of the selection. @type {Set<number> | null} */ chosen = null;
  mode = "pan";
  solid = false;
  /** @type {boolean | null} */ wasFlat = null;
  drawn = Promise.resolve();

  /**
   * @param {Surface} surface @param {string[]} labels
   * @param {Int32Array} order codes, the first to be labeled first @param {MapEvents} events
   */
  constructor(surface, labels, order, events) {
    this.surface = surface;
    this.names = new Labels(labels, order);
    this.events = events;
    const make = (/** @type {string} */ tag) => /** @type {any} */ (surface.document.createElement(tag));
    this.element = make("div");
    this.plot = make("div");
    this.canvas = make("canvas");
    this.tip = make("div");
    this.element.className = "map";
    Object.assign(this.tip, { className: "tip", hidden: true });
    this.plot.style.cssText = "position:absolute;inset:0";
    this.canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%;pointer-events:none";
    this.element.append(this.plot, this.canvas, this.tip);
    surface.root.append(this.element);
  }

  /** @param {Floats} points @param {number} dimensions @param {Coloring} coloring @param {View | null} view */
  show(points, dimensions, coloring, view) {
    Object.assign(this, { points, dimensions, coloring });
    this.view = view || this.wholeView();
    return this.redraw();
  }

  get isFlat() {
    return this.dimensions === 2 || !this.solid;
  }

  redraw() {
    this.drawn = this.drawn.then(() => this.drawPlot());
    return this.drawn;
  }

  async drawPlot() {
    const { Plotly } = this.surface;
    const isNew = this.isFlat !== this.wasFlat;
    if (isNew) Plotly.purge(this.plot);  // flat and solid plots share nothing
    this.wasFlat = this.isFlat;
    const traces = this.isFlat ? this.pointTraces() : [...this.pointTraces(), ...this.solidMarks()];
    const config = {
      scrollZoom: true, displayModeBar: false, doubleClick: false, responsive: false,
      plotGlPixelRatio: globalThis.devicePixelRatio || 1,  // plotly's own 2 draws four times the pixels
    };
    await Plotly.react(this.plot, traces, this.layout(), config);
    if (isNew) this.listen();
    this.drawOverlay();
  }

  // -- coordinates ------------------------------------------------------------------------------

  /** @param {number} code @param {number} axis */
  at(code, axis) {
    return axis < this.dimensions ? this.points[code * this.dimensions + axis] : 0;
  }

  /** Smallest and largest coordinate. @param {number} axis @returns {Interval} */
  extent(axis) {
    let low = Infinity, high = -Infinity;
    for (let i = axis; i < this.points.length; i += this.dimensions) {
      if (this.points[i] < low) low = this.points[i];
      if (this.points[i] > high) high = this.points[i];
    }
    return [low, high];
  }

  /** Limits that show everything at one scale. @returns {View} */
  wholeView() {
    const pixels = [this.element.clientWidth || 1, this.element.clientHeight || 1];
    const extents = [this.extent(0), this.extent(1)];
    const unit = Math.max(...extents.map(([low, high], axis) => (Math.max(high - low, 1e-6) * 1.08) / pixels[axis]));
    const [x, y] = extents.map((extent, axis) => around([0, unit * pixels[axis]], middleOf(extent)));
    return { x, y };
  }

  /** Pixels of coordinates, for many points. @returns {Frame} */
  frame() {
    const { x, y } = this.view;
    const { clientWidth: width, clientHeight: height } = this.element;
    const scale = [width / (x[1] - x[0]), -height / (y[1] - y[0])];
    const shift = [-x[0] * scale[0], height - y[0] * scale[1]];
    return { width, height, scale, shift, points: this.points, dimensions: this.dimensions };
  }

  /** @param {number} code @returns {[number, number]} */
  pixel(code) {
    const { scale, shift } = this.frame();
    return [this.at(code, 0) * scale[0] + shift[0], this.at(code, 1) * scale[1] + shift[1]];
  }

  /** @param {number} code */
  isInView(code) {
    const { x, y } = this.view, [a, b] = [this.at(code, 0), this.at(code, 1)];
    return a >= x[0] && a <= x[1] && b >= y[0] && b <= y[1];
  }

  /** Codes of the items in view. */
  visible() {
    return Array.from(this.names.order).filter((code) => this.isInView(code)).sort((a, b) => a - b);
  }

  // -- traces -----------------------------------------------------------------------------------

  pointTraces() {
    const n = this.points.length / this.dimensions, flat = this.isFlat, { chosen } = this;
    const size = flat ? (n > 30000 ? 3 : n > 3000 ? 4.5 : n > 300 ? 7 : 10) : 3;
    const faint = !flat && this.selected !== null;  // else the others hide its neighbors
    return this.coloring.buckets.map(({ color, codes, isRest }) => ({
      type: flat ? "scattergl" : "scatter3d", mode: "markers", hoverinfo: "none",
      ...this.places(codes),
      marker: { color, size, opacity: faint ? 0.15 : isRest ? 0.6 : 0.8, line: { width: 0 } },
      ...(chosen && flat ? { selectedpoints: Array.from(codes.keys()).filter((i) => chosen.has(codes[i])) } : {}),
      ...(flat ? { selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.12 } } } : {}),
    }));
  }

  /** Coordinates of items as plotly takes them. @param {ArrayLike<number>} codes */
  places(codes) {
    return Object.fromEntries(["x", "y", "z"].slice(0, this.isFlat ? 2 : 3).map((name, axis) => {
      const values = new Float32Array(codes.length);
      for (let i = 0; i < codes.length; i++) values[i] = this.at(codes[i], axis);
      return [name, values];
    }));
  }

  /** Lit items of a solid map, which has no canvas above it. */
  solidMarks() {
    const common = { type: "scatter3d", hoverinfo: "none" }, shown = this.litItems();
    const lines = this.weightedMarks().map(({ code, color, share }) => (
      { ...common, mode: "lines", ...this.places([Number(this.selected), code]), line: { color, width: 1 + 6 * share } }));
    const marker = { size: lines.length ? 4 : 6, color: shown.map((mark) => mark.color), line: { width: 0 } };
    return [...lines, { ...common, mode: "markers", marker, ...this.places(shown.map((mark) => mark.code)) }];
  }

  /** @returns {Mark[]} the selected item is the last, above the others */
  litItems() {
    const weighted = this.weightedMarks();
    const marks = weighted.length ? weighted : this.marks;
    return this.selected === null ? marks : [...marks, { code: this.selected, color: this.theme.ink }];
  }

  /** Marks with a weight, and its size as a share of the largest; the strongest last, above others. */
  weightedMarks() {
    const weighted = this.selected === null ? [] : this.marks.filter((mark) => mark.weight !== undefined);
    const strongest = Math.max(...weighted.map(({ weight = 0 }) => Math.abs(weight)), 1e-12);
    return weighted.map((mark) => ({ ...mark, share: Math.abs(mark.weight || 0) / strongest })).sort((a, b) => a.share - b.share);
  }

  layout() {
    const bare = { visible: false, showgrid: false, zeroline: false };
    const common = {
      showlegend: false, margin: { l: 0, r: 0, t: 0, b: 0 }, hovermode: "closest", hoverdistance: 12,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: "keep",
      width: this.element.clientWidth, height: this.element.clientHeight,
    };
    if (this.isFlat) {
      return {
        ...common, dragmode: this.mode, selectdirection: "any", selections: [],
        newselection: { line: { color: this.theme.ink, width: 1.5, dash: "dot" } },
        xaxis: { ...bare, range: [...this.view.x], autorange: false },
        yaxis: { ...bare, range: [...this.view.y], autorange: false },
      };
    }
    const axis = { ...bare, visible: true, showticklabels: false, title: { text: "" }, color: this.theme.soft };
    // Sides of the box; plotly's own ones leave the window if an axis is short.
    const sides = [0, 1, 2].map((number) => this.extent(number)).map(([low, high]) => high - low);
    const [x, y, z] = sides.map((side) => Math.max((1.5 * side) / (Math.max(...sides) || 1), 0.05));
    return { ...common, scene: { xaxis: axis, yaxis: axis, zaxis: axis, aspectmode: "manual", aspectratio: { x, y, z } } };
  }

  // -- events -----------------------------------------------------------------------------------

  listen() {
    const codesOf = (/** @type {any} */ event) => (event?.points || []).map((/** @type {any} */ point) => (
      this.coloring.buckets[point.curveNumber]?.codes[point.pointNumber])).filter((/** @type {any} */ code) => code !== undefined);
    /** @type {Record<string, (event: any) => void>} */ const handlers = {
      click: (event) => { for (const code of codesOf(event).slice(0, 1)) this.events.onClick(code); },
      hover: (event) => this.showTip(codesOf(event)[0], event.event?.clientX || 0, event.event?.clientY || 0),
      unhover: () => this.showTip(undefined, 0, 0),
      selected: (event) => {
        if (!event?.points) return;
        this.clearOutline();
        this.showTip(undefined, 0, 0);
        this.events.onSelect(codesOf(event));
      },
      relayout: (change) => { this.follow(change); this.events.onView(this.view); },
      relayouting: (change) => this.follow(change),
    };
    for (const [name, handle] of Object.entries(handlers)) this.plot.on(`plotly_${name}`, handle);
  }

  /** The whole label of a point, beside the pointer. @param {number | undefined} code @param {number} x @param {number} y */
  showTip(code, x, y) {
    this.tip.hidden = code === undefined;
    if (code === undefined) return;
    this.tip.textContent = shortLabel(this.names.labels[code], 90);
    const { left, top, width } = this.element.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(x - left + 12, width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y - top + 14}px`;
  }

  /** plotly would keep the lasso as a shape that can be edited. */
  clearOutline() {
    this.surface.Plotly.relayout(this.plot, { selections: [], activeselection: {} });
    for (const line of this.plot.querySelectorAll(".select-outline, .outline-controllers")) line.remove();
  }

  /** @param {any} change of the axes */
  follow(change) {
    for (const axis of ["x", "y"]) {
      const [low, high] = change[`${axis}axis.range`] || [change[`${axis}axis.range[0]`], change[`${axis}axis.range[1]`]];
      if (low !== undefined) this.view = { ...this.view, [axis]: [low, high] };
    }
    requestAnimationFrame(() => this.drawOverlay());
  }

  /** @param {string} mode "pan" or "lasso" */
  setMode(mode) {
    this.mode = mode;
    if (this.isFlat) this.surface.Plotly.relayout(this.plot, { dragmode: mode });
  }

  /** @param {View} view */
  zoomTo(view) {
    if (!this.isFlat) return;
    this.view = view;
    this.surface.Plotly.relayout(this.plot, { "xaxis.range": [...view.x], "yaxis.range": [...view.y] });
  }

  /** Zoom about the middle, for keys and buttons. @param {number} factor */
  zoomBy(factor) {
    const { x, y } = this.view;
    this.zoomTo({ x: around(x, middleOf(x), factor), y: around(y, middleOf(y), factor) });
  }

  /** Bring an item into view. @param {number} code */
  reveal(code) {
    const { x, y } = this.view;
    if (!this.isInView(code)) this.zoomTo({ x: around(x, this.at(code, 0)), y: around(y, this.at(code, 1)) });
  }

  /** Keep the scale of the width. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.element, { x, y } = this.view;
    if (!width || !height) return;
    this.view = { x, y: around([0, ((x[1] - x[0]) / width) * height], middleOf(y)) };
    this.redraw();
  }

  /** Light items; a flat map shows them at once, since only the canvas above it is drawn. */
  /** @param {Mark[]} marks @param {number | null} selected */
  light(marks, selected) {
    Object.assign(this, { marks, selected });
    if (this.isFlat) this.drawOverlay();
    else this.redraw();
  }

  // -- the canvas above the points --------------------------------------------------------------

  /** Lines, rings and labels; labels of lit items first, then of the most frequent. */
  drawOverlay() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const ratio = globalThis.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const context = this.canvas.getContext("2d");
    if (!context || !this.isFlat) return;
    context.scale(ratio, ratio);
    this.drawMarks(context);
    const lit = this.marks.filter((mark) => mark.weight === undefined).map((mark) => mark.code);
    this.names.draw(context, this.frame(), this.theme, new Set(this.selected === null ? lit : [this.selected, ...lit]));
  }

  /** @param {CanvasRenderingContext2D} context */
  drawMarks(context) {
    for (const { code, color, share } of this.weightedMarks()) {
      context.beginPath();
      context.moveTo(...this.pixel(Number(this.selected)));
      context.lineTo(...this.pixel(code));
      Object.assign(context, { strokeStyle: color, globalAlpha: 0.35 + 0.6 * share, lineWidth: 0.5 + 3.5 * share });
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const { code, color, weight } of this.litItems()) {
      context.beginPath();
      context.arc(...this.pixel(code), code === this.selected ? 6.5 : weight === undefined ? 4.5 : 3, 0, 2 * Math.PI);
      // A ring of ink makes a mark differ from a point of the same color.
      Object.assign(context, weight === undefined ? { strokeStyle: this.theme.ink, lineWidth: 1.5 } : { strokeStyle: this.theme.paper, lineWidth: 0.5 });
      context.fillStyle = color;
      context.fill();
      context.stroke();
    }
  }
}
