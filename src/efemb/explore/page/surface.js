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
    const url = URL.createObjectURL(new Blob([await unpack("plotly")], { type: "text/javascript" }));
    await load(document.head, Object.assign(document.createElement("script"), { src: url }));
    URL.revokeObjectURL(url);
    return { Plotly: /** @type {any} */ (globalThis).Plotly, document, root: container };
  }
  const frame = Object.assign(document.createElement("iframe"), { title: "Map", src: "surface" });
  await load(container, frame);
  const inside = /** @type {any} */ (frame.contentWindow);
  if (!inside?.Plotly) throw new Error("the map cannot be loaded");
  return { Plotly: inside.Plotly, document: inside.document, root: inside.document.body };
}

/** @param {HTMLElement} parent @param {HTMLElement} child */
function load(parent, child) {
  return new Promise((resolve, reject) => {
    child.addEventListener("load", resolve);
    child.addEventListener("error", () => reject(new Error("this browser cannot load the map")));
    parent.append(child);
  });
}
