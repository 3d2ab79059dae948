/** Search: a box that completes labels, by keyboard and by mouse. */

import { element, labelNode } from "./dom.js";

const MOST = 12;

/**
 * Codes of labels that fit a text: equal ones, those that start with it, words that do, then any part;
 * within each the most frequent first.
 * @param {string[]} folded labels in lower case @param {Int32Array} order @param {string} typed
 */
export function findLabels(folded, order, typed) {
  const text = typed.trim().toLowerCase();
  if (!text) return [];
  const words = text.split(/\s+/);
  /** @type {number[][]} */
  const found = [[], [], [], []];
  for (const code of order) {
    const label = folded[code];
    if (label === text) found[0].push(code);
    else if (label.startsWith(text)) found[1].push(code);
    else if (found[2].length < MOST && label.includes(` ${text}`)) found[2].push(code);
    else if (found[3].length < MOST && words.every((word) => label.includes(word))) found[3].push(code);
  }
  return found.flat().slice(0, MOST);
}

/**
 * @param {HTMLInputElement} input @param {HTMLElement} list @param {string[]} labels
 * @param {Int32Array} order @param {(code: number) => void} choose
 */
export function connectSearch(input, list, labels, order, choose) {
  const folded = labels.map((label) => label.slice(0, 200).toLowerCase());
  /** @type {number[]} */
  let codes = [];
  let active = 0;
  const close = () => {
    list.replaceChildren();
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const take = (/** @type {number} */ code) => {
    input.value = "";
    close();
    choose(code);
  };
  const draw = () => {
    list.replaceChildren(...codes.map((code, i) => element("li", {
      id: `found-${i}`, role: "option", "aria-selected": String(i === active),
      onmousedown: (/** @type {Event} */ event) => { event.preventDefault(); take(code); },
    }, labelNode(labels[code], 70))));
    if (!codes.length && input.value.trim()) list.replaceChildren(element("li", { class: "note" }, "nothing found"));
    list.hidden = !list.childElementCount;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (codes.length) input.setAttribute("aria-activedescendant", `found-${active}`);
  };
  input.addEventListener("input", () => {
    codes = findLabels(folded, order, input.value);
    active = 0;
    draw();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && codes.length) {
      active = (active + step + codes.length) % codes.length;
      draw();
      event.preventDefault();
    } else if (event.key === "Enter" && codes.length) take(codes[active]);
    else if (event.key === "Escape") { close(); input.blur(); }
  });
  input.addEventListener("blur", close);
}
