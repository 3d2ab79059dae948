/** Where plotly runs: in the page itself, or in a frame of its own.
 *
 * plotly's WebGL compiles functions, which the content security policy of the served page forbids. Its
 * server therefore has a second document whose policy allows that and no connection at all; the page
 * draws into it. A self-contained page has no server to protect.
 */

import { unpack } from "./payload.js";

/** @import { Surface } from "./types" */

/** @param {HTMLElement} container @param {boolean} served @returns {Promise<Surface>} */
export async function openSurface(container, served) {
  if (!served) {
    // As text, which the policy admits by its digest; a browser takes far longer to load it from a blob.
    const textContent = new TextDecoder().decode(await unpack("plotly"));
    document.head.append(Object.assign(document.createElement("script"), { textContent }));
    const { Plotly } = /** @type {any} */ (globalThis);
    if (!Plotly) throw new Error("this browser cannot load the map");
    return { Plotly, document, root: container };
  }
  const frame = Object.assign(document.createElement("iframe"), { title: "Map", src: "surface" });
  container.append(frame);
  await new Promise((resolve) => { frame.addEventListener("load", resolve); });
  const inside = /** @type {any} */ (frame.contentWindow);
  if (!inside?.Plotly) throw new Error("the map cannot be loaded");
  return { Plotly: inside.Plotly, document: inside.document, root: inside.document.body };
}
