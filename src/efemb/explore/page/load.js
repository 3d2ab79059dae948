/** Loading: payloads, whose format is in payload.py, and plotly with a place to draw. */

/** @import { Header, Payload, Surface } from "./types" */

/** @type {Record<string, any>} */ const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array,
};

/** What the page carries under a name: compressed bytes as text. @param {string} id */
function unpack(id) {
  const text = document.getElementById(id)?.textContent || "";
  const decode = /** @type {any} */ (Uint8Array).fromBase64;
  const binary = decode ? "" : atob(text), bytes = decode ? decode(text) : new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** @param {number} number of the model @param {boolean} served @returns {Promise<Payload>} */
export async function loadPayload(number, served) {
  const response = served ? await fetch(`api/payload/${number}`) : unpack(`payload-${number}`);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const buffer = await response.arrayBuffer(), size = new DataView(buffer).getUint32(4, true);
  /** @type {Header} */ const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const read = (name) => {
    const { type, shape, offset } = header.arrays[name];
    return new ARRAY_TYPES[type](buffer, 8 + size + offset, shape.reduce((all, side) => all * side, 1));
  };
  const arrays = Object.entries(header.arrays).map(([name, { bits }]) => (
    [name, bits ? restoreVectors(read(name), read(`${name}.scale`), bits / 8) : read(name)]));
  return { header, arrays: Object.fromEntries(arrays) };
}

/** Vectors from planes of bytes in two's complement, the lowest first, and a scale for each row. */
function restoreVectors(bytes, scale, planes) {
  const vectors = new Float32Array(bytes.length / planes), unused = 32 - 8 * planes;
  for (let row = 0, i = 0; row < scale.length; row++) {
    for (const end = ((row + 1) * vectors.length) / scale.length; i < end; i++) {
      let number = 0;
      for (let plane = 0; plane < planes; plane++) number |= bytes[plane * vectors.length + i] << (8 * plane);
      vectors[i] = ((number << unused) >> unused) * scale[row];
    }
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
    const frame = Object.assign(document.createElement("iframe"), { title: "Map", src: "surface" });
    container.append(frame);
    await new Promise((resolve) => { frame.addEventListener("load", resolve); });
    inside = frame.contentWindow;
  } else {
    // As text, which the policy admits by its digest; a browser takes far longer to load it from a blob.
    const textContent = await unpack("plotly").text();
    document.head.append(Object.assign(document.createElement("script"), { textContent }));
  }
  if (!inside.Plotly) throw new Error("this browser cannot load the map");
  const { Plotly, document: one } = inside;
  return { Plotly, document: one, root: served ? one.body : container };
}
