/** Colors of the points: items in few buckets, each drawn in one color. */

/**
 * @typedef {import("./payload.js").Payload} Payload
 * @typedef {{ name: string, color: string, codes: Int32Array }} Bucket
 * @typedef {{ title: string, buckets: Bucket[] }} Coloring
 */

// Okabe and Ito (2008), distinguishable with any color vision; the gray is for the rest.
export const HUES = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B5A400"];
export const REST = "#9AA0A6";
// Steps of cividis, dark to light: made for color-blind readers.
const STEPS = ["#00306F", "#3A4A6C", "#5C616E", "#7C7B78", "#9C9472", "#C0B166", "#E6D04A"];

/** The ways to color that a payload allows, by key. @param {Payload} payload */
export function colorings({ header, arrays }) {
  /** @type {Record<string, string>} */
  const ways = {};
  if (arrays.kept) ways.kept = "neighbors kept";
  if (header.groups) ways.groups = header.groups.title;
  if (arrays.counts) ways.counts = "frequency";
  if (arrays.r2) ways.r2 = "R² of each neuron";
  if (arrays.topics) ways.topics = "topic";
  if (arrays.uncertainty) ways.uncertainty = "uncertainty";
  ways.none = "nothing";
  return ways;
}

/** @param {Payload} payload @param {string} way @returns {Coloring} */
export function colorItems({ header, arrays }, way) {
  const n = header.n;
  if (way === "groups" && header.groups) {
    return byCategory(header.groups.title, arrays.groups, header.groups.names, n);
  }
  if (way === "topics") return byCategory("topic", arrays.topics, header.topics, n);
  if (way === "counts") return byNumber("frequency", arrays.counts, true);
  if (way === "kept") return byNumber("share of the 10 nearest kept", arrays.kept, false);
  if (way === "r2") return byNumber("R²", arrays.r2, false);
  if (way === "uncertainty") return byNumber("relative standard error", arrays.uncertainty, true);
  return { title: "", buckets: [{ name: "", color: HUES[0], codes: Int32Array.from({ length: n }, (_, i) => i) }] };
}

/**
 * The largest categories have a hue each.
 * @param {string} title @param {ArrayLike<number>} values @param {string[]} names @param {number} n
 */
function byCategory(title, values, names, n) {
  const sizes = new Array(names.length).fill(0);
  for (let i = 0; i < n; i++) if (values[i] >= 0) sizes[values[i]]++;
  const order = sizes.map((_, code) => code).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const shown = order.slice(0, HUES.length).filter((code) => sizes[code] > 0);
  const place = new Map(shown.map((code, index) => [code, index]));
  /** @type {number[][]} */
  const members = shown.map(() => []);
  /** @type {number[]} */
  const rest = [];
  for (let i = 0; i < n; i++) (members[place.get(values[i]) ?? -1] || rest).push(i);
  const buckets = shown.map((code, index) => (
    { name: names[code], color: HUES[index], codes: Int32Array.from(members[index]) }));
  // The rest is drawn first, below the others.
  if (rest.length) buckets.unshift({ name: "other", color: REST, codes: Int32Array.from(rest) });
  return { title, buckets };
}

/**
 * Steps of equal width, of the logarithm if asked; items without a number are gray.
 * @param {string} title @param {ArrayLike<number>} values @param {boolean} logarithmic
 */
function byNumber(title, values, logarithmic) {
  const scaled = Float64Array.from(values, (value) => (
    logarithmic ? Math.log10(Math.max(value, 1e-12)) : value));
  const known = Array.from(scaled).filter((value, i) => Number.isFinite(value) && (!logarithmic || values[i] > 0));
  known.sort((a, b) => a - b);
  // A few extremes must not leave all others in one step.
  const low = known[Math.floor(0.01 * known.length)] ?? 0;
  const high = Math.max(known[Math.ceil(0.99 * known.length) - 1] ?? 1, low + 1e-12);
  const steps = STEPS.length;
  /** @type {number[][]} */
  const members = STEPS.map(() => []);
  /** @type {number[]} */
  const rest = [];
  scaled.forEach((value, i) => {
    if (!Number.isFinite(value) || (logarithmic && !(values[i] > 0))) return rest.push(i);
    const step = Math.floor(((value - low) / (high - low)) * steps);
    return members[Math.max(0, Math.min(steps - 1, step))].push(i);
  });
  const edge = (/** @type {number} */ step) => {
    const value = low + ((high - low) * step) / steps;
    const number = logarithmic ? 10 ** value : value;
    return shortNumber(number >= 10 ? Math.round(number) : number);
  };
  /** @type {Bucket[]} */
  const buckets = [];
  if (rest.length) buckets.push({ name: logarithmic ? "none" : "unknown", color: REST, codes: Int32Array.from(rest) });
  members.forEach((codes, step) => {
    const name = `${step ? edge(step) : "up"} ${step < steps - 1 ? `to ${edge(step + 1)}` : "and more"}`;
    if (codes.length) buckets.push({ name, color: STEPS[step], codes: Int32Array.from(codes) });
  });
  return { title, buckets };
}

/** Three digits, without exponents where people write none. @param {number} value */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(1);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
