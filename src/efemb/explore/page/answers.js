/** Who answers questions: the page itself, or the server that it came from; both take the same bodies. */

/** @import { Ask, Basket, Body, Column, Floats, Part, Payload, Row } from "./types" */

/** @param {number} model number of the model on the server @returns {Ask} */
export function askServer(model) {
  const headers = { "Content-Type": "application/json" };
  return async (question, body) => {
    const content = JSON.stringify({ model, ...body });
    const response = await fetch(`api/${question}`, { method: "POST", headers, body: content });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  };
}

/** @param {Payload} payload @returns {Ask} */
export function askPage(payload) {
  const answers = /** @type {any} */ (new PageAnswers(payload));
  return async (question, body) => (
    question in payload.header.prepared ? answers.prepared(question, body) : answers[question]({ n: 10, ...body }));
}

/** What columns say at a place: numbers, or names. @param {Column[]} columns @returns {Row} */
export const readColumns = (columns, arrays, place) => Object.fromEntries(
  columns.map(({ key, array, names }) => [key, names ? names[arrays[array][place]] : arrays[array][place]]));

/** @param {Floats} a @param {Floats} b */
function dot(a, b) {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j] * b[j];
  return sum;
}

/** @param {Floats} matrix @param {number} row @param {number} k its width */
const takeRow = (matrix, row, k) => matrix.subarray(row * k, (row + 1) * k);

/** Inner products of all rows of a matrix with a vector. @param {Floats} matrix @param {Floats} vector */
const multiply = (matrix, vector) => Float64Array.from(
  { length: matrix.length / vector.length }, (_, row) => dot(takeRow(matrix, row, vector.length), vector));

/** Sum of rows, each times a weight. @param {Floats} matrix @param {number} k @param {Basket} weights */
function combine(matrix, k, weights) {
  const sum = new Float64Array(k);
  for (const [row, weight] of weights) takeRow(matrix, row, k).forEach((value, j) => { sum[j] += weight * value; });
  return sum;
}

/** @param {number[]} codes @returns {Basket} */
const weighAll = (codes, weight) => codes.map((code) => [code, weight]);

/** A cosine; 0 where it has none. */
const cosine = (product, size) => (size > 0 ? Math.max(-1, Math.min(1, product / size)) : 0);

/** Codes of the n largest scores of some items; ties are in order. @param {Floats} scores */
const best = (scores, n, isListed) => (
  [...scores.keys()].filter(isListed).sort((a, b) => scores[b] - scores[a]).slice(0, n));

/** log(1 + exp(u)) without overflow. */
const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));

const LINKS = {
  identity: (u) => u,
  log: (u) => Math.log(Math.max(u, 1e-6)),
  softplus,
  "log-softplus": (u) => (u < -15 ? u : Math.log(softplus(u))),
};

/**
 * Answers by what is in the page: each question is a method of that name. Those about pairs of items were
 * answered by Python for every item; what remains are the best scores of all items, which are inner products.
 */
class PageAnswers {
  /** Lengths of vectors, by their space and group. @type {Record<string, Floats>} */ lengths = {};

  /** @param {Payload} payload */
  constructor({ header, arrays }) {
    this.header = header;
    this.arrays = arrays;
    this.groups = header.slices?.labels ?? [];
  }

  /** An array, or what a group of rows has instead. @param {string} name @returns {Floats} */
  of(name, group = -1) {
    const ofGroups = this.arrays[`slices.${name}`];
    return group < 0 || !ofGroups ? this.arrays[name] : takeRow(ofGroups, group, ofGroups.length / this.groups.length);
  }

  /** Items nearest to a sum of unit vectors: others than these, or those among them. @param {Basket} weights */
  nearest(weights, { space = this.header.spaces[0], group = -1, n = 5 }, isAmong = false) {
    const { header: { k } } = this;
    const vectors = this.of(space, group);
    const lengths = this.lengths[`${space} ${group}`] ??= (
      Float64Array.from({ length: this.header.n }, (_, row) => Math.hypot(...takeRow(vectors, row, k))));
    const direction = combine(vectors, k, weights.map(([code, weight]) => [code, weight / (lengths[code] || 1)]));
    const size = Math.hypot(...direction);
    const cosines = multiply(vectors, direction).map((product, code) => cosine(product, size * lengths[code]));
    const members = new Set(weights.map(([code]) => code));
    return best(cosines, n, (code) => members.has(code) === isAmong)
      .map((code) => ({ code, similarity: cosines[code] }));
  }

  /** @param {Body} body */
  similar({ item, ...body }) {
    return this.nearest(weighAll([item], 1), body);
  }

  /** @param {Body} body */
  analogy({ positive, negative, ...body }) {
    return this.nearest([...weighAll(positive, 1), ...weighAll(negative, -1)], body);
  }

  /** What a selection shares: the items in its middle, and those nearest to it. @param {Body} body */
  share({ items, group }) {
    const weights = weighAll(items, 1);
    return { central: this.nearest(weights, { group }, true), near: this.nearest(weights, { group }) };
  }

  /** What was prepared for an item: of all rows first, then of each group. @returns {Row[]} */
  prepared(question, { item, group = -1 }) {
    const { header: { n, prepared }, arrays } = this;
    const [start, end] = arrays[`${question}.start`].subarray((group + 1) * n + item);
    return Array.from({ length: end - start }, (_, i) => readColumns(prepared[question], arrays, start + i));
  }

  /** Members of a basket with their weights in the context sum. @param {Basket} basket @returns {Basket} */
  weigh(basket) {
    const { scaled, counted, binary, pseudo_count } = this.header.prediction;
    const amountOf = (amount) => (binary ? 1 : amount);
    const total = basket.reduce((sum, [, amount]) => sum + (counted ? 1 : amountOf(amount)), pseudo_count);
    return basket.map(([code, amount]) => [code, amountOf(amount) / ((scaled && total) || 1)]);
  }

  /**
   * What adds to the linear predictor u: the products of a matrix, a row for each item, with a vector. Such are
   * the members of a basket, the terms of the model and the intercept. @returns {Part[]}
   */
  parts({ basket, row }) {
    const { arrays, groups, header: { n, k, labels, slices, relations, prediction: { terms, has_intercept } } } = this;
    const group = slices ? groups.indexOf(row[slices.column]) : -1;
    const target = this.of(relations.target, group);
    /** @type {Part[]} */ const parts = this.weigh(basket).map((member) => (
      { term: labels[member[0]], matrix: target, vector: combine(arrays[relations.bag], k, [member]) }));
    for (const [number, { label, columns: [column], choices }] of terms.entries()) {
      const value = row[column];
      const sides = arrays[`term.${number}.rows`];
      if (value === undefined || !sides || choices?.includes(value) === false) continue;
      // Choices have a row each; of numbers there are those of 0 and 1.
      /** @type {Basket} */ const weights = choices ? [[choices.indexOf(value), 1]] : [[0, 1 - value], [1, value]];
      const matrix = arrays[`term.${number}.entities`];
      parts.push({ term: label, matrix, vector: combine(sides, matrix.length / n, weights) });
    }
    const hasOwn = has_intercept || group >= 0;
    if (hasOwn) parts.push({ term: "(intercept)", matrix: this.of("intercept", group), vector: Float64Array.of(1) });
    return parts;
  }

  /** Items to add to a basket, by the first column of the prediction. @param {Body} body @returns {Row[]} */
  complete({ basket, row, n }) {
    const { arrays: { noise }, header: { prediction: { family, link, columns } } } = this;
    const u = new Float64Array(this.header.n);
    for (const { matrix, vector } of this.parts({ basket, row })) {
      multiply(matrix, vector).forEach((product, code) => { u[code] += product; });
    }
    const eta = u.map(LINKS[link]);
    // Shares are of means, of odds against noise, or of exp(eta).
    const logs = family === "bernoulli" ? eta.map((value) => -softplus(-value)) : eta;
    const mean = family === "gaussian" ? eta : logs.map((value) => Math.exp(Math.min(value, 300)));
    const members = new Set(basket.map(([code]) => code));
    const scores = logs.map((value, code) => (members.has(code) ? -Infinity : value + (noise?.[code] ?? 0)));
    const most = scores.reduce((top, score) => Math.max(top, score), -Infinity);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((all, weight) => all + weight, 0);
    const values = { mean, probability: weights.map((weight) => weight / total) };
    return best(values[columns[0]], n, (code) => !members.has(code)).map((code) => (
      { code, ...Object.fromEntries(columns.map((name) => [name, values[name][code]])) }));
  }

  /** What the members of a basket and the terms add to u. @param {Body} body @returns {Row[]} */
  explain({ basket, item, row }) {
    const others = this.header.prediction.text ? basket : basket.filter(([code]) => code !== item);
    return this.parts({ basket: others, row })
      .map(({ term, matrix, vector }) => (
        { term, contribution: dot(takeRow(matrix, item, vector.length), vector) }))
      .sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }
}
