/** Loading: payloads, whose format is in payload.py, and plotly with a place to draw. */

import { byId, element } from "./dom.js";

/** @import { Header, Payload, Surface } from "./types" */

/** @type {Record<string, any>} */
const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array,
};

/** What the page carries under a name: compressed bytes as text. @param {string} id */
function unpack(id) {
  const text = byId(id).textContent;
  const decode = /** @type {any} */ (Uint8Array).fromBase64;  // new in 2025
  const bytes = decode ? decode(text) : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** @param {number} number of the model @param {boolean} served @returns {Promise<Payload>} */
export async function loadPayload(number, served) {
  const response = served ? await fetch(`api/payload/${number}`) : unpack(`payload-${number}`);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const buffer = await response.arrayBuffer();
  const size = new DataView(buffer).getUint32(4, true);
  /** @type {Header} */ const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  /** @type {Record<string, any>} */ const arrays = {};
  for (const [name, { type, shape, offset, bits }] of Object.entries(header.arrays)) {
    const length = shape.reduce((product, side) => product * side, 1);
    const values = new ARRAY_TYPES[type](buffer, 8 + size + offset, length);
    arrays[name] = bits ? restoreVectors(values, arrays[`${name}.scale`], bits) : values;
  }
  return { header, arrays };
}

/** Vectors from planes of bytes in two's complement, the lowest first, and a scale for each row. */
function restoreVectors(bytes, scale, bits) {
  const vectors = new Float32Array((8 * bytes.length) / bits);
  const k = vectors.length / scale.length;
  for (let i = 0; i < vectors.length; i++) {
    let number = 0;  // in the highest bits, so that the sign is right
    for (let at = i; at < bytes.length; at += vectors.length) number = (number >>> 8) | (bytes[at] << 24);
    vectors[i] = (number >> (32 - bits)) * scale[Math.floor(i / k)];
  }
  return vectors;
}

/**
 * Where plotly runs: in the page or, where it is served, in a frame. plotly's WebGL compiles functions, which
 * the policy of the served page forbids; the document of the frame may do that, but it can reach nothing.
 * @param {HTMLElement} container @param {boolean} served @returns {Promise<Surface>}
 */
export async function openSurface(container, served) {
  /** @type {any} */ let inside = globalThis;
  if (served) {
    const frame = element("iframe", { title: "Map", src: "surface" });
    container.append(frame);
    await new Promise((resolve) => { frame.addEventListener("load", resolve); });
    inside = frame.contentWindow;
  } else {
    // As text, which the policy admits by its digest; a browser takes far longer to load it from a blob.
    document.head.append(element("script", {}, await unpack("plotly").text()));
  }
  const { Plotly, document: own } = inside;
  if (!Plotly) throw new Error("this browser cannot load the map");
  return { Plotly, document: own, root: served ? own.body : container };
}
