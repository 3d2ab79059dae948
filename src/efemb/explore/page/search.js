/** Search: a box that completes labels, by keyboard and by mouse. */

import { element, labelNode } from "./dom.js";

const MOST = 12;

/**
 * Codes of labels that fit a text: equal ones, those that start with it, words that do, then any part;
 * within each the most frequent first.
 * @param {string[]} folded labels in lower case @param {Int32Array} order @param {string} typed
 */
function findLabels(folded, order, typed) {
  const text = typed.trim().toLowerCase();
  if (!text) return [];
  const words = text.split(/\s+/);
  /** @type {number[][]} */
  const ranked = [[], [], [], []];
  for (const code of order) {
    const label = folded[code];
    if (label === text) ranked[0].push(code);
    else if (label.startsWith(text)) ranked[1].push(code);
    else if (ranked[2].length < MOST && label.includes(` ${text}`)) ranked[2].push(code);
    else if (ranked[3].length < MOST && words.every((word) => label.includes(word))) ranked[3].push(code);
  }
  return ranked.flat().slice(0, MOST);
}

/**
 * @param {HTMLInputElement} input @param {HTMLElement} list @param {string[]} labels
 * @param {Int32Array} order @param {(code: number) => void} choose
 */
export function connectSearch(input, list, labels, order, choose) {
  /** @type {string[] | null} */
  let folded = null;
  /** @type {number[]} */
  let codes = [];
  let active = 0;
  const draw = (/** @type {Node[]} */ lines) => {
    list.replaceChildren(...lines);
    list.hidden = !lines.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (codes.length) input.setAttribute("aria-activedescendant", `found-${active}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const close = () => { codes = []; draw([]); };
  const take = (/** @type {number} */ code) => {
    input.value = "";
    close();
    choose(code);
  };
  const drawFound = () => draw(codes.length || !input.value.trim() ? codes.map((code, i) => element("li", {
    id: `found-${i}`, role: "option", "aria-selected": String(i === active),
    onmousedown: (/** @type {Event} */ event) => { event.preventDefault(); take(code); },
  }, labelNode(labels[code], 70))) : [element("li", { class: "note" }, "nothing found")]);
  input.addEventListener("input", () => {
    folded ||= labels.map((label) => label.slice(0, 200).toLowerCase());
    codes = findLabels(folded, order, input.value);
    active = 0;
    drawFound();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && codes.length) {
      active = (active + step + codes.length) % codes.length;
      drawFound();
      event.preventDefault();
    } else if (event.key === "Enter" && codes.length) take(codes[active]);
    else if (event.key === "Escape") { close(); input.blur(); }
  });
  input.addEventListener("blur", close);
}
