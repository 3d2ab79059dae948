/** One model and its map: points by plotly's WebGL; lit items and labels are on a canvas above them. */

import { element, shortLabel } from "./dom.js";

/** @import { Ask, Bucket, Mark, Payload, State, Surface, View } from "./types" */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LABEL_WIDTH = 170, LINE = 18, GAP = 18, LETTERS = 26;
const TRIED = 4000;  // items that are offered room for a label

export class ModelView {
  dimensions = 2;
  isFlat = true;
  mode = "pan";
  /** @type {{ title: string, buckets: Bucket[] }} */ coloring = { title: "", buckets: [] };
  /** Limits that were zoomed to, null for everything. @type {View | null} */ limits = null;
  /** What is lit, the most important last. @type {Mark[]} */ marks = [];
  selected = -1;
  /** Items of the selection. @type {Set<number> | null} */ chosen = null;
  /** @type {boolean | null} */ wasFlat = null;
  drawn = Promise.resolve();
  /** Short labels. @type {string[]} */ texts = [];
  /** Their widths. @type {number[]} */ sizes = [];
  onClick = (/** @type {number} */ code) => {};
  onSelect = (/** @type {number[]} */ codes) => {};
  onView = (/** @type {View | null} */ view) => {};

  /** @param {Payload} payload @param {Ask} ask @param {Surface} surface */
  constructor({ header, arrays }, ask, surface) {
    this.header = header;
    this.arrays = arrays;
    this.labels = header.labels;
    this.ask = ask;
    this.surface = surface;
    this.entry = header.maps[0];
    this.points = arrays.order;
    const codes = new Map(this.labels.map((label, code) => [label, code]));
    this.find = (/** @type {string} */ label) => codes.get(label) ?? -1;
    const make = (tag, name) => surface.document.importNode(element(tag, { class: name }));
    this.plot = make("div", "plot");
    this.canvas = make("canvas", "over");
    this.tip = make("div", "tip");
    this.element = make("div", "map");
    this.element.append(this.plot, this.canvas, this.tip);
    this.showTip();
    surface.root.append(this.element);
  }

  /** @param {State} state */
  async show({ map, color, solid }) {
    const { arrays, header: { maps, colorings, n } } = this;
    const entry = this.entry = maps.find(({ array }) => array === map) || maps[0];
    const make = () => this.ask("map", { space: entry.space, method: entry.method });
    this.points = arrays[entry.array] ||= Float32Array.from(await make());
    const { key, title, buckets } = colorings.find((one) => one.key === color) || colorings[0];
    /** @type {Bucket[]} */ const filled = buckets.map(([name, shade], i) => (
      { name, color: shade, isRest: i === 0, codes: [] }));
    arrays[`color.${key}`].forEach((place, code) => { filled[place].codes.push(code); });
    this.coloring = { title, buckets: filled.filter(({ codes }) => codes.length) };
    this.dimensions = this.points.length / n;
    this.isFlat = this.dimensions === 2 || !solid;
    await this.redraw();
  }

  /** Draw everything, after what is being drawn. */
  redraw() {
    this.drawn = this.drawn.then(async () => {
      const { Plotly } = this.surface, isNew = this.isFlat !== this.wasFlat;
      // plotly's own ratio of 2 draws four times the pixels.
      const config = { ...this.header.plot.config, plotGlPixelRatio: devicePixelRatio || 1 };
      if (isNew) Plotly.purge(this.plot);  // flat and solid plots share nothing
      this.wasFlat = this.isFlat;
      const traces = [...this.pointTraces(), ...this.solidMarks()];
      await Plotly.react(this.plot, traces, this.layout(), config);
      if (isNew) this.listen();
      this.drawOverlay();
    });
    return this.drawn;
  }

  /** @param {number} code @param {number} axis */
  at = (code, axis) => this.points[code * this.dimensions + axis];

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
  visible(codes = [...this.labels.keys()]) {
    const { x, y } = this.view, isIn = ([low, high], value) => value >= low && value <= high;
    return codes.filter((code) => isIn(x, this.at(code, 0)) && isIn(y, this.at(code, 1)));
  }

  pointTraces() {
    const { isFlat, chosen, header: { n, plot: { selected, unselected } } } = this;
    const isFaint = !isFlat && this.selected >= 0;  // else the others hide its neighbors
    const size = isFlat ? (n > 30000 ? 3 : n > 3000 ? 4.5 : n > 300 ? 7 : 10) : 3;
    return this.coloring.buckets.map(({ color, codes, isRest }) => {
      const opacity = isFaint ? 0.15 : isRest ? 0.6 : 0.8, trace = this.trace(codes, "markers");
      const selectedpoints = chosen && [...codes.keys()].filter((i) => chosen.has(codes[i]));
      const marker = { color, size, opacity, line: { width: 0 } };
      return { ...trace, marker, ...(isFlat && { selected, unselected, selectedpoints }) };
    });
  }

  /** Some items as plotly takes them. @param {number[]} codes @param {string} mode */
  trace(codes, mode) {
    const [type, axes] = this.isFlat ? ["scattergl", "xy"] : ["scatter3d", "xyz"];
    const places = [...axes].map((name, axis) => (
      [name, Float32Array.from(codes, (code) => this.at(code, axis))]));
    return { type, mode, hoverinfo: "none", ...Object.fromEntries(places) };
  }

  /** Lit items of a solid map, which has no canvas above it. */
  solidMarks() {
    if (this.isFlat) return [];
    const lines = this.marks.filter((mark) => mark.share).map(({ code, color, share = 0 }) => (
      { ...this.trace([this.selected, code], "lines"), line: { color, width: 1 + 6 * share } }));
    const color = this.marks.map((mark) => mark.color), codes = this.marks.map(({ code }) => code);
    const marker = { size: lines.length ? 4 : 6, color, line: { width: 0 } };
    return [...lines, { ...this.trace(codes, "markers"), marker }];
  }

  layout() {
    const { limits, mode: dragmode, entry: { sides: [x, y, z] = [] } } = this;
    const { layout, flat, axis, camera } = structuredClone(this.header.plot);  // plotly writes into them
    const box = { camera, aspectmode: "manual", aspectratio: { x, y, z } };
    if (!this.isFlat) return { ...layout, scene: { xaxis: axis, yaxis: axis, zaxis: axis, ...box } };
    for (const name of ["x", "y"]) flat[`${name}axis`].range = limits?.[name].slice();
    return { ...layout, ...flat, dragmode };
  }

  listen() {
    const codesOf = (event) => (event?.points || []).flatMap(({ curveNumber, pointNumber }) => (
      this.coloring.buckets[curveNumber]?.codes[pointNumber] ?? []));
    const handlers = {
      click: (event) => codesOf(event).slice(0, 1).forEach(this.onClick),
      hover: (event) => this.showTip(codesOf(event)[0], event.event),
      unhover: () => this.showTip(),
      selected: (event) => {
        if (!event?.points) return;
        this.relayout({ selections: [], activeselection: {} });  // else the lasso stays, to be edited
        for (const line of this.plot.querySelectorAll(".select-outline, .outline-controllers")) line.remove();
        this.onSelect(codesOf(event));
      },
      relayouting: () => requestAnimationFrame(() => this.drawOverlay()),
      relayout: (change) => {
        if (!this.isFlat) return;
        this.limits = change["xaxis.autorange"] ? null : this.view;
        this.onView(this.limits);
        this.drawOverlay();
      },
    };
    for (const [name, handle] of Object.entries(handlers)) this.plot.on(`plotly_${name}`, handle);
  }

  /** The whole label of a point, beside the pointer. @param {number} [code] */
  showTip(code, { clientX = 0, clientY = 0 } = {}) {
    this.tip.hidden = code === undefined;
    if (code === undefined) return;
    this.tip.textContent = shortLabel(this.labels[code], 90);
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
    const isOut = code >= 0 && this.isFlat && !this.visible([code]).length;
    if (isOut) this.zoomBy(1, [this.at(code, 0), this.at(code, 1)]);
  }

  /** Light items: on a flat map, only the canvas above it is drawn. @param {Mark[]} marks */
  light(marks, selected) {
    const strongest = Math.max(...marks.map(({ weight = 0 }) => Math.abs(weight)), 1e-12);
    const share = ({ weight = 0 }) => Math.abs(weight) / strongest;
    this.marks = marks.map((mark) => ({ ...mark, share: share(mark) })).sort((a, b) => a.share - b.share);
    if (selected >= 0) this.marks.push({ code: selected, color: this.theme.ink });
    this.selected = selected;
    return this.isFlat ? this.drawOverlay() : this.redraw();
  }

  /** Colors of the page. */
  get theme() {
    const style = getComputedStyle(document.documentElement);
    const [ink, paper, soft] = ["--ink", "--paper", "--soft"].map((name) => style.getPropertyValue(name));
    return { ink, paper, soft };
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
      context.stroke(new Path2D(`M ${place(this.selected)} L ${place(code)}`));
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
    const { ink, paper, soft } = this.theme, lines = { lineWidth: 3, lineJoin: "round", strokeStyle: paper };
    const marked = this.marks.filter(({ weight }) => weight === undefined).map(({ code }) => code);
    const lit = new Set(marked.reverse()), most = lit.size + Math.ceil((width * height) / 15000);
    /** @type {{ x: number, y: number, size: number }[]} */ const taken = [];
    let tries = TRIED;
    const write = (code, gap) => {
      const [x, y] = place(code);
      if (!(x > 0 && x < width && y > 8 && y < height - 8)) return;
      tries -= 1;
      const text = (this.texts[code] ??= shortLabel(this.labels[code], LETTERS));
      const size = (this.sizes[code] ??= Math.min(context.measureText(text).width, LABEL_WIDTH));
      const isFree = (start) => start > 2 && start + size < width - 2 && !taken.some((other) => (
        Math.abs(other.y - y) < LINE && Math.max(start - other.x - other.size, other.x - start - size) < GAP));
      const start = [x + gap, x - gap - size].find(isFree);
      if (start === undefined) return;
      taken.push({ x: start, y, size });
      context.strokeText(text, start, y, LABEL_WIDTH);
      context.fillText(text, start, y, LABEL_WIDTH);
    };
    Object.assign(context, { font: FONT, textBaseline: "middle", fillStyle: ink, ...lines });
    for (const code of lit) write(code, 10);
    context.fillStyle = soft;
    for (const code of this.arrays.order) {
      if (taken.length >= most || tries <= 0) break;
      if (!lit.has(code)) write(code, 6);
    }
  }
}
