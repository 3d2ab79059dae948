/** Where plotly runs: in the page itself, or in a frame of its own.
 *
 * plotly's WebGL compiles functions, which the content security policy of the served page forbids. Its
 * server therefore has a second document whose policy allows that and no connection at all; the page
 * draws into it. A self-contained page has no server to protect.
 */

import { decodeBase64, gunzip } from "./payload.js";

/** @param {HTMLElement} container @param {boolean} served @returns {Promise<{ Plotly: any, document: Document, root: HTMLElement }>} */
export async function openSurface(container, served) {
  if (served) {
    const frame = document.createElement("iframe");
    frame.title = "Map";
    frame.src = "surface";
    const loaded = new Promise((resolve, reject) => {
      frame.addEventListener("load", resolve);
      frame.addEventListener("error", () => reject(new Error("the map cannot be loaded")));
    });
    container.append(frame);
    await loaded;
    const inside = /** @type {any} */ (frame.contentWindow);
    if (!inside?.Plotly) throw new Error("the map cannot be loaded");
    return { Plotly: inside.Plotly, document: inside.document, root: inside.document.body };
  }
  const source = document.getElementById("plotly")?.textContent || "";
  const url = URL.createObjectURL(new Blob([await gunzip(decodeBase64(source.trim()))], { type: "text/javascript" }));
  const script = document.createElement("script");
  script.src = url;
  await new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("this browser cannot load the map")));
    document.head.append(script);
  });
  URL.revokeObjectURL(url);
  return { Plotly: /** @type {any} */ (globalThis).Plotly, document, root: container };
}
