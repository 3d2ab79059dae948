/** Search: a box whose list of completions is kept short, the best first. */

const LISTED = 12;

/** How well a label fits a text, 0 being best. @param {string} label @param {string} text */
function rank(label, text) {
  if (label === text) return 0;
  if (label.startsWith(text)) return 1;
  return label.includes(` ${text}`) ? 2 : 3;
}

/**
 * Offer labels with all words of what is typed, the most frequent of the fitting ones first.
 * @param {HTMLInputElement} input @param {string[]} labels @param {number[]} order of the codes by frequency
 * @param {(code: number) => void} choose
 */
export function connectSearch(input, labels, order, choose) {
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
    const words = text.split(" ");
    /** @type {number[][]} */ const found = [[], [], [], []];
    for (const code of text ? order : []) {
      if (words.every((word) => folded[code].includes(word))) found[rank(folded[code], text)].push(code);
    }
    codes = found.flat().slice(0, LISTED);
    input.setCustomValidity(codes.length || !text ? "" : "nothing found");
    input.list?.replaceChildren(...codes.map((code) => new Option("", oneLine(labels[code]))));
    if (inputType === "insertReplacementText") take();  // a completion was clicked; being equal, it is the first
  });
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") take();
    if (key === "Escape") input.blur();
  });
}
