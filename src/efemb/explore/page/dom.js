/** Building the document: elements from plain text only, so that no label becomes markup. */

import { shortNumber } from "./colors.js";
import { shortLabel } from "./map.js";

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

/** A bar of a share of the widest one; negative ones go the other way in another color. */
/** @param {number} value @param {number} largest */
export function bar(value, largest) {
  const width = `${Math.min(100, (100 * Math.abs(value)) / (largest || 1))}%`;
  return element("span", { class: "bar", "aria-hidden": "true" },
    element("span", { class: value < 0 ? "fill negative" : "fill", style: { width } }));
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
