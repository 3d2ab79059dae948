/** Search: a box whose list of completions is kept short, the best first. */

import { element } from "./dom.js";

/**
 * Codes of labels with all words of a text: equal ones, those that start with it, those with a word that
 * does, then the others; within each the most frequent first.
 * @param {string[]} folded labels in lower case @param {Int32Array} order @param {string} text
 */
function findLabels(folded, order, text) {
  const words = text.split(" ");
  const codes = [...order].filter((code) => words.every((word) => folded[code].includes(word)));
  const like = (isLike) => codes.filter((code) => isLike(folded[code]));
  const equal = like((label) => label === text);
  const starting = like((label) => label.startsWith(text));
  const inside = like((label) => label.includes(` ${text}`));
  return [...new Set([...equal, ...starting, ...inside, ...codes])].slice(0, 12);
}

/**
 * @param {HTMLInputElement} input @param {HTMLElement} list its completions @param {string[]} labels
 * @param {Int32Array} order @param {(code: number) => void} choose
 */
export function connectSearch(input, list, labels, order, choose) {
  const oneLine = (text) => text.slice(0, 200).replace(/\s+/g, " ").trim();
  const folded = labels.map((label) => oneLine(label).toLowerCase());
  /** @type {number[]} */ let codes = [];
  const take = () => {
    if (!codes.length) return;
    input.value = "";
    choose(codes[0]);
    codes = [];
  };
  input.addEventListener("input", (/** @type {any} */ { inputType }) => {
    const text = oneLine(input.value).toLowerCase();
    codes = text ? findLabels(folded, order, text) : [];
    input.setCustomValidity(codes.length || !text ? "" : "nothing found");
    list.replaceChildren(...codes.map((code) => element("option", { value: oneLine(labels[code]) })));
    // A completion was clicked: it is the first, being equal.
    if (inputType === "insertReplacementText") take();
  });
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") take();
    if (key === "Escape") input.blur();
  });
}
