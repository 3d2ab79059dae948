/** Who answers questions: the page itself, or the server that it came from; both take the same bodies. */

import { addRows, correlation, cosines, expectedValues, largest, liftInterval, multiply, quadraticLengths, rowLengths, shares,
  takeRow } from "./maths.js";

/** @import { Ask, Basket, Body, Floats, Payload, Row } from "./types" */

const N_ANSWERS = 10;

/** @param {number} model number of the model on the server @returns {Ask} */
export function askServer(model) {
  return async (question, body) => {
    const response = await fetch(`api/${question}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model, ...body }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `the server answered ${response.status}`);
    return answer;
  };
}

/** @param {Payload} payload @returns {Ask} */
export function askPage(payload) {
  const answers = /** @type {any} */ (new PageAnswers(payload));
  return async (question, body) => answers[question]({ n: N_ANSWERS, ...body });
}

/** Answers by the vectors in the page; each question is a method of that name. */
class PageAnswers {
  /** @param {Payload} payload */
  constructor({ header, arrays }) {
    this.header = header;
    this.arrays = /** @type {Record<string, any>} */ (arrays);
    this.k = header.k;
    /** @type {Record<string, any>} */ this.memory = {};
  }

  /** What is made when it is first needed. @template T @param {string} key @param {() => T} make @returns {T} */
  once(key, make) {
    return (this.memory[key] ??= make());
  }

  /** Vectors of all rows or, of rho, those of a group of rows. @param {string} space @param {number} [group] @returns {Floats} */
  vectors(space, group) {
    const { tied, n } = this.header;
    const name = tied ? "rho" : space, size = n * this.k;
    if (group !== undefined && name === "rho") return this.arrays["slices.rho"].subarray(group * size, (group + 1) * size);
    return this.arrays[name] || this.arrays.rho || this.arrays.alpha;
  }

  /** @param {string} space @param {number} [group] */
  lengths(space, group) {
    return this.once(`lengths ${space} ${group}`, () => rowLengths(this.vectors(space, group), this.k));
  }

  /** @param {Row} row @returns {Row} */
  withCount(row) {
    return this.arrays.counts ? { ...row, count: this.arrays.counts[row.code] } : row;
  }

  // -- similarity -------------------------------------------------------------------------------

  /** @param {Floats} direction @param {string} space @param {number} n @param {number[]} without @param {number} [group] */
  nearest(direction, space, n, without, group) {
    const scores = cosines(this.vectors(space, group), this.lengths(space, group), direction);
    return largest(scores, n, new Set(without)).map((code) => this.withCount({ code, similarity: scores[code] }));
  }

  /** Sum of unit vectors of rho. @param {number[]} codes @param {number} sign @param {number} [group] @returns {Basket} */
  unitWeights(codes, sign, group) {
    return codes.map((code) => [code, sign / (this.lengths("rho", group)[code] || 1)]);
  }

  /** @param {Body} body */
  similar({ item, space, n, group }) {
    return this.nearest(takeRow(this.vectors(space, group), item, this.k), space, n, [item], group);
  }

  /** @param {Body} body */
  analogy({ positive, negative, n, group }) {
    const weights = [...this.unitWeights(positive, 1, group), ...this.unitWeights(negative, -1, group)];
    return this.nearest(addRows(this.vectors("rho", group), this.k, weights), "rho", n, [...positive, ...negative], group);
  }

  /** What a selection shares: the items in its middle, and those nearest to it. @param {Body} body */
  share({ items, group }) {
    const middle = addRows(this.vectors("rho", group), this.k, this.unitWeights(items, 1, group));
    const inside = new Set(items);
    const others = Array.from({ length: this.header.n }, (_, code) => code).filter((code) => !inside.has(code));
    return { central: this.nearest(middle, "rho", 5, others, group), near: this.nearest(middle, "rho", 5, items, group) };
  }

  /** An item in every group: how far it moved from the first, and its nearest there. @param {Body} body */
  trajectory({ item }) {
    const { k, header } = this;
    const first = takeRow(this.vectors("rho", 0), item, k);
    return header.slices?.labels.map((_, group) => {
      const here = takeRow(this.vectors("rho", group), item, k);
      const distance = Math.hypot(...here.map((value, j) => value - first[j]));
      const similarity = correlation(multiply(here, first)[0], Math.hypot(...here) * Math.hypot(...first));
      return { group, distance, similarity, near: this.nearest(here, "rho", 3, [item], group) };
    });
  }

  // -- relations --------------------------------------------------------------------------------

  /** Context vectors as inner products see them: weights of places are in them. @returns {Floats} */
  get bag() {
    return this.once("bag", () => {
      const place = this.arrays["relation.place"], bag = this.vectors(this.header.relations.bag);
      return place.every((/** @type {number} */ weight) => weight === 1) ? bag
        : bag.map((value, i) => value * place[i % this.k]);
    });
  }

  /** @param {number} [group] */
  target(group) {
    return this.vectors(this.header.relations.target, group);
  }

  /** Standard deviation of the inner products of each item with all contexts. @param {number} [group] @returns {Floats} */
  responses(group) {
    if (group === undefined) return this.arrays["relation.response"];
    const covariance = this.arrays["relation.covariance"];
    return this.once(`response ${group}`, () => quadraticLengths(this.target(group), covariance, this.k));
  }

  /** @param {Body} body @returns {Row[]} */
  complements({ item, n, group }) {
    const score = multiply(this.target(group), takeRow(this.bag, item, this.k));
    const pairs = this.pairsWith(item);
    if (!pairs) return largest(score, n, new Set([item])).map((code) => this.withCount({ code, score: score[code] }));
    // Surely more often together than by chance first; surely less often together never.
    const unsure = new Set([item]), decided = new Set([item]);
    for (let i = 0; i < this.header.n; i++) {
      const { lift_low, lift_high } = pairs(i);
      if (!(lift_low > 1)) unsure.add(i);
      if (lift_low > 1 || lift_high < 1) decided.add(i);
    }
    const sure = largest(score, n, unsure);
    return [...sure, ...largest(score, n, decided)].slice(0, n).map((code, i) => (
      { code, score: score[code], kind: i < sure.length ? "complement" : "unclear", ...pairs(code) }));
  }

  /** @param {Body} body @returns {Row[]} */
  substitutes({ item, n, group }) {
    const { k, arrays, header } = this;
    const target = this.target(group), own = takeRow(target, item, k), response = this.responses(group);
    const mean = multiply(target, arrays["relation.mean"]);
    const product = multiply(target, takeRow(this.bag, item, k)), back = multiply(this.bag, own);
    const alike = multiply(target, multiply(arrays["relation.covariance"], own));
    const pairs = this.pairsWith(item);
    const rows = [];
    for (let i = 0; i < header.n; i++) {
      const pair = pairs?.(i);
      if (i === item || (pair && pair.lift_low > 1)) continue;
      const z = ((product[i] - mean[i]) / (response[i] || Infinity)
        + (back[i] - mean[item]) / (response[item] || Infinity)) / 2;
      const similarity = correlation(alike[i], response[i] * response[item]);
      const repelled = pair !== undefined && pair.lift_high < 1;
      const low = pair ? repelled : z <= header.relations.low_z;
      const kind = similarity < header.relations.min_similarity ? 2 : low ? 0 : 1;
      if (!(product[i] < mean[i] || (repelled && kind === 0))) continue;
      rows.push({ code: i, score: product[i], context_similarity: similarity, kind, rank: kind === 0 && !pair ? z : product[i] });
    }
    rows.sort((a, b) => a.kind - b.kind || a.rank - b.rank || a.code - b.code);
    const names = [pairs ? "substitute" : "suggested", "unclear", "apart"];
    return rows.slice(0, n).map(({ rank, kind, ...row }) => (
      { ...row, kind: names[kind], ...(pairs ? pairs(row.code) : this.withCount(row)) }));
  }

  /** Rows that hold each item, one item after the other. @returns {{ starts: Int32Array, rows: Int32Array } | null} */
  get inverted() {
    return this.once("inverted", () => {
      const pointers = this.arrays["support.pointers"], items = this.arrays["support.items"];
      if (!pointers) return null;
      const starts = new Int32Array(this.header.n + 1), rows = new Int32Array(items.length);
      for (const item of items) starts[item + 1]++;
      for (let i = 0; i < this.header.n; i++) starts[i + 1] += starts[i];
      const next = starts.slice();
      for (let row = 0; row + 1 < pointers.length; row++) {
        for (let j = pointers[row]; j < pointers[row + 1]; j++) rows[next[items[j]]++] = row;
      }
      return { starts, rows };
    });
  }

  /** What the data say of an item and any other one, null without data. @param {number} given */
  pairsWith(given) {
    if (!this.inverted) return null;
    const { starts, rows } = this.inverted, pointers = this.arrays["support.pointers"];
    const together = new Float64Array(this.header.n), count = (/** @type {number} */ code) => starts[code + 1] - starts[code];
    for (let i = starts[given]; i < starts[given + 1]; i++) {
      for (let j = pointers[rows[i]]; j < pointers[rows[i] + 1]; j++) together[this.arrays["support.items"][j]]++;
    }
    return (/** @type {number} */ code) => {
      const { lift, low, high } = liftInterval(together[code], (count(code) * count(given)) / (pointers.length - 1));
      return { count: count(code), together: together[code], lift, lift_low: low, lift_high: high };
    };
  }

  // -- predictions ------------------------------------------------------------------------------

  /** Members of a basket with their weights in the context sum. @param {Basket} basket @returns {Basket} */
  weightMembers(basket) {
    const { scale, text, binary, pseudo_count: pseudo } = this.header.prediction;
    const amounts = basket.map(([, amount]) => (binary ? Number(amount !== 0) : amount));
    const counted = scale === "items" && !text;  // every word of a text is a term of its own
    const total = amounts.reduce((sum, amount) => sum + (counted ? 1 : amount), 0);
    const divisor = scale === "none" ? 1 : total + pseudo || 1;
    return basket.map(([code], i) => [code, amounts[i] / divisor]);
  }

  /** The group that a row belongs to. @param {Body["row"]} row */
  sliceOf(row) {
    const { slices } = this.header;
    const place = slices ? slices.labels.indexOf(row[slices.column]) : -1;
    return place >= 0 ? place : undefined;
  }

  /** @param {number} [group] @returns {Floats} */
  intercept(group) {
    const { n } = this.header;
    return group === undefined ? this.arrays.intercept : this.arrays["slices.intercept"].subarray(group * n, (group + 1) * n);
  }

  /** L . R of each term with a value, by label. @param {Body["row"]} values */
  termParts(values) {
    /** @type {{ label: string, add: Float64Array }[]} */ const parts = [];
    this.header.prediction.terms.forEach((term, number) => {
      const value = values[term.columns[0]], rows = this.arrays[`term.${number}.rows`];
      if (value === undefined || !rows) return;
      const entities = this.arrays[`term.${number}.entities`], width = entities.length / this.header.n;
      /** @type {Float64Array} */ let side = new Float64Array(width);
      if (term.kind === "choice") {
        const place = (term.choices || []).indexOf(value);
        if (place >= 0) side = takeRow(rows, place, width);
      } else {
        const step = (Number(value) - Number(term.center)) / (term.scale || 1);
        side = side.map((_, j) => rows[j] + step * (rows[width + j] - rows[j]));
      }
      parts.push({ label: term.label, add: multiply(entities, side) });
    });
    return parts;
  }

  /** @param {Body} body @returns {Row[]} */
  complete({ basket, row, n }) {
    const group = this.sliceOf(row), intercept = this.intercept(group), members = basket.map(([code]) => code);
    const u = multiply(this.target(group), addRows(this.bag, this.k, this.weightMembers(basket)));
    const parts = this.termParts(row);
    u.forEach((inner, i) => { u[i] = parts.reduce((sum, { add }) => sum + add[i], inner + intercept[i]); });
    const { family, link, columns } = this.header.prediction;
    /** @type {Record<string, Float64Array>} */ const values = {};
    if (columns.includes("probability")) values.probability = shares(u, family, link, this.arrays.noise, members);
    if (columns.includes("mean")) values.mean = expectedValues(u, family, link);
    return largest(Object.values(values)[0], n, new Set(members)).map((code) => (
      { code, ...Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value[code]])) }));
  }

  /** @param {Body} body @returns {{ term: string, contribution: number }[]} */
  explain({ basket, item, row }) {
    const group = this.sliceOf(row), target = takeRow(this.target(group), item, this.k);
    const { text, has_intercept: shifted } = this.header.prediction;
    const parts = this.weightMembers(text ? basket : basket.filter(([code]) => code !== item)).map(([code, weight]) => (
      { term: this.header.labels[code], contribution: weight * multiply(takeRow(this.bag, code, this.k), target)[0] }));
    if (shifted || group !== undefined) parts.push({ term: "(intercept)", contribution: this.intercept(group)[item] });
    for (const { label, add } of this.termParts(row)) parts.push({ term: label, contribution: add[item] });
    return parts.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }

  /** Neighbors of a neuron with their weights. @param {Body} body @returns {Row[]} */
  weights({ item }) {
    const pointers = this.arrays["lists.pointers"], rows = [];
    for (let i = pointers[item]; i < pointers[item + 1]; i++) {
      rows.push({ code: this.arrays["lists.members"][i], weight: this.arrays["lists.weights"][i] });
    }
    return rows.sort((a, b) => b.weight - a.weight);
  }
}
