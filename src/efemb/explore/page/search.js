/** Search: a box whose list of completions is kept short, the best first. */

import { element } from "./dom.js";

/**
 * Codes of labels with all words of a text: equal ones, those that start with it, those with a word that
 * does, then the others; within each the most frequent first.
 * @param {string[]} folded labels in lower case @param {Int32Array} order @param {string} text
 */
function findLabels(folded, order, text) {
  const words = text.split(" ");
  const rank = (label) => (label.startsWith(text) ? Number(label !== text)
    : label.includes(` ${text}`) ? 2 : words.every((word) => label.includes(word)) ? 3 : 4);
  /** @type {number[][]} */ const ranked = [[], [], [], [], []];
  for (const code of text ? order : []) ranked[rank(folded[code])].push(code);
  return ranked.slice(0, 4).flat().slice(0, 12);
}

/**
 * @param {HTMLInputElement} input @param {HTMLElement} list its completions @param {string[]} labels
 * @param {Int32Array} order @param {(code: number) => void} choose
 */
export function connectSearch(input, list, labels, order, choose) {
  /** @type {string[]} */ let folded = [];
  /** @type {number[]} */ let codes = [];
  const oneLine = (label) => label.slice(0, 200).replace(/\s+/g, " ").trim();
  const take = (code) => { codes = []; input.value = ""; choose(code); };
  input.addEventListener("input", (/** @type {any} */ { inputType }) => {
    if (!folded.length) folded = labels.map((label) => oneLine(label).toLowerCase());
    codes = findLabels(folded, order, oneLine(input.value).toLowerCase());
    input.setCustomValidity(codes.length || !input.value ? "" : "nothing found");
    list.replaceChildren(...codes.map((code) => element("option", { value: oneLine(labels[code]) })));
    // A completion was clicked: it is the first, being equal.
    if (codes.length && inputType === "insertReplacementText") take(codes[0]);
  });
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" && codes.length) take(codes[0]);
    if (key === "Escape") input.blur();
  });
}
