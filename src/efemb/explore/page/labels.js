/** Labels on a map: as many as there is room for, each on one line. */

import { shortLabel } from "./dom.js";

/** @import { Frame, Theme } from "./types" */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LABEL_WIDTH = 170, LINE = 18, GAP = 18, LETTERS = 26;
const TRIED = 4000;  // items that are offered room

/** The labels of a map. */
export class Labels {
  /** @param {string[]} labels @param {Int32Array} order codes, the first to be labeled first */
  constructor(labels, order) {
    this.labels = labels;
    this.order = order;
    /** @type {Map<number, { text: string, size: number }>} */ this.measured = new Map();
    /** Places that are taken. @type {{ x: number, y: number, size: number }[]} */
    this.taken = [];
  }

  /** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {Theme} theme @param {Set<number>} lit */
  draw(context, frame, theme, lit) {
    Object.assign(context, {
      font: FONT, textBaseline: "middle", lineWidth: 3, lineJoin: "round", strokeStyle: theme.paper, fillStyle: theme.ink,
    });
    this.taken = [];
    for (const code of lit) this.place(context, frame, code, 10);
    context.fillStyle = theme.soft;
    const most = lit.size + Math.ceil((frame.width * frame.height) / 15000);
    let tries = TRIED;
    for (const code of this.order) {
      if (this.taken.length >= most || tries <= 0) break;
      if (!lit.has(code) && this.place(context, frame, code, 6) !== undefined) tries--;
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} code */
  measure(context, code) {
    let known = this.measured.get(code);
    if (!known) {
      const text = shortLabel(this.labels[code], LETTERS);
      known = { text, size: Math.min(context.measureText(text).width, LABEL_WIDTH) };
      this.measured.set(code, known);
    }
    return known;
  }

  /** Draw a label beside its point, if there is room on one side; undefined if the point is not in the window. */
  /** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {number} code @param {number} gap */
  place(context, { points, dimensions, scale, shift, width, height }, code, gap) {
    const x = points[code * dimensions] * scale[0] + shift[0];
    const y = points[code * dimensions + 1] * scale[1] + shift[1];
    if (!(x > 0 && x < width && y > 8 && y < height - 8)) return undefined;
    const { text, size } = this.measure(context, code);
    const isFree = (/** @type {number} */ start) => start > 2 && start + size < width - 2 && !this.taken.some((other) => (
      Math.abs(other.y - y) < LINE && start < other.x + other.size + GAP && other.x < start + size + GAP));
    const start = [x + gap, x - gap - size].find(isFree);
    if (start === undefined) return false;
    this.taken.push({ x: start, y, size });
    context.strokeText(text, start, y, LABEL_WIDTH);
    context.fillText(text, start, y, LABEL_WIDTH);
    return true;
  }
}
