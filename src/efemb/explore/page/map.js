/** One model and its map: points by plotly's WebGL; lit items and labels are on a canvas above them. */

import { byId, labelNode } from "./dom.js";

/** @import { Ask, Box, Bucket, Mark, Payload, Surface, View } from "./types" */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const ROOM = 18;  // pixels from line to line, and between labels on one line
const AREA = 15000;  // pixels for each label
const TRIED = 4000;  // items that are offered room for a label

export class ModelView {
  isFlat = true;
  mode = "pan";
  /** @type {{ title: string, buckets: Bucket[] }} */ coloring = { title: "", buckets: [] };
  /** Limits that were zoomed to, null for everything. @type {View | null} */ limits = null;
  /** What is lit, the most important last. @type {Mark[]} */ marks = [];
  selected = -1;
  /** Items of the selection. @type {Set<number> | null} */ chosen = null;
  /** What is drawn, a flat or a solid plot. @type {boolean | null} */ wasFlat = null;
  drawn = Promise.resolve();
  /** Of short labels, in pixels. @type {number[]} */ widths = [];
  /** Coordinates, one item after the other. */ points = new Float32Array();
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
    /** @type {Map<string | undefined, number>} */
    const codes = new Map(this.labels.map((label, code) => [label, code]));
    this.find = (/** @type {string | undefined} */ label) => codes.get(label) ?? -1;
    const make = (tag, name) => Object.assign(surface.document.createElement(tag), { className: name });
    this.plot = make("div", "plot");
    this.canvas = make("canvas", "over");
    this.tip = make("div", "tip");
    this.root = make("div", "map");
    this.root.dataset.name = header.name;
    this.root.append(this.plot, this.canvas, this.tip);
    surface.root.append(this.root);
  }

  /** @param {string} map @param {string} color */
  async show(map, color) {
    const { arrays, header: { maps, colorings } } = this;
    const entry = maps.find(({ key }) => key === map) || maps[0];
    const { space, method, array, scene } = entry;
    arrays[array] ||= Float32Array.from(await this.ask("map", { space, method }));
    this.points = arrays[array];
    this.scene = scene;
    this.isFlat = !scene;
    const { key, title, buckets } = colorings.find((one) => one.key === color) || colorings[0];
    /** @type {Bucket[]} */
    const filled = buckets.map(([name, shade], i) => ({ name, color: shade, isRest: i === 0, codes: [] }));
    arrays[`color.${key}`].forEach((bucket, code) => { filled[bucket].codes.push(code); });
    this.coloring = { title, buckets: filled.filter(({ codes }) => codes.length) };
    await this.redraw();
  }

  /** Draw everything, after what is being drawn. */
  redraw() {
    this.drawn = this.drawn.then(async () => {
      const { Plotly } = this.surface;
      const isNew = this.isFlat !== this.wasFlat;
      // plotly's own ratio of 2 draws four times the pixels.
      const config = { ...this.header.plot.config, plotGlPixelRatio: devicePixelRatio || 1 };
      if (isNew) Plotly.purge(this.plot);  // flat and solid plots share nothing
      this.wasFlat = this.isFlat;
      await Plotly.react(this.plot, [...this.pointTraces(), ...this.solidMarks()], this.layout(), config);
      if (isNew) this.listen();
      this.drawOverlay();
    });
    return this.drawn;
  }

  /** A coordinate of an item. @param {number} code @param {number} axis */
  at(code, axis) {
    return this.points[code * (this.points.length / this.header.n) + axis];
  }

  /** What is in the window. @returns {View} */
  get view() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    return { x: xaxis.range.slice(), y: yaxis.range.slice() };
  }

  /** A function from codes to pixels. @returns {(code: number) => [number, number]} */
  pixels() {
    const { x, y } = this.view;
    const { clientWidth: width, clientHeight: height } = this.root;
    const across = width / (x[1] - x[0]);
    const up = height / (y[1] - y[0]);
    return (code) => [(this.at(code, 0) - x[0]) * across, height - (this.at(code, 1) - y[0]) * up];
  }

  /** Those of some items that are in view; a solid map shows everything. @param {number[]} codes */
  visible(codes = [...this.labels.keys()]) {
    if (!this.isFlat) return codes;
    const { x, y } = this.view;
    const isWithin = (value, [low, high]) => value >= low && value <= high;
    return codes.filter((code) => isWithin(this.at(code, 0), x) && isWithin(this.at(code, 1), y));
  }

  /** Some items as plotly takes them. @param {number[]} codes @param {Record<string, any>} look */
  trace(codes, look) {
    const values = (axis) => Float32Array.from(codes, (code) => this.at(code, axis));
    const flat = { type: "scattergl", mode: "markers", hoverinfo: "none", x: values(0), y: values(1), ...look };
    return this.isFlat ? flat : { ...flat, type: "scatter3d", z: values(2) };
  }

  pointTraces() {
    const { isFlat, chosen, header: { plot: { size, solid_size, selected, unselected } } } = this;
    const isFaint = !isFlat && this.selected >= 0;  // else the others hide its neighbors
    return this.coloring.buckets.map(({ color, codes, isRest }) => {
      const opacity = isFaint ? 0.35 : isRest ? 0.6 : 0.8;
      const marker = { color, opacity, size: isFlat ? size : solid_size, line: { width: 0 } };
      if (!isFlat) return this.trace(codes, { marker });
      const selectedpoints = chosen && [...codes.keys()].filter((i) => chosen.has(codes[i]));
      return this.trace(codes, { marker, selectedpoints, selected, unselected });
    });
  }

  /** Lit items of a solid map, which has no canvas above it. */
  solidMarks() {
    if (this.isFlat) return [];
    const lines = this.marks.filter(({ share }) => share).map(({ code, color, share = 0 }) => (
      this.trace([this.selected, code], { mode: "lines", line: { color, width: 1 + 6 * share } })));
    const color = this.marks.map((mark) => mark.color);
    const size = this.marks.map(({ code, share }) => (code === this.selected ? 10 : share ? 5 : 7));
    return [...lines, this.trace(this.marks.map(({ code }) => code), { marker: { color, size, line: { width: 0 } } })];
  }

  layout() {
    const { layout, flat, scene } = structuredClone(this.header.plot);  // plotly writes into them
    if (!this.isFlat) return { ...layout, scene: { ...scene, ...structuredClone(this.scene) } };
    flat.xaxis.range = this.limits?.x.slice();
    flat.yaxis.range = this.limits?.y.slice();
    return { ...layout, ...flat, dragmode: this.mode };
  }

  listen() {
    const handlers = {
      click: (event) => this.codesOf(event).slice(0, 1).forEach(this.onClick),
      hover: (event) => this.showTip(this.codesOf(event)[0], event.event),
      unhover: () => this.showTip(),
      selected: (event) => this.finishLasso(event),
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

  /** Items of an event of plotly: points have a number in each trace. @returns {number[]} */
  codesOf(event) {
    return event.points.flatMap(({ curveNumber, pointNumber }) => (
      this.coloring.buckets[curveNumber]?.codes[pointNumber] ?? []));
  }

  finishLasso(event) {
    if (!event?.points) return;
    this.relayout({ selections: [], activeselection: {} });  // else the lasso stays, to be edited
    for (const line of this.plot.querySelectorAll(".select-outline, .outline-controllers")) line.remove();
    this.onSelect(this.codesOf(event));
  }

  /** The whole label of a point, beside the pointer. @param {number} [code] */
  showTip(code, { clientX = 0, clientY = 0 } = {}) {
    this.tip.replaceChildren(...(code === undefined ? [] : [labelNode(this.labels[code])]));
    const { left, top } = this.root.getBoundingClientRect();
    this.tip.style.left = `clamp(4px, ${clientX - left + 12}px, 100% - ${this.tip.offsetWidth + 4}px)`;
    this.tip.style.top = `${clientY - top + 14}px`;
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
    const { x, y } = this.view;
    const around = ([low, high], middle = (low + high) / 2) => {
      const half = ((high - low) / 2) * factor;
      return [middle - half, middle + half];
    };
    this.relayout({ "xaxis.range": around(x, place?.[0]), "yaxis.range": around(y, place?.[1]) });
  }

  /** Bring an item into view. @param {number} code */
  reveal(code) {
    if (code >= 0 && !this.visible([code]).length) this.zoomBy(1, [this.at(code, 0), this.at(code, 1)]);
  }

  /** Light items: on a flat map, only the canvas above it is drawn. @param {Mark[]} marks */
  light(marks, selected) {
    const size = ({ weight = 0 }) => Math.abs(weight);
    const largest = Math.max(...marks.map(size)) || 1;
    this.marks = marks.map((mark) => ({ ...mark, share: size(mark) / largest }));
    this.marks.sort((a, b) => size(a) - size(b));
    if (selected >= 0) this.marks.push({ code: selected, color: pageColor("ink") });
    this.selected = selected;
    return this.isFlat ? this.drawOverlay() : this.redraw();
  }

  drawOverlay() {
    const { clientWidth: width, clientHeight: height } = this.root;
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    if (!this.isFlat) return;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const place = this.pixels();
    this.drawWeights(context, place);
    this.drawLabels(context, place, width, height);
    this.drawMarks(context, place);
  }

  /** Lines from the selected item, the stronger the heavier. */
  drawWeights(context, place) {
    for (const { code, color, share } of this.marks) {
      if (!share) continue;
      context.strokeStyle = color;
      context.globalAlpha = 0.35 + 0.6 * share;
      context.lineWidth = 0.5 + 3.5 * share;
      context.stroke(new Path2D(`M ${place(this.selected)} L ${place(code)}`));
    }
    context.globalAlpha = 1;
  }

  drawMarks(context, place) {
    const [ink, paper] = ["ink", "paper"].map(pageColor);
    for (const { code, color, weight } of this.marks) {
      // A ring of ink makes a mark differ from a point of the same color.
      const isEnd = weight !== undefined;
      const radius = code === this.selected ? 6.5 : isEnd ? 3 : 4.5;
      context.fillStyle = color;
      context.strokeStyle = isEnd ? paper : ink;
      context.lineWidth = isEnd ? 0.5 : 1.5;
      context.beginPath();
      context.arc(...place(code), radius, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
  }

  /** Items in the order in which they get labels: lit ones, then the most frequent, or those selected. */
  *byImportance(/** @type {Set<number>} */ lit) {
    yield* lit;
    for (const code of this.arrays.order) if (!lit.has(code) && this.chosen?.has(code) !== false) yield code;
  }

  /** As many labels as there is room for, clear of the buttons and the legend. */
  drawLabels(context, place, width, height) {
    const [ink, paper, soft] = ["ink", "paper", "soft"].map(pageColor);
    const named = this.marks.filter(({ weight }) => weight === undefined).map(({ code }) => code).reverse();
    const lit = new Set(named);
    const marked = named.map(place).map(([x, y]) => ({ left: x - 5, right: x + 5, top: y - 5, bottom: y + 5 }));
    const taken = boxesAbove(this.root);
    const most = taken.length + lit.size + Math.ceil((width * height) / AREA);
    const isFree = (box) => (
      box.left > 2 && box.right < width - 2 && !taken.some((other) => overlap(box, other)));
    Object.assign(context, { font: FONT, textBaseline: "middle" });
    let tries = 0;
    for (const code of this.byImportance(lit)) {
      if (taken.length >= most || tries >= TRIED) break;
      const [x, y] = place(code);
      if (x < 0 || x > width || y < 8 || y > height - 8) continue;
      tries += 1;
      const text = this.header.short[code];
      const length = this.widths[code] ??= context.measureText(text).width;
      const gap = lit.has(code) ? 10 : 6;
      const lines = { top: y - ROOM / 2, bottom: y + ROOM / 2 };
      const sides = [x + gap, x - gap - length].map((left) => ({ left, right: left + length, ...lines }));
      const isClear = (box) => isFree(box) && !marked.some((mark) => overlap(box, mark));
      const free = sides.find(isClear) ?? (lit.has(code) && sides.find(isFree));
      if (!free) continue;
      taken.push({ ...free, left: free.left - ROOM, right: free.right + ROOM });
      context.fillStyle = paper;
      context.globalAlpha = 0.75;  // of a plate between the points and the text
      context.fillRect(free.left - 2, y - 7, length + 4, 14);
      context.fillStyle = lit.has(code) ? ink : soft;
      context.globalAlpha = 1;
      context.fillText(text, free.left, y);
    }
  }
}

/** A color of the theme. @param {string} name */
const pageColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);

/** What lies above a map: the buttons and the legend. @returns {Box[]} */
function boxesAbove({ offsetLeft, offsetTop }) {
  const boxOf = (/** @type {any} */ node) => node.getBoundingClientRect();
  const maps = boxOf(byId("maps"));
  const [x, y] = [maps.left + offsetLeft, maps.top + offsetTop];
  return [...document.querySelectorAll("#tools, #legend")].map(boxOf).map((box) => (
    { left: box.left - x, right: box.right - x, top: box.top - y, bottom: box.bottom - y }));
}

/** @param {Box} a @param {Box} b */
const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
