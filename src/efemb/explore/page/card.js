/** The card of a model: what it is, how its training went, and how it does on held-out data. */

import { element, note, section } from "./dom.js";
import { shortNumber } from "./colors.js";

/**
 * @typedef {import("./main.js").Explorer} Explorer
 * @typedef {import("./map.js").Mark} Mark
 */

/** @param {Explorer} app @returns {Promise<{ nodes: Node[], marks: Mark[] }>} */
export async function modelPanel(app) {
  const { card, name, notes, quantization } = app.header;
  const nodes = [element("h2", {}, name)];
  const { scores } = card;
  if (scores) nodes.push(section("Held-out data", element("p", { class: "score" }, describeScores(scores))));
  nodes.push(section("What it is", element("dl", {}, ...card.facts.flatMap(([term, fact]) => [
    element("dt", {}, term), element("dd", {}, fact.slice(0, 300))]))));
  if (card.history.values) {
    nodes.push(section(`Training: ${card.history.name} by pass`, curve(card.history.values)));
  }
  if (quantization) {
    const largest = Math.max(...Object.values(quantization.largest_error));
    nodes.push(note(`Vectors are rounded to ${quantization.bits} bits: the largest error of a number is `
      + `${largest.toExponential(1)}.`));
  }
  nodes.push(...notes.map(note));
  return { nodes, marks: [] };
}

/** @param {Record<string, number>} scores */
function describeScores(scores) {
  const own = `Score ${scores.score.toFixed(4)} on ${shortNumber(scores.n)} held-out entries`;
  if (scores.popularity === undefined) return `${own}.`;
  const verdict = scores.difference >= 0 ? "better" : "worse";
  const interval = `${scores.low.toFixed(3)} to ${scores.high.toFixed(3)}`;
  return `${own}: ${verdict} than popularity (${scores.popularity.toFixed(4)}) by `
    + `${Math.abs(scores.difference).toFixed(4)} (95% interval of the difference ${interval}).`;
}

/** A line through values. @param {number[]} values */
function curve(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const points = values.map((value, i) => {
    const y = 60 - (58 * (value - low)) / (high - low || 1);
    return `${(300 * i) / Math.max(values.length - 1, 1)},${y.toFixed(1)}`;
  });
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 -2 300 66");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `from ${shortNumber(values[0])} to ${shortNumber(values[values.length - 1])}`);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.join(" "));
  svg.append(line);
  const range = element("p", { class: "facts" }, `${shortNumber(values[0])} at first, ${shortNumber(values[values.length - 1])} at the end`);
  return element("div", { class: "curve" }, svg, range);
}
