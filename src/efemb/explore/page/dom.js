/** Building the document: elements from plain text only, so that no label becomes markup. */

const SHORT = new Intl.NumberFormat("en", {
  maximumSignificantDigits: 3, maximumFractionDigits: 0, roundingPriority: "morePrecision",
});

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** Three digits, or all of a whole number. @param {number} value */
export const shortNumber = (value) => SHORT.format(value).replace("NaN", "–");

/** @param {number} value */
export const percent = (value) => `${shortNumber(100 * value)}%`;

/**
 * Attributes, styles and listeners are properties by their names.
 * @param {string} tag @param {Record<string, any>} [properties] @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A label that keeps its own direction of writing; style.css shortens it. @param {string} label */
export const labelNode = (label) => (
  element("bdi", { title: label.slice(0, 300) }, label.slice(0, 300).trim() || "(blank)"));

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
