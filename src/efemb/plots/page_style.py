"""How a `Page` looks: on a screen, in the dark, and on paper."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --paper: #ffffff; --shade: #f6f8fa; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8b0b8; --line: #3d444d; --paper: #16191d; --shade: #22272e;
    --link: #79b8ff; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.5rem 0 0.75rem; padding-bottom: 0.25rem;
  border-bottom: 1px solid var(--line); }
p { margin: 0.75rem 0; max-width: 44rem; }
a { color: var(--link); }
nav { margin: 1.25rem 0; padding: 0.5rem 1rem; background: var(--shade); border-radius: 6px; }
nav ol { margin: 0; padding-left: 1.5rem; }
pre { margin: 1rem 0; padding: 0.75rem 1rem; overflow-x: auto; background: var(--shade);
  border-radius: 6px; font: 0.85rem/1.45 ui-monospace, Menlo, Consolas, monospace; }
figure { margin: 1.25rem 0; }
figcaption { margin-top: 0.4rem; color: var(--soft); font-size: 0.9rem; max-width: 44rem; }
img { display: block; max-width: 100%; height: auto; background: #ffffff; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { border-bottom-width: 2px; white-space: nowrap; }
@media (prefers-color-scheme: dark) {
  img { padding: 0.6rem; border-radius: 6px; box-sizing: border-box; } }
@media print {
  :root { --ink: #000000; --soft: #333333; --line: #999999; --paper: #ffffff; --shade: #ffffff;
    --link: #000000; color-scheme: light; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  figure, tr, pre { break-inside: avoid; }
  .table { overflow: visible; }
  img { padding: 0; } }
"""
