/** The mathematics of the questions, the same as in efemb.fitted; every matrix is row after row. */

/** @import { Floats } from "./types" */

/** Inner products of all rows of a matrix with a vector. @param {Floats} matrix @param {Floats} vector */
export function multiply(matrix, vector) {
  const k = vector.length;
  const products = new Float64Array(k ? matrix.length / k : 0);
  for (let row = 0, start = 0; row < products.length; row++, start += k) {
    let sum = 0;
    for (let j = 0; j < k; j++) sum += matrix[start + j] * vector[j];
    products[row] = sum;
  }
  return products;
}

/** @param {Floats} matrix @param {number} row @param {number} k */
export function takeRow(matrix, row, k) {
  return Float64Array.from(matrix.subarray(row * k, (row + 1) * k));
}

/**
 * Sum of some rows, each times a weight.
 * @param {Floats} matrix @param {number} k @param {[number, number][]} weights of rows
 */
export function addRows(matrix, k, weights) {
  const sum = new Float64Array(k);
  for (const [row, weight] of weights) for (let j = 0; j < k; j++) sum[j] += weight * matrix[row * k + j];
  return sum;
}

/** Square roots of x . S x for all rows x, S being symmetric. @param {Floats} matrix @param {Floats} S @param {number} k */
export function quadraticLengths(matrix, S, k) {
  const lengths = new Float64Array(matrix.length / k);
  for (let row = 0; row < lengths.length; row++) {
    const vector = matrix.subarray(row * k, (row + 1) * k), image = multiply(S, vector);
    lengths[row] = Math.sqrt(Math.max(0, image.reduce((sum, value, j) => sum + value * vector[j], 0)));
  }
  return lengths;
}

/** Lengths of all rows. @param {Floats} matrix @param {number} k */
export function rowLengths(matrix, k) {
  const lengths = new Float64Array(matrix.length / k);
  for (let row = 0; row < lengths.length; row++) {
    let sum = 0;
    for (let j = row * k; j < (row + 1) * k; j++) sum += matrix[j] * matrix[j];
    lengths[row] = Math.sqrt(sum);
  }
  return lengths;
}

/**
 * Places of the n largest scores, the best first, ties in order; NaN and -Infinity are left out.
 * @param {Floats} scores @param {number} n @param {Set<number>} [without] @returns {number[]}
 */
export function largest(scores, n, without = new Set()) {
  /** @type {number[]} */ const best = [];
  for (let i = 0; i < scores.length; i++) {
    const score = scores[i];
    if (!(score > -Infinity) || (best.length === n && score <= scores[best[n - 1]])) continue;
    if (without.has(i)) continue;
    let place = best.length;
    while (place > 0 && scores[best[place - 1]] < score) place--;
    best.splice(place, 0, i);
    if (best.length > n) best.pop();
  }
  return best;
}

/** Cosines of all rows with a vector; 0 where either is zero. @param {Floats} matrix @param {Floats} lengths @param {Floats} vector */
export function cosines(matrix, lengths, vector) {
  const size = Math.hypot(...vector);
  return multiply(matrix, vector).map((product, row) => correlation(product, lengths[row] * size));
}

/** @param {number} product @param {number} size */
export const correlation = (product, size) => (size > 0 ? Math.max(-1, Math.min(1, product / size)) : 0);

const NORMAL_95 = 1.959963984540054;

/** Lift with the score interval of a Poisson count. @param {number} together @param {number} expected */
export function liftInterval(together, expected) {
  if (!(expected > 0)) return { lift: NaN, low: NaN, high: NaN };
  const middle = together + NORMAL_95 ** 2 / 2;
  const half = NORMAL_95 * Math.sqrt(together + NORMAL_95 ** 2 / 4);
  return { lift: together / expected, low: Math.max(middle - half, 0) / expected, high: (middle + half) / expected };
}

/** log(1 + exp(u)) without overflow. @param {number} u */
const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));
/** @param {number} u */
const logistic = (u) => (u >= 0 ? 1 / (1 + Math.exp(-u)) : Math.exp(u) / (1 + Math.exp(u)));
/** @param {number} v */
const exponential = (v) => Math.exp(Math.min(v, 300));

/** @type {Record<string, (u: number) => number>} */ const LINKS = {
  identity: (u) => u, log: (u) => Math.log(Math.max(u, 1e-6)), softplus,
  "log-softplus": (u) => (u < -15 ? u : Math.log(softplus(u))),
};
/** @type {Record<string, (v: number) => number>} */ const MEANS = {
  poisson: exponential, "negative-binomial": exponential, categorical: exponential, bernoulli: logistic,
  gaussian: (v) => v,
};

/** E[x] of linear predictors. @param {Float64Array} u @param {string} family @param {string} link */
export function expectedValues(u, family, link) {
  return u.map((value) => MEANS[family](LINKS[link](value)));
}

/**
 * Shares of the means; `noise` are logarithms that replace the family where odds were learned, and
 * `members` get none.
 * @param {Float64Array} u @param {string} family @param {string} link
 * @param {Floats | undefined} noise @param {Iterable<number>} members
 */
export function shares(u, family, link, noise, members) {
  const logarithms = u.map((value, i) => {
    if (noise) return value + noise[i];
    const linked = LINKS[link](value);
    return MEANS[family] === exponential ? linked : Math.log(Math.max(MEANS[family](linked), 1e-300));
  });
  for (const member of members) logarithms[member] = -Infinity;
  const top = logarithms.reduce((most, value) => Math.max(most, value), -Infinity);
  const weights = logarithms.map((value) => Math.exp(value - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
