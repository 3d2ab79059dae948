/** Labels on a map: as many as there is room for, each on one line. */

/**
 * @typedef {{ width: number, height: number, scale: number[], shift: number[], points: Float32Array,
 *   dimensions: number }} Frame pixels = coordinates * scale + shift
 * @typedef {{ ink: string, paper: string, soft: string, accent: string }} Theme
 */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LABEL_WIDTH = 170, LINE = 14, LETTERS = 26;
const TRIED = 4000;  // items that are offered room

/**
 * One line of a label that is not too long. Names often differ by a size or number at their end, which
 * is kept. @param {string} label @param {number} [width]
 */
export function shortLabel(label, width = 34) {
  const text = label.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/g, " ").trim();
  if (text.length <= width) return text;
  const letters = Array.from(text);
  if (letters.length <= width) return text;
  const last = Array.from(text.slice(text.lastIndexOf(" ") + 1));
  const end = /\d/.test(last.join("")) && last.length <= width / 3 ? last : [];
  return `${letters.slice(0, width - end.length - 1).join("").trimEnd()}…${end.join("")}`;
}

/** The labels of a map. */
export class Labels {
  /** @param {string[]} labels @param {Int32Array} order codes, the first to be labeled first */
  constructor(labels, order) {
    this.labels = labels;
    this.order = order;
    /** @type {Map<number, { text: string, size: number }>} */
    this.measured = new Map();
  }

  /** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {Theme} theme @param {Set<number>} lit */
  draw(context, frame, theme, lit) {
    context.font = FONT;
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = theme.paper;
    const room = new Room(frame.width, frame.height);
    context.fillStyle = theme.ink;
    for (const code of lit) this.place(context, frame, room, code, 10);
    context.fillStyle = theme.soft;
    let left = Math.ceil((frame.width * frame.height) / 15000), tries = TRIED;
    for (const code of this.order) {
      if (left <= 0 || tries <= 0) break;
      if (lit.has(code) || !isInside(frame, code)) continue;
      tries--;
      if (this.place(context, frame, room, code, 6)) left--;
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

  /** Draw a label beside its point, if there is room on one side. */
  /** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {Room} room @param {number} code @param {number} gap */
  place(context, frame, room, code, gap) {
    if (!isInside(frame, code)) return false;
    const { points, dimensions, scale, shift, width } = frame;
    const x = points[code * dimensions] * scale[0] + shift[0];
    const y = points[code * dimensions + 1] * scale[1] + shift[1];
    const { text, size } = this.measure(context, code);
    const side = [x + gap, x - gap - size].find((start) => (
      start > 2 && start + size < width - 2 && room.isFree(start, y, size)));
    if (side === undefined) return false;
    room.take(side, y, size);
    context.strokeText(text, side, y, LABEL_WIDTH);
    context.fillText(text, side, y, LABEL_WIDTH);
    return true;
  }
}

/** Whether a point is in the window, away from its edges. @param {Frame} frame @param {number} code */
function isInside({ points, dimensions, scale, shift, width, height }, code) {
  const x = points[code * dimensions] * scale[0] + shift[0];
  const y = points[code * dimensions + 1] * scale[1] + shift[1];
  return x > 0 && x < width && y > 8 && y < height - 8;
}

/** Which parts of the map are taken by labels. */
class Room {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.columns = Math.ceil(width / 6);
    this.rows = Math.ceil(height / LINE) + 1;
    this.taken = new Uint8Array(this.columns * this.rows);
  }

  /** @param {number} x @param {number} y @param {number} size @returns {[number, number, number, number]} */
  cells(x, y, size) {
    const first = Math.max(0, Math.floor((y - LINE / 2 - 2) / LINE));
    const last = Math.min(this.rows - 1, Math.floor((y + LINE / 2 + 2) / LINE));
    return [first, last, Math.max(0, Math.floor((x - 9) / 6)), Math.min(this.columns - 1, Math.floor((x + size + 9) / 6))];
  }

  /** @param {number} x @param {number} y @param {number} size */
  isFree(x, y, size) {
    const [first, last, left, right] = this.cells(x, y, size);
    for (let row = first; row <= last; row++) {
      for (let column = left; column <= right; column++) {
        if (this.taken[row * this.columns + column]) return false;
      }
    }
    return true;
  }

  /** @param {number} x @param {number} y @param {number} size */
  take(x, y, size) {
    const [first, last, left, right] = this.cells(x, y, size);
    for (let row = first; row <= last; row++) {
      this.taken.fill(1, row * this.columns + left, row * this.columns + right + 1);
    }
  }
}
