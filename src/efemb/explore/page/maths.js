/** The mathematics of the questions, the same as in efemb.fitted; every matrix is row after row. */

/** @typedef {Float32Array | Float64Array} Floats */

/**
 * Inner products of all rows of a matrix with a vector.
 * @param {Floats} matrix @param {Floats} vector @returns {Float64Array}
 */
export function multiply(matrix, vector) {
  const k = vector.length;
  const n = k ? matrix.length / k : 0;
  const products = new Float64Array(n);
  for (let row = 0, start = 0; row < n; row++, start += k) {
    let sum = 0;
    for (let j = 0; j < k; j++) sum += matrix[start + j] * vector[j];
    products[row] = sum;
  }
  return products;
}

/** @param {Floats} matrix @param {number} row @param {number} k @returns {Float64Array} */
export function takeRow(matrix, row, k) {
  return Float64Array.from(matrix.subarray(row * k, (row + 1) * k));
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
  /** @type {number[]} */
  const best = [];
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

/** Cosines of all rows with a vector; 0 where either is zero. */
/** @param {Floats} matrix @param {Float64Array} lengths @param {Floats} vector */
export function cosines(matrix, lengths, vector) {
  const products = multiply(matrix, vector);
  let size = 0;
  for (const number of vector) size += number * number;
  size = Math.sqrt(size);
  for (let row = 0; row < products.length; row++) {
    const length = lengths[row] * size;
    products[row] = length > 0 ? Math.max(-1, Math.min(1, products[row] / length)) : 0;
  }
  return products;
}

const NORMAL_95 = 1.959963984540054;

/**
 * Lift with the score interval of a Poisson count.
 * @param {number} together @param {number} expected
 */
export function liftInterval(together, expected) {
  const z = NORMAL_95;
  if (!(expected > 0)) return { lift: NaN, low: NaN, high: NaN };
  const middle = together + (z * z) / 2;
  const half = z * Math.sqrt(together + (z * z) / 4);
  const low = Math.max(middle - half, 0) / expected;
  return { lift: together / expected, low, high: (middle + half) / expected };
}

/** log(1 + exp(u)) without overflow. @param {number} u */
const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));
/** @param {number} u */
const logistic = (u) => (u >= 0 ? 1 / (1 + Math.exp(-u)) : Math.exp(u) / (1 + Math.exp(u)));

/** @type {Record<string, (u: number) => number>} */
const LINKS = {
  identity: (u) => u,
  log: (u) => Math.log(Math.max(u, 1e-6)),
  softplus,
  "log-softplus": (u) => (u < -15 ? u : Math.log(softplus(u))),
};

/** @type {Record<string, (v: number) => number>} */
const MEANS = {
  poisson: (v) => Math.exp(Math.min(v, 300)),
  "negative-binomial": (v) => Math.exp(Math.min(v, 300)),
  categorical: (v) => Math.exp(Math.min(v, 300)),
  bernoulli: logistic,
  gaussian: (v) => v,
};
const LOGARITHMIC = new Set(["poisson", "negative-binomial", "categorical"]);

/**
 * E[x] of linear predictors. @param {Float64Array} u @param {string} family @param {string} link
 */
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
    return LOGARITHMIC.has(family) ? linked : Math.log(Math.max(MEANS[family](linked), 1e-300));
  });
  for (const member of members) logarithms[member] = -Infinity;
  let top = -Infinity;
  for (const value of logarithms) if (value > top) top = value;
  let total = 0;
  const share = logarithms.map((value) => {
    const weight = Math.exp(value - top);
    total += weight;
    return weight;
  });
  return share.map((weight) => weight / total);
}
