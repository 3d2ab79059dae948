/** A map: all items as points, drawn by plotly's WebGL; lit items and labels are on a canvas above them. */

import { shortLabel } from "./dom.js";

/** @import { Bucket, MapEvents, Mark, Payload, State, Surface, View } from "./types" */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LABEL_WIDTH = 170, LINE = 18, GAP = 18, LETTERS = 26;
const TRIED = 4000;  // items that are offered room for a label
const HIDDEN = { visible: false, showgrid: false, zeroline: false };

export class MapView {
  dimensions = 2;
  solid = false;
  mode = "pan";
  theme = { ink: "", paper: "", soft: "" };
  /** @type {{ title: string, buckets: Bucket[] }} */ coloring = { title: "", buckets: [] };
  /** Limits that were zoomed to, null for everything. @type {View | null} */ limits = null;
  /** What is lit, the most important last. @type {Mark[]} */ marks = [];
  /** @type {number | null} */ selected = null;
  /** Items of the selection. @type {Set<number> | null} */ chosen = null;
  /** @type {boolean | null} */ wasFlat = null;
  drawn = Promise.resolve();
  /** Short labels. @type {string[]} */ texts = [];
  /** Their widths. @type {number[]} */ sizes = [];

  /** @param {Payload} payload @param {Surface} surface @param {MapEvents} events */
  constructor({ header, arrays }, surface, events) {
    /** @returns {any} */ const make = (tag, className) => (
      Object.assign(surface.document.createElement(tag), { className }));
    this.header = header;
    this.arrays = arrays;
    this.points = arrays.order;
    this.entry = header.maps[0];
    this.surface = surface;
    this.events = events;
    this.element = make("div", "map");
    this.plot = make("div", "plot");
    this.canvas = make("canvas", "over");
    this.tip = make("div", "tip");
    this.showTip();
    this.element.append(this.plot, this.canvas, this.tip);
    surface.root.append(this.element);
  }

  /** @param {State} state @param {(entry: any) => Promise<number[]>} make what the payload lacks */
  async show({ map, color, solid }, make) {
    const { maps, colorings, n } = this.header, { arrays } = this;
    this.entry = maps.find(({ array }) => array === map) || maps[0];
    this.points = arrays[this.entry.array] ||= Float32Array.from(await make(this.entry));
    const { key, title, buckets } = colorings.find((one) => one.key === color) || colorings[0];
    /** @type {Bucket[]} */ const filled = buckets.map(([name, shade], i) => (
      { name, color: shade, isRest: i === 0, codes: [] }));
    arrays[`color.${key}`].forEach((place, code) => { filled[place].codes.push(code); });
    this.coloring = { title, buckets: filled.filter(({ codes }) => codes.length) };
    this.dimensions = this.points.length / n;
    this.solid = solid;
    await this.redraw();
  }

  get isFlat() {
    return this.dimensions === 2 || !this.solid;
  }

  /** Draw everything, after what is being drawn. */
  redraw() {
    this.drawn = this.drawn.then(async () => {
      const { Plotly } = this.surface, isNew = this.isFlat !== this.wasFlat;
      if (isNew) Plotly.purge(this.plot);  // flat and solid plots share nothing
      this.wasFlat = this.isFlat;
      await Plotly.react(this.plot, [...this.pointTraces(), ...this.solidMarks()], this.layout(), {
        scrollZoom: true, displayModeBar: false, doubleClick: false, responsive: false,
        plotGlPixelRatio: devicePixelRatio || 1,  // plotly's own 2 draws four times the pixels
      });
      if (isNew) this.listen();
      this.drawOverlay();
    });
    return this.drawn;
  }

  /** @param {number} code @param {number} axis */
  at(code, axis) {
    return this.points[code * this.dimensions + axis];
  }

  /** What is in the window. @returns {View} */
  get view() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    return { x: xaxis.range.slice(), y: yaxis.range.slice() };
  }

  /** A function from codes to pixels. @returns {(code: number) => [number, number]} */
  pixels() {
    const { view: { x, y }, element: { clientWidth: width, clientHeight: height } } = this;
    const [across, up] = [width / (x[1] - x[0]), height / (y[1] - y[0])];
    return (code) => [(this.at(code, 0) - x[0]) * across, height - (this.at(code, 1) - y[0]) * up];
  }

  /** Those of some items that are in view. @param {number[]} codes */
  visible(codes = [...this.header.labels.keys()]) {
    const { view: { x, y } } = this, isIn = ([low, high], value) => value >= low && value <= high;
    return codes.filter((code) => isIn(x, this.at(code, 0)) && isIn(y, this.at(code, 1)));
  }

  pointTraces() {
    const { isFlat, chosen, header: { n } } = this;
    const faint = !isFlat && this.selected !== null;  // else the others hide its neighbors
    const size = isFlat ? (n > 30000 ? 3 : n > 3000 ? 4.5 : n > 300 ? 7 : 10) : 3;
    return this.coloring.buckets.map(({ color, codes, isRest }) => ({
      type: isFlat ? "scattergl" : "scatter3d", mode: "markers", hoverinfo: "none", ...this.places(codes),
      marker: { color, size, opacity: faint ? 0.15 : isRest ? 0.6 : 0.8, line: { width: 0 } },
      ...(isFlat && {
        selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.12 } },
        selectedpoints: chosen && [...codes.keys()].filter((i) => chosen.has(codes[i])),
      }),
    }));
  }

  /** Coordinates of items as plotly takes them. */
  places(codes) {
    return Object.fromEntries(["x", "y", "z"].slice(0, this.isFlat ? 2 : 3).map((name, axis) => (
      [name, Float32Array.from(codes, (code) => this.at(code, axis))])));
  }

  /** Lit items of a solid map, which has no canvas above it. */
  solidMarks() {
    if (this.isFlat) return [];
    const common = { type: "scatter3d", hoverinfo: "none" }, { marks } = this;
    const lines = marks.filter((mark) => mark.share).map(({ code, color, share = 0 }) => ({
      ...common, mode: "lines", line: { color, width: 1 + 6 * share }, ...this.places([this.selected, code]),
    }));
    const marker = { size: lines.length ? 4 : 6, color: marks.map(({ color }) => color), line: { width: 0 } };
    return [...lines, { ...common, mode: "markers", marker, ...this.places(marks.map(({ code }) => code)) }];
  }

  layout() {
    const { theme: { ink, soft }, limits, entry: { sides: [x, y, z] = [] } } = this;
    const common = {
      showlegend: false, margin: { l: 0, r: 0, t: 0, b: 0 }, hovermode: "closest", hoverdistance: 12,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: "keep",
    };
    if (this.isFlat) {
      return {
        ...common, dragmode: this.mode, selections: [],
        newselection: { line: { color: ink, width: 1.5, dash: "dot" } },
        xaxis: { ...HIDDEN, range: limits?.x.slice() },
        yaxis: { ...HIDDEN, range: limits?.y.slice(), scaleanchor: "x" },
      };
    }
    const axis = { ...HIDDEN, visible: true, showticklabels: false, title: { text: "" }, color: soft };
    const scene = { xaxis: axis, yaxis: axis, zaxis: axis, aspectmode: "manual", aspectratio: { x, y, z } };
    return { ...common, scene };
  }

  listen() {
    const codesOf = (event) => (event?.points || []).flatMap(({ curveNumber, pointNumber }) => (
      this.coloring.buckets[curveNumber]?.codes[pointNumber] ?? []));
    const handlers = {
      click: (event) => { for (const code of codesOf(event).slice(0, 1)) this.events.onClick(code); },
      hover: (event) => this.showTip(codesOf(event)[0], event.event),
      unhover: () => this.showTip(),
      selected: (event) => {
        if (!event?.points) return;
        this.relayout({ selections: [], activeselection: {} });  // else the lasso stays, as a shape to edit
        for (const line of this.plot.querySelectorAll(".select-outline, .outline-controllers")) line.remove();
        this.events.onSelect(codesOf(event));
      },
      relayouting: () => requestAnimationFrame(() => this.drawOverlay()),
      relayout: (change) => {
        if (!this.isFlat) return;
        this.limits = change["xaxis.autorange"] ? null : this.view;
        this.events.onView(this.limits);
        this.drawOverlay();
      },
    };
    for (const [name, handle] of Object.entries(handlers)) this.plot.on(`plotly_${name}`, handle);
  }

  /** The whole label of a point, beside the pointer. @param {number} [code] */
  showTip(code, { clientX = 0, clientY = 0 } = {}) {
    this.tip.hidden = code === undefined;
    if (code === undefined) return;
    this.tip.textContent = shortLabel(this.header.labels[code], 90);
    const { left, top, width } = this.element.getBoundingClientRect(), { style, offsetWidth } = this.tip;
    style.left = `${Math.max(4, Math.min(clientX - left + 12, width - offsetWidth - 4))}px`;
    style.top = `${clientY - top + 14}px`;
  }

  /** @param {Record<string, any>} change */
  relayout(change) {
    if (this.isFlat) this.surface.Plotly.relayout(this.plot, change);
  }

  /** @param {string} mode "pan" or "lasso" */
  setMode(mode) {
    this.mode = mode;
    this.showTip();
    this.relayout({ dragmode: mode });
  }

  async resize() {
    const { clientWidth, clientHeight } = this.element, { width, height } = this.plot._fullLayout || {};
    if (!width || Math.abs(width - clientWidth) + Math.abs(height - clientHeight) < 2) return;
    await this.surface.Plotly.Plots.resize(this.plot);
    this.drawOverlay();
  }

  showAll() {
    this.relayout({ "xaxis.autorange": true, "yaxis.autorange": true });
  }

  /** Zoom about a place, by default the middle. @param {number} factor @param {number[]} [place] */
  zoomBy(factor, place) {
    if (!this.isFlat) return;
    const { x, y } = this.view, [xs, ys] = [x, y].map(([low, high], axis) => {
      const middle = place ? place[axis] : (low + high) / 2, half = ((high - low) / 2) * factor;
      return [middle - half, middle + half];
    });
    this.relayout({ "xaxis.range": xs, "yaxis.range": ys });
  }

  /** Bring an item into view. @param {number} code */
  reveal(code) {
    if (this.isFlat && !this.visible([code]).length) this.zoomBy(1, [this.at(code, 0), this.at(code, 1)]);
  }

  /** Light items: on a flat map, only the canvas above it is drawn. @param {Mark[]} marks */
  light(marks, selected) {
    const strongest = Math.max(...marks.map(({ weight = 0 }) => Math.abs(weight)), 1e-12);
    this.marks = marks.map((mark) => ({ ...mark, share: Math.abs(mark.weight || 0) / strongest }))
      .sort((a, b) => a.share - b.share);
    if (selected !== null) this.marks.push({ code: selected, color: this.theme.ink });
    this.selected = selected;
    return this.isFlat ? this.drawOverlay() : this.redraw();
  }

  drawOverlay() {
    const { clientWidth: width, clientHeight: height } = this.element, ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    if (!this.isFlat) return;
    const context = this.canvas.getContext("2d"), place = this.pixels(), { ink, paper } = this.theme;
    context.scale(ratio, ratio);
    for (const { code, color, share = 0 } of this.marks.filter((mark) => mark.share)) {
      const lineWidth = 0.5 + 3.5 * share, globalAlpha = 0.35 + 0.6 * share;
      Object.assign(context, { strokeStyle: color, globalAlpha, lineWidth });
      context.stroke(new Path2D(`M ${place(this.selected ?? code)} L ${place(code)}`));
    }
    context.globalAlpha = 1;
    for (const { code, color, weight } of this.marks) {
      // A ring of ink makes a mark differ from a point of the same color.
      const [strokeStyle, lineWidth, size] = weight === undefined ? [ink, 1.5, 4.5] : [paper, 0.5, 3];
      Object.assign(context, { fillStyle: color, strokeStyle, lineWidth });
      context.beginPath();
      context.arc(...place(code), code === this.selected ? 6.5 : size, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    this.drawLabels(context, place, width, height);
  }

  /** As many labels as there is room for: those of lit items first, then of the most frequent. */
  drawLabels(context, place, width, height) {
    const { marks, theme: { ink, paper, soft } } = this;
    const lit = new Set(marks.filter(({ weight }) => weight === undefined).map(({ code }) => code).reverse());
    const most = lit.size + Math.ceil((width * height) / 15000);
    /** @type {{ x: number, y: number, size: number }[]} */ const taken = [];
    let tries = TRIED;
    const write = (code, gap) => {
      const [x, y] = place(code);
      if (!(x > 0 && x < width && y > 8 && y < height - 8)) return;
      tries -= 1;
      const text = (this.texts[code] ??= shortLabel(this.header.labels[code], LETTERS));
      const size = (this.sizes[code] ??= Math.min(context.measureText(text).width, LABEL_WIDTH));
      const isFree = (start) => start > 2 && start + size < width - 2 && !taken.some((other) => (
        Math.abs(other.y - y) < LINE && start < other.x + other.size + GAP && other.x < start + size + GAP));
      const start = [x + gap, x - gap - size].find(isFree);
      if (start === undefined) return;
      taken.push({ x: start, y, size });
      context.strokeText(text, start, y, LABEL_WIDTH);
      context.fillText(text, start, y, LABEL_WIDTH);
    };
    Object.assign(context, { font: FONT, textBaseline: "middle", lineWidth: 3, lineJoin: "round" });
    Object.assign(context, { strokeStyle: paper, fillStyle: ink });
    for (const code of lit) write(code, 10);
    context.fillStyle = soft;
    for (const code of this.arrays.order) {
      if (taken.length >= most || tries <= 0) break;
      if (!lit.has(code)) write(code, 6);
    }
  }
}
