/** Building the document: elements from plain text only, so that no label becomes markup. */

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** Three digits, without exponents where people write none. @param {number} value */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(1);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/** @param {number} value */
export const percent = (value) => `${shortNumber(100 * value)}%`;

/**
 * One line of a label that is not too long. Names often differ by a size or number at their end, which
 * is kept. @param {string} label @param {number} width
 */
export function shortLabel(label, width) {
  const text = label.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/gu, " ").trim();
  const letters = text.length > width ? Array.from(text) : [];
  if (letters.length <= width) return text || "(blank)";
  const last = Array.from(text.slice(text.lastIndexOf(" ") + 1));
  const end = last.some((letter) => /\d/.test(letter)) && last.length <= width / 3 ? last : [];
  return `${letters.slice(0, width - end.length - 1).join("").trimEnd()}…${end.join("")}`;
}

/**
 * Attributes, styles and listeners are properties by their names.
 * @param {string} tag @param {Record<string, any>} properties @returns {any}
 */
export function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A label that keeps its own direction of writing. @param {string} label */
export const labelNode = (label, width = 80) => (
  element("bdi", { title: label.slice(0, 300) }, shortLabel(label, width)));

/** @param {string} color */
export const swatch = (color) => element("i", { style: { background: color } });

/** @param {string} text */
export const note = (text) => element("p", { class: "note" }, text);

/** @param {string} text @param {() => void} onclick */
export const button = (text, onclick, properties = {}, ...more) => (
  element("button", { ...properties, onclick }, text, ...more));

/**
 * Replace what is in a container; the focus stays at its place, or on the container if its contents differ.
 * @param {any} container @param {Node[]} nodes @param {boolean} alike
 */
export function refill(container, nodes, alike) {
  const controls = () => [...container.querySelectorAll("button, input, select")];
  const place = controls().indexOf(document.activeElement);
  container.replaceChildren(...nodes);
  if (place >= 0) ((alike && controls()[place]) || container).focus();
}

/** Rows as a file of comma-separated values. @param {string} name @param {any[][]} rows */
export function downloadCsv(name, rows) {
  const cell = (value) => {
    const isFormula = typeof value === "string" && /^'*[=+\-@\t\r]/.test(value);  // to a spreadsheet
    return `"${isFormula ? "'" : ""}${String(value).replaceAll('"', '""')}"`;
  };
  const lines = rows.map((row) => `${row.map(cell).join(",")}\n`);
  const href = URL.createObjectURL(new Blob(lines, { type: "text/csv;charset=utf-8" }));
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}
