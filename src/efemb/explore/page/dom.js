/** Building the document: elements from plain text only, so that no label becomes markup. */

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
  const text = label.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/g, " ").trim();
  const letters = text.length > width ? Array.from(text) : [];
  if (letters.length <= width) return text || "(blank)";
  const last = Array.from(text.slice(text.lastIndexOf(" ") + 1));
  const end = last.some((letter) => /\d/.test(letter)) && last.length <= width / 3 ? last : [];
  return `${letters.slice(0, width - end.length - 1).join("").trimEnd()}…${end.join("")}`;
}

/** @param {string} tag @param {Record<string, any>} properties @returns {any} */
export function element(tag, properties, ...children) {
  const isDrawing = tag === "svg" || tag === "polyline";
  const namespace = isDrawing ? "http://www.w3.org/2000/svg" : document.documentElement.namespaceURI;
  const node = /** @type {HTMLElement} */ (document.createElementNS(namespace, tag));
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A label that keeps its own direction of writing. @param {string} label @param {number} width */
export const labelNode = (label, width) => (
  element("bdi", { title: label.slice(0, 300) }, shortLabel(label, width)));

/** @param {string} color */
export const swatch = (color) => element("i", { style: { background: color } });

/** @param {string} text */
export const note = (text) => element("p", { class: "note" }, text);

/** @param {string} text @param {() => void} onclick @param {Record<string, any>} [properties] */
export const button = (text, onclick, properties, ...more) => (
  element("button", { ...properties, onclick }, text, ...more));

/**
 * Replace what is in a container; the focus stays at its place, or on the container if its contents differ.
 * @param {any} container @param {Node[]} nodes @param {boolean} alike
 */
export function refill(container, nodes, alike) {
  const controls = () => [...container.querySelectorAll("button, input, select")];
  const place = controls().indexOf(document.activeElement);
  container.replaceChildren(...nodes);
  if (place < 0) return;
  const next = alike ? controls()[place] : null;
  (next || container).focus();
}

/** Rows as a file of comma-separated values. @param {string} name @param {(string | number)[][]} rows */
export function downloadCsv(name, rows) {
  const cell = (value) => {
    // A spreadsheet would take such a label for a formula.
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const lines = rows.map((row) => `${row.map(cell).join(",")}\n`);
  const url = URL.createObjectURL(new Blob(lines, { type: "text/csv;charset=utf-8" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
