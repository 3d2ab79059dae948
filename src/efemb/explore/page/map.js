/** A map: all items as points, drawn by plotly's WebGL, with labels where there is room. */

import { HUES } from "./colors.js";
import { Labels } from "./labels.js";

/**
 * @typedef {import("./colors.js").Coloring} Coloring
 * @typedef {{ Plotly: any, document: Document }} Surface where plotly runs
 * @typedef {{ code: number, color: string, weight?: number }} Mark an item that is lit
 * @typedef {{ x: [number, number], y: [number, number] }} View
 * @typedef {{ onClick: (code: number) => void, onHover: (code: number | null, x: number, y: number) => void,
 *   onSelect: (codes: number[]) => void, onView: (view: View) => void }} MapEvents
 * @typedef {{ ink: string, paper: string, soft: string, accent: string }} Theme
 */

const CONFIG = { scrollZoom: true, displayModeBar: false, doubleClick: false, responsive: false };

export class MapView {
  /**
   * @param {Surface} surface @param {HTMLElement} element @param {string[]} labels
   * @param {Int32Array} order codes, the first to be labeled first @param {MapEvents} events
   */
  constructor(surface, element, labels, order, events) {
    this.surface = surface;
    this.element = element;
    this.names = new Labels(labels, order);
    this.events = events;
    this.plot = surface.document.createElement("div");
    this.canvas = surface.document.createElement("canvas");
    this.plot.style.cssText = "position:absolute;inset:0";
    this.canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%;pointer-events:none";
    element.append(this.plot, this.canvas);
    /** @type {Float32Array} */
    this.points = new Float32Array();
    this.dimensions = 2;
    /** @type {Coloring} */
    this.coloring = { title: "", buckets: [] };
    /** @type {Mark[]} */
    this.marks = [];
    /** @type {number | null} */
    this.selected = null;
    this.mode = "pan";
    this.solid = false;
    /** @type {boolean | null} */
    this.wasFlat = null;
    /** @type {Theme | null} */
    this.theme = null;
    /** @type {Set<number> | null} */
    this.chosen = null;
    /** @type {View} */
    this.view = { x: [0, 1], y: [0, 1] };
    this.drawn = Promise.resolve();
  }

  /** @param {ArrayLike<number>} points @param {number} dimensions @param {Coloring} coloring @param {Theme} theme @param {View | null} view */
  show(points, dimensions, coloring, theme, view) {
    this.points = /** @type {Float32Array} */ (points);
    this.dimensions = dimensions;
    this.coloring = coloring;
    this.theme = theme;
    this.view = view || this.wholeView();
    return this.redraw();
  }

  /** Limits that show everything at one scale. @returns {View} */
  wholeView() {
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let i = 0; i < this.points.length; i += this.dimensions) {
      for (const axis of [0, 1]) {
        const value = this.points[i + axis];
        if (value < low[axis]) low[axis] = value;
        if (value > high[axis]) high[axis] = value;
      }
    }
    const middle = low.map((value, axis) => (value + high[axis]) / 2);
    const { clientWidth: width, clientHeight: height } = this.element;
    const sides = low.map((value, axis) => Math.max(high[axis] - value, 1e-6) * 1.08);
    const unit = Math.max(sides[0] / Math.max(width, 1), sides[1] / Math.max(height, 1));
    const half = [(unit * Math.max(width, 1)) / 2, (unit * Math.max(height, 1)) / 2];
    const limits = (/** @type {number} */ axis) => /** @type {[number, number]} */ (
      [middle[axis] - half[axis], middle[axis] + half[axis]]);
    return { x: limits(0), y: limits(1) };
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
    if (this.isFlat !== this.wasFlat) Plotly.purge(this.plot);  // flat and solid plots share nothing
    const isNew = this.isFlat !== this.wasFlat;
    this.wasFlat = this.isFlat;
    const traces = this.isFlat ? this.pointTraces() : [...this.pointTraces(), ...this.solidMarks()];
    await Plotly.react(this.plot, traces, this.layout(), CONFIG);
    if (isNew) this.listen();
    this.drawOverlay();
  }

  /** @param {number} code @param {number} axis */
  at(code, axis) {
    return axis < this.dimensions ? this.points[code * this.dimensions + axis] : 0;
  }

  pointTraces() {
    const n = this.points.length / this.dimensions, flat = this.isFlat;
    const size = flat ? (n > 30000 ? 3 : n > 3000 ? 4.5 : n > 300 ? 7 : 10) : 3;
    const chosen = this.chosen;
    const faint = !flat && this.selected !== null;  // else the others hide its neighbors
    return this.coloring.buckets.map(({ color, codes, name }) => ({
      type: flat ? "scattergl" : "scatter3d", mode: "markers", hoverinfo: "none",
      x: Float32Array.from(codes, (code) => this.at(code, 0)),
      y: Float32Array.from(codes, (code) => this.at(code, 1)),
      ...(flat ? {} : { z: Float32Array.from(codes, (code) => this.at(code, 2)) }),
      marker: { color, size, opacity: faint ? 0.15 : name === "other" ? 0.45 : 0.8, line: { width: 0 } },
      ...(chosen && flat ? { selectedpoints: Array.from(codes.keys()).filter((i) => chosen.has(codes[i])) } : {}),
      ...(flat ? { selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.12 } } } : {}),
    }));
  }

  /** Lit items of a solid map, which has no canvas above it. */
  solidMarks() {
    const shown = this.litItems();
    const place = (/** @type {number[]} */ codes) => Object.fromEntries(["x", "y", "z"].map((name, axis) => (
      [name, codes.map((code) => this.at(code, axis))])));
    /** @type {any[]} */
    const traces = this.weightedMarks().map((mark) => ({
      type: "scatter3d", mode: "lines", hoverinfo: "none", ...place([Number(this.selected), mark.code]),
      line: { color: mark.color, width: 1 + 6 * mark.share },
    }));
    if (!shown.length) return traces;
    const marker = { size: this.marks.some((mark) => mark.weight !== undefined) ? 4 : 6, color: shown.map((mark) => mark.color), line: { width: 0 } };
    return [...traces, { type: "scatter3d", mode: "markers", hoverinfo: "none", marker, ...place(shown.map((mark) => mark.code)) }];
  }

  /** @returns {Mark[]} the selected item is the last, above the others */
  litItems() {
    const weighted = this.weightedMarks();
    const marks = weighted.length ? weighted : this.marks;
    return this.selected === null ? marks
      : [...marks, { code: this.selected, color: this.theme?.ink || "#000" }];
  }

  /** Marks with a weight, and its size as a share of the largest. */
  weightedMarks() {
    if (this.selected === null) return [];
    const weighted = this.marks.filter((mark) => mark.weight !== undefined);
    const strongest = Math.max(...weighted.map((mark) => Math.abs(mark.weight || 0)), 1e-12);
    // The strongest are drawn last, above others at the same place of the plane.
    return weighted.map((mark) => ({ ...mark, share: Math.abs(mark.weight || 0) / strongest }))
      .sort((a, b) => a.share - b.share);
  }

  layout() {
    const bare = { visible: false, showgrid: false, zeroline: false };
    const common = {
      showlegend: false, margin: { l: 0, r: 0, t: 0, b: 0 }, hovermode: "closest", hoverdistance: 12,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: "keep",
      width: this.element.clientWidth, height: this.element.clientHeight,
    };
    if (!this.isFlat) {
      const axis = { ...bare, visible: true, showticklabels: false, title: { text: "" }, color: this.theme?.soft };
      return { ...common, scene: { xaxis: axis, yaxis: axis, zaxis: axis, aspectmode: "manual", aspectratio: this.proportions() } };
    }
    return {
      ...common, dragmode: this.mode, selectdirection: "any",
      newselection: { line: { color: this.theme?.ink, width: 1.5, dash: "dot" } },
      xaxis: { ...bare, range: [...this.view.x], autorange: false },
      yaxis: { ...bare, range: [...this.view.y], autorange: false },
      selections: [],
    };
  }

  /** Sides of the box of a solid map; plotly's own ones leave the window if an axis is short. */
  proportions() {
    const sides = [0, 1, 2].map((axis) => {
      let low = Infinity, high = -Infinity;
      for (let i = axis; i < this.points.length; i += this.dimensions) {
        low = Math.min(low, this.points[i]);
        high = Math.max(high, this.points[i]);
      }
      return high - low;
    });
    const largest = Math.max(...sides) || 1;
    const [x, y, z] = sides.map((side) => Math.max((1.5 * side) / largest, 0.05));
    return { x, y, z };
  }

  listen() {
    const plot = /** @type {any} */ (this.plot);
    const codeOf = (/** @type {any} */ event) => {
      const point = event?.points?.find((/** @type {any} */ one) => one.curveNumber < this.coloring.buckets.length);
      return point ? this.coloring.buckets[point.curveNumber].codes[point.pointNumber] : null;
    };
    plot.on("plotly_click", (/** @type {any} */ event) => {
      const code = codeOf(event);
      if (code !== null) this.events.onClick(code);
    });
    plot.on("plotly_hover", (/** @type {any} */ event) => {
      this.events.onHover(codeOf(event), event.event?.clientX || 0, event.event?.clientY || 0);
    });
    plot.on("plotly_unhover", () => this.events.onHover(null, 0, 0));
    plot.on("plotly_selected", (/** @type {any} */ event) => {
      if (!event?.points) return;
      const codes = event.points.map((/** @type {any} */ point) => (
        this.coloring.buckets[point.curveNumber]?.codes[point.pointNumber]));
      this.clearOutline();
      this.events.onHover(null, 0, 0);
      this.events.onSelect(codes.filter((/** @type {any} */ code) => code !== undefined));
    });
    for (const name of ["plotly_relayout", "plotly_relayouting"]) {
      plot.on(name, (/** @type {any} */ change) => this.follow(change, name === "plotly_relayout"));
    }
  }

  /** plotly would keep the lasso as a shape that can be edited. */
  clearOutline() {
    this.surface.Plotly.relayout(this.plot, { selections: [], activeselection: {} });
    for (const line of this.plot.querySelectorAll(".select-outline, .outline-controllers")) line.remove();
  }

  /** @param {any} change @param {boolean} settled */
  follow(change, settled) {
    for (const axis of /** @type {("x" | "y")[]} */ (["x", "y"])) {
      const range = change[`${axis}axis.range`];
      const low = range ? range[0] : change[`${axis}axis.range[0]`];
      const high = range ? range[1] : change[`${axis}axis.range[1]`];
      if (low !== undefined) this.view = { ...this.view, [axis]: [low, high] };
    }
    requestAnimationFrame(() => this.drawOverlay());
    if (settled) this.events.onView(this.view);
  }

  /** @param {View} view */
  zoomTo(view) {
    this.view = view;
    return this.surface.Plotly.relayout(this.plot, { "xaxis.range": [...view.x], "yaxis.range": [...view.y] });
  }

  /** Zoom about the middle, for keys and buttons. @param {number} factor */
  zoomBy(factor) {
    const scaled = ([low, high] = [0, 1]) => /** @type {[number, number]} */ (
      [(low + high) / 2 - ((high - low) / 2) * factor, (low + high) / 2 + ((high - low) / 2) * factor]);
    return this.zoomTo({ x: scaled(this.view.x), y: scaled(this.view.y) });
  }

  /** Bring an item into view. @param {number} code */
  reveal(code) {
    if (!this.isFlat) return;
    const point = [0, 1].map((axis) => this.points[code * this.dimensions + axis]);
    const { x, y } = this.view;
    if (point[0] > x[0] && point[0] < x[1] && point[1] > y[0] && point[1] < y[1]) return;
    const moved = ([low, high] = [0, 1], middle = 0) => /** @type {[number, number]} */ (
      [middle - (high - low) / 2, middle + (high - low) / 2]);
    this.zoomTo({ x: moved(x, point[0]), y: moved(y, point[1]) });
  }

  /** Codes of the items in view. */
  visible() {
    const { x, y } = this.view;
    const codes = [];
    for (let code = 0, i = 0; i < this.points.length; code++, i += this.dimensions) {
      const inside = this.points[i] >= x[0] && this.points[i] <= x[1];
      if (inside && this.points[i + 1] >= y[0] && this.points[i + 1] <= y[1]) codes.push(code);
    }
    return codes;
  }

  resize() {
    const middle = ([low, high] = [0, 1]) => (low + high) / 2;
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return Promise.resolve();
    const unit = (this.view.x[1] - this.view.x[0]) / width;  // keep the scale of the width
    const half = (unit * height) / 2;
    this.view = { x: this.view.x, y: [middle(this.view.y) - half, middle(this.view.y) + half] };
    return this.redraw();
  }

  /** Light items; a flat map shows them at once, since only the canvas above it is drawn. */
  /** @param {Mark[]} marks @param {number | null} selected */
  light(marks, selected) {
    this.marks = marks;
    this.selected = selected;
    if (this.isFlat) this.drawOverlay();
    else this.redraw();
  }

  /** Pixels of coordinates, for many points. @returns {import("./labels.js").Frame} */
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

  /** Lines, rings and labels; labels of lit items first, then of the most frequent. */
  drawOverlay() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const ratio = globalThis.devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    if (!context || !this.isFlat || !this.theme) return;
    context.scale(ratio, ratio);
    this.drawMarks(context);
    const weighted = this.marks.some((mark) => mark.weight !== undefined);
    const lit = (weighted ? [] : this.marks).map((mark) => mark.code);
    const first = this.selected === null ? lit : [this.selected, ...lit];
    this.names.draw(context, this.frame(), this.theme, new Set(first));
  }

  /** @param {CanvasRenderingContext2D} context */
  drawMarks(context) {
    const start = this.selected === null ? null : this.pixel(this.selected);
    for (const mark of this.weightedMarks()) {
      if (!start) break;
      context.beginPath();
      context.moveTo(...start);
      context.lineTo(...this.pixel(mark.code));
      context.strokeStyle = mark.color;
      context.globalAlpha = 0.35 + 0.6 * mark.share;
      context.lineWidth = 0.5 + 3.5 * mark.share;
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const mark of this.litItems()) {
      context.beginPath();
      const size = mark.code === this.selected ? 6.5 : mark.weight === undefined ? 4.5 : 3;
      context.arc(...this.pixel(mark.code), size, 0, 2 * Math.PI);
      context.fillStyle = mark.color;
      context.fill();
      context.lineWidth = mark.weight === undefined ? 1.5 : 0.5;
      context.strokeStyle = this.theme?.paper || "#fff";
      context.stroke();
    }
  }
}

/** Colors of marks by what they are. */
export const MARKS = {
  similar: HUES[0], complement: HUES[2], substitute: HUES[5], member: HUES[3],
  positive: HUES[0], negative: HUES[5], changed: HUES[1],
};
