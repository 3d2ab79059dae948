/** Who answers questions: the page itself, or the server that it came from; both take the same bodies. */

/** @import { Ask, Basket, Body, Floats, Payload, Row } from "./types" */

/** @param {number} model number of the model on the server @returns {Ask} */
export function askServer(model) {
  return async (question, body) => {
    const headers = { "Content-Type": "application/json" }, text = JSON.stringify({ model, ...body });
    const response = await fetch(`api/${question}`, { method: "POST", headers, body: text });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `the server answered ${response.status}`);
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
  const k = vector.length, products = new Float64Array(matrix.length / k);
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
  const row = (_, code) => lengthOf(takeRow(matrix, code, k)) || 1;
  const lengths = Array.from({ length: matrix.length / k }, row);
  return new Float64Array(matrix).map((value, i) => value / lengths[Math.floor(i / k)]);
}

/** The same weight for some rows. @param {number[]} rows @param {number} weight @returns {Basket} */
const weigh = (rows, weight) => rows.map((row) => [row, weight]);

/** Sum of rows, each times a weight. @param {Floats} matrix @param {number} k @param {Basket} weights */
function addRows(matrix, k, weights) {
  const sum = new Float64Array(k);
  for (const [row, weight] of weights) for (let j = 0; j < k; j++) sum[j] += weight * matrix[row * k + j];
  return sum;
}

/**
 * Codes of the n largest scores, those of class 0 before those of class 1, and so on; ties are in order, and
 * items of a class below 0 are left out. @param {Floats} scores @param {Int8Array} classes @param {number} n
 */
function best(scores, classes, n) {
  const order = (a, b) => classes[a] - classes[b] || scores[b] - scores[a];
  /** @type {number[]} */ let found = [];
  for (const code of classes.keys()) {
    if (classes[code] < 0 || (found.length === n && order(code, found[n - 1]) >= 0)) continue;
    found = [...found, code].sort(order).slice(0, n);
  }
  return found;
}

/** Lift with the score interval of a Poisson count. @param {number} together @param {number} expected */
function liftInterval(together, expected) {
  const z = 1.959963984540054, half = z * Math.sqrt(together + z ** 2 / 4), middle = together + z ** 2 / 2;
  const chance = expected > 0 ? expected : NaN, low = Math.max(middle - half, 0);
  return { together, lift: together / chance, lift_low: low / chance, lift_high: (middle + half) / chance };
}

/** log(1 + exp(u)) without overflow. @param {number} u */
const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));

/** @type {Record<string, (u: number) => number>} */ const LINKS = {
  identity: (u) => u, log: (u) => Math.log(Math.max(u, 1e-6)), softplus,
  "log-softplus": (u) => (u < -15 ? u : Math.log(softplus(u))),
};

/** Answers by the vectors in the page; each question is a method of that name. */
class PageAnswers {
  /** @param {Payload} payload */
  constructor({ header, arrays }) {
    const { rho = arrays.alpha, alpha = rho, "relation.place": place } = arrays;  // tied models have one
    this.header = header;
    this.k = header.k;
    /** @type {Record<string, any>} */ this.arrays = { ...arrays, rho, alpha };
    /** @type {Floats} */ const bag = this.arrays[header.relations.bag];
    this.bag = place ? bag.map((value, i) => value * place[i % this.k]) : bag;  // as inner products see them
    this.paired = { given: -1, pair: (code) => ({}) };
    /** Vectors divided by their lengths. @type {Record<string, Floats>} */ this.units = {};
  }

  /** An array, or what a group of rows has instead. @returns {Floats} */
  of(name, group) {
    const all = this.arrays[`slices.${name}`], n_groups = this.header.slices?.labels.length || 1;
    return group === undefined || !all ? this.arrays[name] : takeRow(all, group, all.length / n_groups);
  }

  /** Classes for `best`: all items but some. @param {number[]} codes */
  without(codes) {
    const classes = new Int8Array(this.header.n);
    for (const code of codes) classes[code] = -1;
    return classes;
  }

  /** Others near a sum of unit vectors. @param {Basket} weights @param {Partial<Body>} body */
  nearest(weights, { space = "rho", group, n = 5 }, classes = this.without(weights.map(([code]) => code))) {
    const units = this.units[`${space} ${group}`] ??= unitRows(this.of(space, group), this.k);
    const direction = addRows(units, this.k, weights), size = lengthOf(direction);
    const scores = multiply(units, direction).map((product) => ratio(product, size));
    return best(scores, classes, n).map((code) => ({ code, similarity: scores[code] }));
  }

  /** @param {Body} body */
  similar = (body) => this.nearest([[body.item, 1]], body);

  /** @param {Body} body */
  analogy = ({ positive, negative, group, n }) => (
    this.nearest([...weigh(positive, 1), ...weigh(negative, -1)], { group, n }));

  /** What a selection shares: the items in its middle, and those nearest to it. @param {Body} body */
  share({ items, group }) {
    const weights = weigh(items, 1), inside = this.without(items).map((one) => -1 - one);
    return { central: this.nearest(weights, { group }, inside), near: this.nearest(weights, { group }) };
  }

  /** An item in every group: its cosine with itself in the first, and its nearest. @param {Body} body */
  trajectory({ item }) {
    const rows = this.header.slices?.labels.map((_, group) => takeRow(this.of("rho", group), item, this.k));
    return rows?.map((here, group) => ({
      group, similarity: ratio(multiply(here, rows[0])[0], lengthOf(here) * lengthOf(rows[0])),
      near: this.nearest([[item, 1]], { group, n: 3 }),
    }));
  }

  /** What the data say of an item and any other one. @returns {(code: number) => Row} */
  pairsWith(given) {
    const { counts, "support.pointers": pointers, "support.items": items } = this.arrays;
    if (!items || this.paired.given === given) return items ? this.paired.pair : () => ({});
    const together = new Float64Array(this.header.n);
    for (let at = items.indexOf(given), row = 0; at >= 0; at = items.indexOf(given, at + 1)) {
      while (pointers[row + 1] <= at) row++;
      for (let j = pointers[row]; j < pointers[row + 1]; j++) together[items[j]]++;
    }
    const pairs = Array.from(together, (count, code) => (
      liftInterval(count, (counts[code] * counts[given]) / (pointers.length - 1))));
    this.paired = { given, pair: (code) => pairs[code] };  // two questions ask for the same
    return this.paired.pair;
  }

  /** @param {Body} body @returns {Row[]} */
  complements({ item, n, group }) {
    const target = this.of(this.header.relations.target, group), pair = this.pairsWith(item);
    const score = multiply(target, takeRow(this.bag, item, this.k));
    // Surely more often together than by chance first; surely less often together never.
    const classes = this.without([item]).map((excluded, code) => {
      const { lift, lift_low, lift_high } = pair(code);
      return excluded || (lift_high < 1 ? -1 : lift === undefined || lift_low > 1 ? 0 : 1);
    });
    return best(score, classes, n).map((code) => (
      { code, score: score[code], kind: classes[code] ? "unclear" : "complement", ...pair(code) }));
  }

  /** @param {Body} body @returns {Row[]} */
  substitutes({ item, n, group }) {
    const { arrays, bag, k, header: { relations } } = this, hasData = "support.items" in arrays;
    const target = this.of(relations.target, group), own = takeRow(target, item, k);
    const pair = this.pairsWith(item), response = this.of("response", group);
    const mean = multiply(target, arrays["relation.mean"]);
    const product = multiply(target, takeRow(bag, item, k)), back = multiply(bag, own);
    const alike = multiply(target, multiply(arrays["relation.covariance"], own));
    const similarity = alike.map((value, code) => ratio(value, response[code] * response[item]));
    const rank = product.map((value) => -value);
    const classes = this.without([item]).map((excluded, code) => {
      const { lift_low, lift_high } = pair(code);
      const z = ((product[code] - mean[code]) / (response[code] || Infinity)
        + (back[code] - mean[item]) / (response[item] || Infinity)) / 2;
      const isLow = hasData ? lift_high < 1 : z <= relations.low_z;
      const kind = similarity[code] < relations.min_similarity ? 2 : isLow ? 0 : 1;
      if (kind === 0 && !hasData) rank[code] = -z;
      const isLess = product[code] < mean[code] || (lift_high < 1 && kind === 0);
      return excluded || (isLess && !(lift_low > 1) ? kind : -1);
    });
    const kinds = [hasData ? "substitute" : "suggested", "unclear", "apart"];
    return best(rank, classes, n).map((code) => ({
      code, score: product[code], context_similarity: similarity[code], kind: kinds[classes[code]],
      ...pair(code),
    }));
  }

  /** Members of a basket with their weights in the context sum. @param {Basket} basket @returns {Basket} */
  weightMembers(basket) {
    const { scale, text, binary, pseudo_count: pseudo } = this.header.prediction;
    const amounts = basket.map(([, amount]) => (binary ? 1 : amount));
    const counted = scale === "items" && !text;  // every word of a text is a term of its own
    const total = amounts.reduce((sum, amount) => sum + (counted ? 1 : amount), 0);
    return basket.map(([code], i) => [code, amounts[i] / (scale === "none" ? 1 : total + pseudo || 1)]);
  }

  /** The group of a row, and what adds to u beside the context: an intercept, and L . R of terms. */
  shifts(row) {
    const { slices, n, prediction: { terms, has_intercept } } = this.header;
    const place = slices ? slices.labels.indexOf(row[slices.column]) : -1;
    const group = place < 0 ? undefined : place;
    const parts = terms.flatMap(({ label, columns, choices, center = 0, scale = 1 }, number) => {
      const value = row[columns[0]], rows = this.arrays[`term.${number}.rows`];
      if (value === undefined || !rows) return [];
      // Choices have a row each; of a number there are those of its center and of one scale above it.
      const step = (value - center) / scale, chosen = choices?.indexOf(value) ?? 0;
      /** @type {Basket} */ const weights = choices ? [[chosen, 1]] : [[0, 1 - step], [1, step]];
      const entities = this.arrays[`term.${number}.entities`];
      const side = addRows(rows, entities.length / n, chosen < 0 ? [] : weights);
      return [{ term: label, add: multiply(entities, side) }];
    });
    const intercept = { term: "(intercept)", add: this.of("intercept", group) };
    return { group, parts: has_intercept || group !== undefined ? [...parts, intercept] : parts };
  }

  /** @param {Body} body @returns {Row[]} */
  complete({ basket, row, n }) {
    const { relations, prediction: { family, link, columns } } = this.header, { noise } = this.arrays;
    const { group, parts } = this.shifts(row), classes = this.without(basket.map(([code]) => code));
    const sum = addRows(this.bag, this.k, this.weightMembers(basket));
    const u = multiply(this.of(relations.target, group), sum);
    for (const { add } of parts) add.forEach((value, code) => { u[code] += value; });
    const linked = u.map(LINKS[link]), isOdds = family === "bernoulli";
    const logs = isOdds ? linked.map((value) => -softplus(-value)) : linked;
    const mean = family === "gaussian" ? linked : logs.map((value) => Math.exp(Math.min(value, 300)));
    const scores = logs.map((one, code) => (classes[code] ? -Infinity : noise ? u[code] + noise[code] : one));
    const top = scores.reduce((most, value) => Math.max(most, value), -Infinity);
    const weights = scores.map((score) => Math.exp(score - top));
    const total = weights.reduce((all, weight) => all + weight, 0);
    const values = { mean, probability: weights.map((weight) => weight / total) };
    return best(values[columns[0]], classes, n).map((code) => (
      { code, ...Object.fromEntries(columns.map((name) => [name, values[name][code]])) }));
  }

  /** @param {Body} body */
  explain({ basket, item, row }) {
    const { labels, relations, prediction } = this.header, { group, parts } = this.shifts(row);
    const target = takeRow(this.of(relations.target, group), item, this.k);
    const others = prediction.text ? basket : basket.filter(([code]) => code !== item);
    const members = this.weightMembers(others).map(([code, weight]) => (
      { term: labels[code], contribution: weight * multiply(takeRow(this.bag, code, this.k), target)[0] }));
    return [...members, ...parts.map(({ term, add }) => ({ term, contribution: add[item] }))]
      .sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }

  /** Neighbors of a neuron with their weights, the largest first. @param {Body} body @returns {Row[]} */
  weights({ item }) {
    const { "lists.pointers": pointers, "lists.members": members, "lists.weights": weights } = this.arrays;
    const [start, end] = [pointers[item], pointers[item + 1]];
    return Array.from(members.slice(start, end), (code, i) => ({ code, weight: weights[start + i] }));
  }
}
