/** Colors: of the points by what is known of the items, and of marks by what they are. */

/** @import { Coloring, Payload } from "./types" */

// Okabe and Ito (2008), distinguishable with any color vision; those of the points are in colors.py.
export const MARKS = {
  similar: "#0072B2", complement: "#009E73", substitute: "#D55E00", member: "#CC79A7", changed: "#E69F00",
  positive: "#0072B2", negative: "#D55E00",
};

/** Items in buckets, each with a name and a color; the first is the rest and drawn first. @param {Payload} payload @param {string} key @returns {Coloring} */
export function colorItems({ header, arrays }, key) {
  const { title, buckets } = header.colorings.find((entry) => entry.key === key) || header.colorings[0];
  /** @type {number[][]} */ const members = buckets.map(() => []);
  arrays[`color.${key}`].forEach((place, code) => { members[place].push(code); });
  const filled = buckets.map(([name, color], i) => ({ name, color, codes: members[i], isRest: i === 0 }));
  return { title, buckets: filled.filter(({ codes }) => codes.length) };
}
