/** Who answers questions: the page itself, or the server that it came from; both take the same bodies. */

/** @import { Ask, Basket, Body, Floats, Payload, Row } from "./types" */

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
  return async (question, body) => answers[question]({ n: 10, ...body });
}

/** Inner products of all rows of a matrix with a vector. @param {Floats} matrix @param {Floats} vector */
function multiply(matrix, vector) {
  const k = vector.length;
  const products = new Float64Array(matrix.length / k);
  for (let row = 0, start = 0; row < products.length; row++, start += k) {
    let sum = 0;
    for (let j = 0; j < k; j++) sum += matrix[start + j] * vector[j];
    products[row] = sum;
  }
  return products;
}

/** @param {Floats} matrix @param {number} row @param {number} k */
const takeRow = (matrix, row, k) => matrix.subarray(row * k, (row + 1) * k);

/** @param {Floats} vector */
const lengthOf = (vector) => Math.sqrt(multiply(vector, vector)[0]);

/** A cosine or correlation; 0 where it has none. @param {number} product @param {number} size */
const ratio = (product, size) => (size > 0 ? Math.max(-1, Math.min(1, product / size)) : 0);

/** Every row divided by its length. @param {Floats} matrix @param {number} k */
function unitRows(matrix, k) {
  const units = new Float64Array(matrix);
  for (let start = 0; start < units.length; start += k) {
    const row = units.subarray(start, start + k);
    const length = lengthOf(row) || 1;
    for (let j = 0; j < k; j++) row[j] /= length;
  }
  return units;
}

/** Sum of rows, each times a weight. @param {Floats} matrix @param {number} k @param {Basket} weights */
function addRows(matrix, k, weights) {
  const sum = new Float64Array(k);
  for (const [row, weight] of weights) {
    for (let j = 0; j < k; j++) sum[j] += weight * matrix[row * k + j];
  }
  return sum;
}

/**
 * Codes of the n largest scores, those of class 0 before those of class 1, and so on; ties are in order, and
 * items of a class below 0 are left out. @param {Floats} scores @param {Int8Array} classes @param {number} n
 */
function best(scores, classes, n) {
  const order = (a, b) => classes[a] - classes[b] || scores[b] - scores[a];
  return [...classes.keys()].filter((code) => classes[code] >= 0).sort(order).slice(0, n);
}

/** Lift with the score interval of a Poisson count. @param {number} together @returns {Row} */
function liftInterval(together, expected) {
  const z = 1.959963984540054;
  const chance = expected > 0 ? expected : NaN;
  const middle = together + z ** 2 / 2;
  const half = z * Math.sqrt(together + z ** 2 / 4);
  const [low, high] = [Math.max(middle - half, 0), middle + half];
  return { together, lift: together / chance, lift_low: low / chance, lift_high: high / chance };
}

/** log(1 + exp(u)) without overflow. @param {number} u */
const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));

/** @type {Record<string, (u: number) => number>} */ const LINKS = {
  identity: (u) => u,
  log: (u) => Math.log(Math.max(u, 1e-6)),
  softplus,
  "log-softplus": (u) => (u < -15 ? u : Math.log(softplus(u))),
};

/** Answers by the vectors in the page; each question is a method of that name. */
class PageAnswers {
  /** Vectors divided by their lengths, by space and group. @type {Record<string, Floats>} */ units = {};

  /** @param {Payload} payload */
  constructor({ header, arrays }) {
    this.header = header;
    this.arrays = arrays;
    this.k = header.k;
    /** Vectors of the context, as inner products see them. @type {Floats} */
    this.bag = arrays[header.relations.bag];
  }

  /** An array, or what a group of rows has instead. @param {string} name @returns {Floats} */
  of(name, group) {
    const ofGroups = this.arrays[`slices.${name}`];
    if (group === undefined || !ofGroups) return this.arrays[name];
    const { labels = [] } = this.header.slices || {};
    return takeRow(ofGroups, group, ofGroups.length / labels.length);
  }

  /** Classes for `best`: all items but some. @param {number[]} codes */
  without(codes) {
    const classes = new Int8Array(this.header.n);
    for (const code of codes) classes[code] = -1;
    return classes;
  }

  /** Items near a sum of unit vectors. @param {Basket} weights @param {Partial<Body>} body */
  nearest(weights, { space = this.header.spaces[0], group, n = 5 }, classes = this.without(weights.map(([code]) => code))) {
    const units = this.units[`${space} ${group}`] ??= unitRows(this.of(space, group), this.k);
    const direction = addRows(units, this.k, weights);
    const size = lengthOf(direction);
    const cosines = multiply(units, direction).map((product) => ratio(product, size));
    return best(cosines, classes, n).map((code) => ({ code, similarity: cosines[code] }));
  }

  /** @param {Body} body */
  similar(body) {
    return this.nearest([[body.item, 1]], body);
  }

  /** @param {Body} body */
  analogy({ positive, negative, group, n }) {
    const weigh = (codes, weight) => codes.map((code) => [code, weight]);
    return this.nearest([...weigh(positive, 1), ...weigh(negative, -1)], { group, n });
  }

  /** What a selection shares: the items in its middle, and those nearest to it. @param {Body} body */
  share({ items, group }) {
    /** @type {Basket} */ const weights = items.map((code) => [code, 1]);
    const inside = this.without(items).map((outside) => -1 - outside);
    return { central: this.nearest(weights, { group }, inside), near: this.nearest(weights, { group }) };
  }

  /** An item in every group: its cosine with itself in the first, and its nearest. @param {Body} body */
  trajectory({ item }) {
    const { labels = [] } = this.header.slices || {};
    const vectors = labels.map((_, group) => takeRow(this.of("rho", group), item, this.k));
    const lengths = vectors.map(lengthOf);
    return vectors.map((vector, group) => ({
      group,
      similarity: ratio(multiply(vector, vectors[0])[0], lengths[group] * lengths[0]),
      near: this.nearest([[item, 1]], { group, n: 3 }),
    }));
  }

  /** What the data say of an item and each other one; nothing without data. @param {number} item @returns {Row[]} */
  pairsWith(item) {
    const { counts, "support.pointers": pointers, "support.items": members } = this.arrays;
    const together = new Float64Array(this.header.n);
    if (!members) return Array.from(together, () => ({}));
    let row = 0;
    for (let at = members.indexOf(item); at >= 0; at = members.indexOf(item, at + 1)) {
      while (pointers[row + 1] <= at) row++;
      for (const other of members.subarray(pointers[row], pointers[row + 1])) together[other]++;
    }
    const nRows = pointers.length - 1;
    return Array.from(together, (count, code) => liftInterval(count, (counts[code] * counts[item]) / nRows));
  }

  /** @param {Body} body @returns {Row[]} */
  complements({ item, n, group }) {
    const pairs = this.pairsWith(item);
    const target = this.of(this.header.relations.target, group);
    const score = multiply(target, takeRow(this.bag, item, this.k));
    // Surely more often together than by chance first; surely less often together never.
    const classes = this.without([item]).map((excluded, code) => {
      const { lift, lift_low, lift_high } = pairs[code];
      if (lift_high < 1) return -1;
      return excluded || (lift === undefined || lift_low > 1 ? 0 : 1);
    });
    return best(score, classes, n).map((code) => (
      { code, score: score[code], kind: classes[code] ? "unclear" : "complement", ...pairs[code] }));
  }

  /**
   * Items that share the contexts of another one without coming together with it: products of vectors say
   * how often they should, their mean and spread over all items what is usual. @param {Body} body
   */
  substitutes({ item, n, group }) {
    const { arrays, bag, k, header: { relations } } = this;
    const pairs = this.pairsWith(item);
    const hasData = "support.items" in arrays;
    const target = this.of(relations.target, group);
    const spread = this.of("response", group).map((value) => value || Infinity);
    const own = takeRow(target, item, k);
    const mean = multiply(target, arrays["relation.mean"]);
    const there = multiply(target, takeRow(bag, item, k));  // the others given this one
    const back = multiply(bag, own);  // this one given the others
    const shared = multiply(target, multiply(arrays["relation.covariance"], own));
    const similarity = shared.map((value, code) => ratio(value, spread[code] * spread[item]));
    const z = there.map((value, code) => (
      ((value - mean[code]) / spread[code] + (back[code] - mean[item]) / spread[item]) / 2));
    // Class 0: surely less often together than by chance. Class 1: nobody knows.
    const classes = this.without([item]).map((excluded, code) => {
      const { lift_low, lift_high } = pairs[code];
      const isLow = hasData ? lift_high < 1 : z[code] <= relations.low_z;
      const isLess = there[code] < mean[code] || lift_high < 1;
      const isClose = similarity[code] >= relations.min_similarity;
      return excluded || !isClose || !isLess || lift_low > 1 ? -1 : Number(!isLow);
    });
    const rank = there.map((value, code) => (classes[code] === 0 && !hasData ? -z[code] : -value));
    const kinds = [hasData ? "substitute" : "suggested", "unclear"];
    return best(rank, classes, n).map((code) => {
      const kind = kinds[classes[code]];
      return { code, score: there[code], context_similarity: similarity[code], kind, ...pairs[code] };
    });
  }

  /** Members of a basket with their weights in the context sum. @param {Basket} basket @returns {Basket} */
  weightMembers(basket) {
    const { scale, text, binary, pseudo_count } = this.header.prediction;
    /** @type {Basket} */ const members = basket.map(([code, amount]) => [code, binary ? 1 : amount]);
    if (scale === "none") return members;
    const isCounted = scale === "items" && !text;  // every word of a text is a term of its own
    const total = members.reduce((sum, [, amount]) => sum + (isCounted ? 1 : amount), pseudo_count);
    return members.map(([code, amount]) => [code, amount / (total || 1)]);
  }

  /** The group of a row, and what adds to u beside the context: an intercept, and L . R of terms. */
  shifts(row) {
    const { slices, n, prediction: { terms, has_intercept } } = this.header;
    const place = slices ? slices.labels.indexOf(row[slices.column]) : -1;
    const group = place < 0 ? undefined : place;
    /** @type {{ term: string, add: Floats }[]} */ const parts = [];
    for (const [number, { label, columns, choices }] of terms.entries()) {
      const value = row[columns[0]];
      const rows = this.arrays[`term.${number}.rows`];
      if (value === undefined || !rows) continue;
      // Choices have a row each; of numbers there are those of 0 and 1.
      /** @type {Basket} */
      const weights = choices ? [[choices.indexOf(value), 1]] : [[0, 1 - value], [1, value]];
      const entities = this.arrays[`term.${number}.entities`];
      const side = addRows(rows, entities.length / n, weights.filter(([known]) => known >= 0));
      parts.push({ term: label, add: multiply(entities, side) });
    }
    if (has_intercept || group !== undefined) {
      parts.push({ term: "(intercept)", add: this.of("intercept", group) });
    }
    return { group, parts };
  }

  /** Items to add to a basket, by the first column of the prediction. @param {Body} body @returns {Row[]} */
  complete({ basket, row, n }) {
    const { relations, prediction: { family, link, columns } } = this.header;
    const { noise } = this.arrays;
    const { group, parts } = this.shifts(row);
    const sum = addRows(this.bag, this.k, this.weightMembers(basket));
    const u = multiply(this.of(relations.target, group), sum);
    for (const { add } of parts) add.forEach((value, code) => { u[code] += value; });
    const eta = u.map(LINKS[link]);
    // Shares are of means, of odds against noise, or of exp(eta).
    const logs = family === "bernoulli" ? eta.map((value) => -softplus(-value)) : eta;
    const mean = family === "gaussian" ? eta : logs.map((value) => Math.exp(Math.min(value, 300)));
    const classes = this.without(basket.map(([code]) => code));
    const scores = noise ? u.map((value, code) => value + noise[code]) : logs.slice();
    for (const [code] of basket) scores[code] = -Infinity;
    const most = scores.reduce((top, score) => Math.max(top, score), -Infinity);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((all, weight) => all + weight, 0);
    const values = { mean, probability: weights.map((weight) => weight / total) };
    return best(values[columns[0]], classes, n).map((code) => (
      { code, ...Object.fromEntries(columns.map((name) => [name, values[name][code]])) }));
  }

  /** What the members of a basket and the terms add to u. @param {Body} body @returns {Row[]} */
  explain({ basket, item, row }) {
    const { labels, relations, prediction } = this.header;
    const { group, parts } = this.shifts(row);
    const target = takeRow(this.of(relations.target, group), item, this.k);
    const others = prediction.text ? basket : basket.filter(([code]) => code !== item);
    const members = this.weightMembers(others).map(([code, weight]) => {
      const product = multiply(takeRow(this.bag, code, this.k), target)[0];
      return { term: labels[code], contribution: weight * product };
    });
    const shifts = parts.map(({ term, add }) => ({ term, contribution: add[item] }));
    return [...members, ...shifts].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }

  /** Neighbors of a neuron with their weights, the largest first. @param {Body} body @returns {Row[]} */
  weights({ item }) {
    const { "lists.pointers": pointers, "lists.members": members, "lists.weights": weights } = this.arrays;
    const [start, end] = [pointers[item], pointers[item + 1]];
    return Array.from(members.slice(start, end), (code, i) => ({ code, weight: weights[start + i] }));
  }
}
