/** The bytes of a payload as a header and typed arrays; see payload.py for their format. */

/** @import { Header, Numbers, Payload } from "./types" */

const MAGIC = "EFX1";
/** @type {Record<string, any>} */ const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array,
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

/** What the page carries under a name: compressed bytes as text. @param {string} id @returns {Promise<ArrayBuffer>} */
export function unpack(id) {
  const bytes = decodeBase64((document.getElementById(id)?.textContent || "").trim());
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** @param {ArrayBuffer} buffer @returns {Payload} */
export function readPayload(buffer) {
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== MAGIC) throw new Error("this is not the payload of an explorer");
  const size = new DataView(buffer).getUint32(4, true);
  /** @type {Header} */ const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  /** @type {Record<string, Numbers>} */ const arrays = {};
  for (const [name, entry] of Object.entries(header.arrays)) {
    const length = entry.shape.reduce((product, side) => product * side, 1);
    arrays[name] = new ARRAY_TYPES[entry.type](buffer, 8 + size + entry.offset, length);
  }
  for (const [name, { bits }] of Object.entries(header.arrays)) {
    if (bits) arrays[name] = restoreVectors(arrays[name], arrays[`${name}.scale`], bits);
  }
  return { header, arrays };
}

/**
 * Vectors from planes of bytes in two's complement, the lowest plane first.
 * @param {Numbers} planes @param {Numbers} scale @param {number} bits
 */
function restoreVectors(planes, scale, bits) {
  const count = planes.length / (bits / 8);
  const width = scale.length ? count / scale.length : 0;
  const vectors = new Float32Array(count);
  const unused = 32 - bits;
  for (let row = 0, i = 0; row < scale.length; row++) {
    for (const end = i + width; i < end; i++) {
      let number = 0;
      for (let plane = 0; plane < bits / 8; plane++) number |= planes[plane * count + i] << (8 * plane);
      vectors[i] = ((number << unused) >> unused) * scale[row];
    }
  }
  return vectors;
}
