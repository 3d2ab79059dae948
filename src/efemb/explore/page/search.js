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
  /** @type {number[][]} */ const ranked = [[], [], [], []];
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
  /** @type {string[] | null} */ let folded = null;
  /** @type {number[]} */ let codes = [];
  let active = 0;
  const draw = () => {
    const lines = codes.map((code, i) => element("li", {
      id: `found-${i}`, role: "option", "aria-selected": String(i === active),
      onmousedown: (/** @type {Event} */ event) => { event.preventDefault(); take(code); },
    }, labelNode(labels[code], 70)));
    list.replaceChildren(...(lines.length || !input.value.trim() ? lines : [element("li", { class: "note" }, "nothing found")]));
    list.hidden = !list.childElementCount;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.setAttribute("aria-activedescendant", codes.length ? `found-${active}` : "");
  };
  const close = () => { codes = []; input.value = ""; draw(); };
  const take = (/** @type {number} */ code) => { close(); choose(code); };
  input.addEventListener("input", () => {
    folded ||= labels.map((label) => label.slice(0, 200).toLowerCase());
    codes = findLabels(folded, order, input.value);
    active = 0;
    draw();
  });
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" && codes.length) take(codes[active]);
    else if (key === "Escape") input.blur();
    else if (codes.length && (key === "ArrowDown" || key === "ArrowUp")) {
      active = (active + (key === "ArrowUp" ? codes.length - 1 : 1)) % codes.length;
      draw();
    }
  });
  input.addEventListener("blur", close);
}
