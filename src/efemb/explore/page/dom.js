/** Building the document: elements from plain text only, so that no label becomes markup. */

import { shortNumber } from "./colors.js";
import { shortLabel } from "./labels.js";

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
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** A label that keeps its own direction of writing. @param {string} label @param {number} [width] */
export function labelNode(label, width = 60) {
  return element("bdi", { title: label.slice(0, 300) }, shortLabel(label, width) || "(blank)");
}

/** Limits of the bars of a list; values of one sign start at the left edge. @param {number[]} values */
export function barScale(values) {
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  return high <= 0 ? { low: 0, high: -low } : { low, high };
}

/** A bar from zero; negative ones go the other way, in another color, if the list has both. */
/** @param {number} value @param {{ low: number, high: number }} scale */
export function bar(value, { low, high }) {
  const range = high - low || 1, size = Math.abs(value) / range;
  const start = (low < 0 && value < 0 ? value - low : -low) / range;
  const style = { width: `${Math.min(100, 100 * size)}%`, marginLeft: `${100 * start}%` };
  return element("span", { class: "bar", "aria-hidden": "true" },
    element("span", { class: value < 0 ? "fill negative" : "fill", style }));
}

/** @param {number} value */
export function percent(value) {
  return `${shortNumber(100 * value)}%`;
}

/** @param {string} title @param {...(Node | string | null)} children */
export function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

/** @param {string} text */
export function note(text) {
  return element("p", { class: "note" }, text);
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
