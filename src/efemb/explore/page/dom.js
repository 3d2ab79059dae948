/** Building the document: elements from plain text only, so that no label becomes markup. */

/** @import { Line } from "./types" */

/** Three digits, without exponents where people write none. @param {number} value */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(1);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

/** @param {number} value */
export const percent = (value) => `${shortNumber(100 * value)}%`;

/**
 * One line of a label that is not too long. Names often differ by a size or number at their end, which
 * is kept. @param {string} label @param {number} [width]
 */
export function shortLabel(label, width = 34) {
  const text = label.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/g, " ").trim();
  if (text.length <= width) return text || "(blank)";
  const letters = Array.from(text);
  if (letters.length <= width) return text;
  const last = Array.from(text.slice(text.lastIndexOf(" ") + 1));
  const end = /\d/.test(last.join("")) && last.length <= width / 3 ? last : [];
  return `${letters.slice(0, width - end.length - 1).join("").trimEnd()}…${end.join("")}`;
}

/**
 * @param {string} tag @param {Record<string, any>} [properties] @param {...(Node | string | null)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** A label that keeps its own direction of writing. @param {string} label @param {number} [width] */
export function labelNode(label, width = 60) {
  return element("bdi", { title: label.slice(0, 300) }, shortLabel(label, width));
}

/** @param {string} title @param {...(Node | string | null)} children */
export function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

/** @param {string} text */
export function note(text) {
  return element("p", { class: "note" }, text);
}

/** @param {string | Node} content @param {() => void} onclick @param {Record<string, any>} [properties] */
export function button(content, onclick, properties = {}) {
  return element("button", { ...properties, onclick }, content);
}

/** Replace what is in a container; the focus stays at its place, or on the container if the contents are others. */
/** @param {HTMLElement} container @param {Node[]} nodes @param {boolean} [alike] */
export function refill(container, nodes, alike = true) {
  const controls = () => /** @type {HTMLElement[]} */ ([...container.querySelectorAll("button, input, select")]);
  const place = controls().findIndex((control) => control === document.activeElement);
  container.replaceChildren(...nodes);
  if (place >= 0) ((alike && controls()[place]) || container).focus();
}

/**
 * A list with a bar in each line. Bars start at zero; negative ones go the other way, in another color, if
 * the list has both. Lines that can be chosen are buttons. @param {Line[]} lines
 */
export function barList(lines) {
  if (!lines.length) return note("Nothing to list.");
  const values = lines.map((line) => line.value);
  const low = Math.max(...values) > 0 ? Math.min(0, ...values) : 0;
  const range = Math.max(...values.map((value) => value - low), ...values.map(Math.abs)) || 1;
  return element("ol", { class: "items" }, ...lines.map((line) => {
    const { value } = line;
    const start = value < 0 && low < 0 ? value - low : -low;
    const style = { width: `${(100 * Math.abs(value)) / range}%`, marginLeft: `${(100 * start) / range}%` };
    const content = [
      labelNode(line.label, 80), element("span", { class: "value" }, line.text ?? shortNumber(value)),
      element("span", { class: "bar", "aria-hidden": "true" }, element("span", { class: value < 0 ? "fill negative" : "fill", style })),
      line.detail ? element("small", {}, line.detail) : null,
    ];
    const inside = line.choose
      ? element("button", { class: "item", "aria-pressed": String(Boolean(line.chosen)), onclick: line.choose }, ...content)
      : element("div", { class: "item" }, ...content);
    return element("li", { class: line.lit ? "lit" : "" }, inside, line.add ?? null);
  }));
}

/** A line through values. @param {number[]} values */
export function curve(values) {
  const low = Math.min(...values), high = Math.max(...values), last = values[values.length - 1];
  const points = values.map((value, i) => (
    `${(300 * i) / Math.max(values.length - 1, 1)},${60 - (58 * (value - low)) / (high - low || 1)}`));
  const [svg, line] = ["svg", "polyline"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
  svg.setAttribute("viewBox", "0 -2 300 66");
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("points", points.join(" "));
  svg.append(line);
  return element("div", { class: "curve" }, svg,
    element("p", { class: "facts" }, `${shortNumber(values[0])} at first, ${shortNumber(last)} at the end`));
}

/** Rows as a file of comma-separated values. @param {string} name @param {(string | number)[][]} rows */
export function downloadCsv(name, rows) {
  const cell = (/** @type {string | number} */ value) => {
    let text = String(value);
    // A spreadsheet would take such a label for a formula.
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const lines = rows.map((row) => row.map(cell).join(",")).join("\n");
  const url = URL.createObjectURL(new Blob([lines, "\n"], { type: "text/csv;charset=utf-8" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
