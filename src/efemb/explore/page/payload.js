/** The bytes of a payload as a header and typed arrays; see payload.py for their format. */

/**
 * @typedef {{ space: string, method: string, array: string, title: string }} MapEntry
 * @typedef {{ label: string, columns: string[], kind: "choice" | "number" | "text",
 *   choices?: (string | number)[], center?: number, scale?: number }} TermEntry
 * @typedef {{ refused?: string, columns: string[], explains: boolean, text: boolean, counts: boolean,
 *   family: string, link: string, scale: string, binary: boolean, has_intercept: boolean,
 *   pseudo_count: number, total: string, remark?: string, tables?: string[], terms: TermEntry[] }} PredictionEntry
 * @typedef {{ refused?: string, refused_substitutes?: string, target: string, bag: string,
 *   min_similarity: number, low_z: number }} RelationEntry
 * @typedef {{ facts: string[][], history: { name?: string, passes?: number[], values?: number[] },
 *   scores?: Record<string, number> }} CardEntry
 * @typedef {{ name: string, model: string, n: number, k: number, noun: string, labels: string[],
 *   notes: string[], spaces: string[], maps: MapEntry[], topics: string[], relations: RelationEntry,
 *   prediction: PredictionEntry, card: CardEntry, tied?: boolean,
 *   groups?: { title: string, names: string[] },
 *   quantization?: { bits: number, largest_error: Record<string, number> },
 *   arrays: Record<string, { type: string, shape: number[], offset: number, bits?: number,
 *     rows?: number[] }> }} Header
 * @typedef {Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array
 *   | Int32Array} Numbers
 * @typedef {{ header: Header, arrays: Record<string, Numbers> }} Payload
 */

const MAGIC = "EFX1";
/** @type {Record<string, any>} */
const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array,
  i2: Int16Array, u2: Uint16Array, i4: Int32Array,
};

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
export function decodeBase64(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<ArrayBuffer>} */
export function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** @param {ArrayBuffer} buffer @returns {Payload} */
export function readPayload(buffer) {
  const start = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== MAGIC) throw new Error("this is not the payload of an explorer");
  const size = start.getUint32(4, true);
  /** @type {Header} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  for (const [name, entry] of Object.entries(header.arrays)) {
    const length = entry.shape.reduce((product, side) => product * side, 1);
    arrays[name] = new ARRAY_TYPES[entry.type](buffer, 8 + size + entry.offset, length);
  }
  for (const [name, entry] of Object.entries(header.arrays)) {
    if (entry.bits) {
      const scale = /** @type {Float32Array} */ (arrays[`${name}.scale`]);
      arrays[name] = restoreVectors(/** @type {Uint8Array} */ (arrays[name]), scale, entry.bits);
    }
  }
  return { header, arrays };
}

/**
 * Vectors from planes of bytes in two's complement, the lowest plane first.
 * @param {Uint8Array} planes @param {Float32Array} scale @param {number} bits
 */
function restoreVectors(planes, scale, bits) {
  const count = planes.length / (bits / 8);
  const width = scale.length ? count / scale.length : 0;
  const vectors = new Float32Array(count);
  const unused = 32 - bits;
  for (let i = 0; i < count; i++) {
    let number = 0;
    for (let plane = 0; plane < bits / 8; plane++) number |= planes[plane * count + i] << (8 * plane);
    vectors[i] = ((number << unused) >> unused) * scale[(i / width) | 0];
  }
  return vectors;
}
