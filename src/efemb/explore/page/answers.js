/** Who answers questions: the page itself (`PageAnswers`) or its server (`ServerAnswers`). */

import { cosines, expectedValues, largest, liftInterval, multiply, rowLengths, shares, takeRow }
  from "./maths.js";

/**
 * @typedef {import("./payload.js").Payload} Payload
 * @typedef {import("./maths.js").Floats} Floats
 * @typedef {Record<string, any> & { code: number }} Row a line of an answer
 * @typedef {{ term: string, code: number | null, amount: number | null, contribution: number }} Part
 * @typedef {Map<number, number>} Basket codes and amounts
 * @typedef {Record<string, string | number>} RowValues values of row columns, for terms
 */

export const N_ANSWERS = 10;

/** Answers by the vectors in the page. */
export class PageAnswers {
  /** @param {Payload} payload */
  constructor(payload) {
    this.header = payload.header;
    this.arrays = payload.arrays;
    this.k = payload.header.k;
    /** @type {Record<string, Float64Array>} */
    this.lengths = {};
    /** @type {[Int32Array, Int32Array] | null} */
    this.inverted = null;
    /** @type {Floats | null} */
    this.scaledBag = null;
  }

  /** @param {string} space @returns {Floats} */
  vectors(space) {
    const name = this.header.tied ? "rho" : space;
    return /** @type {Floats} */ (this.arrays[name] || this.arrays.rho || this.arrays.alpha);
  }

  /** @param {string} space */
  lengthsOf(space) {
    return (this.lengths[space] ||= rowLengths(this.vectors(space), this.k));
  }

  /** @param {number} code @param {string} space @param {number} [n] @returns {Promise<Row[]>} */
  async similar(code, space, n = N_ANSWERS) {
    return this.nearest(takeRow(this.vectors(space), code, this.k), space, n, new Set([code]));
  }

  /** @param {Floats} direction @param {string} space @param {number} n @param {Set<number>} without */
  nearest(direction, space, n, without) {
    const scores = cosines(this.vectors(space), this.lengthsOf(space), direction);
    return largest(scores, n, without).map((place) => (
      this.withCount({ code: place, similarity: scores[place] })));
  }

  /** @param {number[]} positive @param {number[]} negative @returns {Promise<Row[]>} */
  async analogy(positive, negative) {
    const lengths = this.lengthsOf("rho");
    const direction = new Float64Array(this.k);
    for (const [codes, sign] of /** @type {[number[], number][]} */ ([[positive, 1], [negative, -1]])) {
      for (const code of codes) {
        const row = takeRow(this.vectors("rho"), code, this.k);
        for (let j = 0; j < this.k; j++) direction[j] += (sign * row[j]) / (lengths[code] || 1);
      }
    }
    return this.nearest(direction, "rho", N_ANSWERS, new Set([...positive, ...negative]));
  }

  /** Context vectors as inner products see them: weights of places are in them. */
  get bag() {
    const { relations } = this.header;
    if (!this.scaledBag) {
      const place = /** @type {Floats} */ (this.arrays["relation.place"]);
      const plain = place.every((weight) => weight === 1);
      const bag = this.vectors(relations.bag);
      this.scaledBag = plain ? bag : bag.map((value, i) => value * place[i % this.k]);
    }
    return this.scaledBag;
  }

  get target() {
    return this.vectors(this.header.relations.target);
  }

  /** @param {number} code @param {number} [n] @returns {Promise<Row[]>} */
  async complements(code, n = N_ANSWERS) {
    const score = multiply(this.target, takeRow(this.bag, code, this.k));
    const together = this.countTogether(code);
    if (!together) {
      return largest(score, n, new Set([code])).map((place) => (
        this.withCount({ code: place, score: score[place] })));
    }
    // Surely more often together than by chance first; surely less often together never.
    const unsure = new Set([code]), decided = new Set([code]);
    for (let i = 0; i < this.header.n; i++) {
      const { low, high } = this.lift(i, code, together);
      if (!(low > 1)) unsure.add(i);
      if (low > 1 || high < 1) decided.add(i);
    }
    const sure = largest(score, n, unsure);
    const places = [...sure, ...largest(score, n, decided)].slice(0, n);
    return places.map((place, i) => this.withSupport(
      { code: place, score: score[place], kind: i < sure.length ? "complement" : "unclear" }, code, together));
  }

  /** @param {number} code @param {number} [n] @returns {Promise<Row[]>} */
  async substitutes(code, n = N_ANSWERS) {
    const { k, arrays, header } = this;
    const mean = arrays["relation.mean"], spread = arrays["relation.spread"];
    const response = arrays["relation.response"];
    const own = takeRow(this.target, code, k);
    const product = multiply(this.target, takeRow(this.bag, code, k));
    const back = multiply(this.bag, own);
    const covariance = /** @type {Floats} */ (arrays["relation.covariance"]);
    const alike = multiply(this.target, multiply(covariance, own));
    const together = this.countTogether(code);
    /** @type {Row[]} */
    const rows = [];
    for (let i = 0; i < header.n; i++) {
      if (i === code) continue;
      const z = ((product[i] - mean[i]) / (spread[i] || Infinity)
        + (back[i] - mean[code]) / (spread[code] || Infinity)) / 2;
      const size = response[i] * response[code];
      const similarity = size > 0 ? Math.max(-1, Math.min(1, alike[i] / size)) : 0;
      const bounds = together ? this.lift(i, code, together) : null;
      const repelled = bounds !== null && bounds.high < 1;
      if (bounds && bounds.low > 1) continue;
      const low = together ? repelled : z <= header.relations.low_z;
      const kind = similarity < header.relations.min_similarity ? 2 : low ? 0 : 1;
      if (!(product[i] < mean[i] || (repelled && kind === 0))) continue;
      const rank = kind === 0 && !together ? z : product[i];
      rows.push({ code: i, product: product[i], similarity, kind, rank });
    }
    rows.sort((a, b) => a.kind - b.kind || a.rank - b.rank || a.code - b.code);
    const names = [together ? "substitute" : "suggested", "unclear", "apart"];
    return rows.slice(0, n).map((row) => this.withSupport(
      { code: row.code, score: row.product, context_similarity: row.similarity, kind: names[row.kind] },
      code, together));
  }

  /** Rows of the data that hold an item and each other one, or null without data. */
  /** @param {number} code @returns {Float64Array | null} */
  countTogether(code) {
    const pointers = this.arrays["support.pointers"], items = this.arrays["support.items"];
    if (!pointers) return null;
    const [starts, rows] = this.invertSupport();
    const together = new Float64Array(this.header.n);
    for (let i = starts[code]; i < starts[code + 1]; i++) {
      for (let j = pointers[rows[i]]; j < pointers[rows[i] + 1]; j++) together[items[j]]++;
    }
    return together;
  }

  /** Rows that hold each item, one item after the other; made once. */
  /** @returns {[Int32Array, Int32Array]} */
  invertSupport() {
    if (this.inverted) return this.inverted;
    const pointers = this.arrays["support.pointers"], items = this.arrays["support.items"];
    const starts = new Int32Array(this.header.n + 1);
    for (const item of items) starts[item + 1]++;
    for (let i = 0; i < this.header.n; i++) starts[i + 1] += starts[i];
    const next = starts.slice(), rows = new Int32Array(items.length);
    for (let row = 0; row + 1 < pointers.length; row++) {
      for (let j = pointers[row]; j < pointers[row + 1]; j++) rows[next[items[j]]++] = row;
    }
    this.inverted = [starts, rows];
    return this.inverted;
  }

  /** @param {number} code @param {number} given @param {Float64Array} together */
  lift(code, given, together) {
    const [starts] = this.invertSupport();
    const nRows = this.arrays["support.pointers"].length - 1;
    const counts = [code, given].map((item) => starts[item + 1] - starts[item]);
    return liftInterval(together[code], (counts[0] * counts[1]) / nRows);
  }

  /** @param {Row} row @param {number} given @param {Float64Array | null} together */
  withSupport(row, given, together) {
    if (!together) return this.withCount(row);
    const { lift, low, high } = this.lift(row.code, given, together);
    const [starts] = this.invertSupport();
    const count = starts[row.code + 1] - starts[row.code];
    return { ...row, count, together: together[row.code], lift, lift_low: low, lift_high: high };
  }

  /** @param {Row} row */
  withCount(row) {
    const counts = this.arrays.counts;
    return counts ? { ...row, count: counts[row.code] } : row;
  }

  // -- predictions ------------------------------------------------------------------------------

  /** @param {number} amount */
  memberAmount(amount) {
    return this.header.prediction.binary ? Number(amount !== 0) : amount;
  }

  /** @param {Basket} basket */
  divisor(basket) {
    const { scale, text } = this.header.prediction;
    const counted = scale === "items" && !text;  // every word of a text is a term of its own
    let divisor = 0;
    for (const amount of basket.values()) divisor += counted ? 1 : this.memberAmount(amount);
    return scale === "none" ? 1 : divisor + this.header.prediction.pseudo_count || 1;
  }

  /** L . R of each term with a value, by label. @param {RowValues} values */
  termParts(values) {
    /** @type {{ label: string, add: Float64Array }[]} */
    const parts = [];
    this.header.prediction.terms.forEach((term, number) => {
      const value = values[term.columns[0]];
      const rows = /** @type {Floats} */ (this.arrays[`term.${number}.rows`]);
      if (value === undefined || !rows) return;
      const entities = /** @type {Floats} */ (this.arrays[`term.${number}.entities`]);
      const width = entities.length / this.header.n;
      /** @type {Float64Array} */
      let side = new Float64Array(width);
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

  /** @param {Basket} basket @param {RowValues} values @returns {Promise<Row[]>} */
  async complete(basket, values) {
    const { prediction } = this.header;
    const sum = new Float64Array(this.k);
    for (const [code, amount] of basket) {
      const row = takeRow(this.bag, code, this.k);
      for (let j = 0; j < this.k; j++) sum[j] += this.memberAmount(amount) * row[j];
    }
    const divisor = this.divisor(basket);
    const intercept = this.arrays.intercept;
    const u = multiply(this.target, sum).map((inner, i) => inner / divisor + intercept[i]);
    for (const { add } of this.termParts(values)) add.forEach((value, i) => { u[i] += value; });
    const { family, link, columns } = prediction;
    const noise = /** @type {Floats | undefined} */ (this.arrays.noise);
    const means = columns.includes("mean") ? expectedValues(u, family, link) : null;
    const probability = columns.includes("probability")
      ? shares(u, family, link, noise, basket.keys()) : null;
    const ranking = /** @type {Float64Array} */ (probability || means);
    return largest(ranking, N_ANSWERS, new Set(basket.keys())).map((code) => ({
      code,
      ...(probability && { probability: probability[code] }),
      ...(means && { mean: means[code] }),
    }));
  }

  /** @param {Basket} basket @param {number} code @param {RowValues} values @returns {Promise<Part[]>} */
  async explain(basket, code, values) {
    const rest = new Map(basket);
    if (!this.header.prediction.text) rest.delete(code);
    const divisor = this.divisor(rest);
    const target = takeRow(this.target, code, this.k);
    /** @type {Part[]} */
    const parts = [...rest].map(([member, amount]) => {
      const bag = takeRow(this.bag, member, this.k);
      const product = target.reduce((sum, value, j) => sum + value * bag[j], 0);
      const contribution = (this.memberAmount(amount) * product) / divisor;
      return { term: this.header.labels[member], code: member, amount, contribution };
    });
    const others = this.termParts(values).map(({ label, add }) => ({ label, value: add[code] }));
    if (this.header.prediction.has_intercept) {
      others.unshift({ label: "(intercept)", value: this.arrays.intercept[code] });
    }
    for (const { label, value } of others) {
      parts.push({ term: label, code: null, amount: null, contribution: value });
    }
    return parts.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }

  /** What a selection shares: the items in its middle, and what comes with all of it. */
  /** @param {number[]} codes */
  async share(codes) {
    const lengths = this.lengthsOf("rho"), vectors = this.vectors("rho");
    const middle = new Float64Array(this.k);
    for (const code of codes) {
      const row = takeRow(vectors, code, this.k);
      for (let j = 0; j < this.k; j++) middle[j] += row[j] / (lengths[code] || 1);
    }
    const scores = cosines(vectors, lengths, middle);
    const inside = codes.slice().sort((a, b) => scores[b] - scores[a] || a - b).slice(0, 5);
    const central = inside.map((code) => this.withCount({ code, similarity: scores[code] }));
    const near = this.nearest(middle, "rho", 5, new Set(codes));
    return { central, near };
  }

  /** Neighbors of a neuron with their weights. @param {number} code @returns {Promise<Row[]>} */
  async weights(code) {
    const pointers = this.arrays["lists.pointers"];
    if (!pointers) return [];
    const rows = [];
    for (let i = pointers[code]; i < pointers[code + 1]; i++) {
      rows.push({ code: this.arrays["lists.members"][i], weight: this.arrays["lists.weights"][i] });
    }
    return rows.sort((a, b) => b.weight - a.weight);
  }

  /** @param {string} name @returns {Promise<Floats>} */
  async map(name) {
    return /** @type {Floats} */ (this.arrays[name]);
  }
}

/** The same questions, answered by the server that the page came from. */
export class ServerAnswers {
  /** @param {Payload} payload @param {number} model number of the model on the server */
  constructor(payload, model) {
    this.header = payload.header;
    this.arrays = payload.arrays;
    this.model = model;
  }

  /** @param {string} question @param {Record<string, any>} body @returns {Promise<any>} */
  async ask(question, body) {
    const response = await fetch(`api/${question}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model: this.model, ...body }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `the server answered ${response.status}`);
    return answer;
  }

  /** @param {number} item @param {string} space @param {number} [n] */
  similar(item, space, n = N_ANSWERS) { return this.ask("similar", { item, space, n }); }
  /** @param {number[]} positive @param {number[]} negative */
  analogy(positive, negative) { return this.ask("analogy", { positive, negative, n: N_ANSWERS }); }
  /** @param {number} item @param {number} [n] */
  complements(item, n = N_ANSWERS) { return this.ask("complements", { item, n }); }
  /** @param {number} item @param {number} [n] */
  substitutes(item, n = N_ANSWERS) { return this.ask("substitutes", { item, n }); }
  /** @param {Basket} basket @param {RowValues} row */
  complete(basket, row) {
    return this.ask("complete", { basket: [...basket], row, n: N_ANSWERS });
  }
  /** @param {Basket} basket @param {number} item @param {RowValues} row */
  explain(basket, item, row) { return this.ask("explain", { basket: [...basket], item, row }); }
  /** @param {Basket} basket @param {RowValues} row @param {string} table @param {number} item @param {number} factor */
  whatIf(basket, row, table, item, factor) {
    return this.ask("what_if", { basket: [...basket], row, table, item, factor, n: N_ANSWERS });
  }
  /** @param {number[]} items */
  share(items) { return this.ask("share", { items }); }
  /** @param {number} item */
  weights(item) { return this.ask("weights", { item }); }

  /** @param {string} name @returns {Promise<Floats>} */
  async map(name) {
    if (!this.arrays[name]) {
      const [, space, method] = name.split(".");
      const points = await this.ask("map", { space, method });
      this.arrays[name] = Float32Array.from(points);
    }
    return /** @type {Floats} */ (this.arrays[name]);
  }
}
