/** What passes between the modules of the page; the format of the payload is in payload.py. */

import type { ModelView } from "./map.js";

export type Floats = Float32Array | Float64Array;
/** What a person chooses for a term of the model: one of its groups, a number, or any text. */
export interface Term {
  label: string; name: string; columns: string[]; kind: "choice" | "number" | "text";
  asked?: boolean;  // once for each column
  choices?: (string | number)[]; value?: number; input: Record<string, any>;
}
export interface Prediction {
  refused?: string; remark?: string; total: string; terms: Term[]; factor: any;
  tables: Record<string, Record<string, any>>;  // of prices, and the row whose prices are usual
  columns: string[]; explains: boolean; text: boolean;
  family: string; link: string; scaled: boolean; counted: boolean; binary: boolean; has_intercept: boolean; pseudo_count: number;
}
/** What is known of items or lines: an array, of numbers or of places in `names`; how many of all have each. */
export interface Column { key: string; array: string; title?: string; names?: string[]; shares?: number[] }
/** What adds to u: products of a matrix, a row for each item, with a vector. */
export interface Part { term: string; matrix: Floats; vector: Floats }
/** How an answer is listed, see lists.json, and what happens to its rows. */
export interface List {
  title: string; takes: string[]; rows?: Row[] | Promise<Row[]>;
  value: string; label: string; detail: string[][]; kinds: Record<string, string>;
  percent?: boolean; by_size?: boolean; shown?: number; adds?: boolean;
  color?: string; other?: string; marked: number;
  empty: string; foot?: string;
  view: ModelView; after?: Node[]; choose?: (row: Row) => void; buttons?: (row: Row) => Node[];
}
/** What a list became. */
export interface Shown { node: Node; lit: Mark[]; rows: Row[] }
export type Section = Node | Shown | Promise<Shown>;
export interface Header {
  name: string; n: number; k: number; labels: string[]; short: string[];
  noun: string; article: string; neural: boolean;
  spaces: string[]; maps: { key: string; space: string; method: string; array: string; scene?: object }[];
  prediction: Prediction;
  relations: { target: string; bag: string };
  /** Columns of the answers that were prepared for every item. */
  prepared: Record<string, Column[]>;
  /** Groups of rows with vectors of their own; `in_order` if they are slices of time. */
  slices?: { column: string; labels: (string | number)[]; in_order: boolean };
  columns: Column[];
  /** Ways to color the points: names and colors of buckets, the first of which is the rest. */
  colorings: { key: string; name: string; title: string; buckets: [string, string][] }[];
  /** Values and titles, the default first. */
  choices: Record<string, [string, string][]>;
  /** What plotly is told for every map; see plot.json. */
  plot: Record<string, any>;
  lists: Record<string, Omit<List, "view">>; item_lists: string[]; hints: Record<string, string>;
  arrays: Record<string, { type: string; shape: number[]; offset: number; bits?: number }>;
}
export interface Payload { header: Header; arrays: Record<string, any> }

/** A line of an answer: an item by its number, if it is one, and what the question says of it. */
export type Row = Record<string, any>;
/** Items and amounts, or rows and weights. */
export type Basket = [number, number][];
/** What a question takes; the page and the server read the same. */
export interface Body {
  item: number; items: number[]; positive: number[]; negative: number[]; space: string; n: number;
  group: number; basket: Basket; row: Record<string, any>;
}
export type Ask = (question: string, body: Record<string, any>) => Promise<any>;

export interface Bucket { name: string; color: string; codes: number[]; isRest: boolean }
/** Where plotly runs: in the page, or in a frame of its own. */
export interface Surface { Plotly: any; document: Document; root: HTMLElement }
/** An item that is lit; the share of a weight is that of the largest. */
export interface Mark { code: number; color?: string; weight?: number; share?: number; view?: ModelView }
/** Pixels from the corner of a map. */
export interface Box { left: number; right: number; top: number; bottom: number }
export type Interval = [number, number];
export interface View { x: Interval; y: Interval }
export interface State {
  map: string; color: string; slice: string; tab: string; theme: string; view: View | null;
  item: number | null; explained: number | null;
  positive: number[]; negative: number[]; basket: Basket; row: Record<string, any>; factor: number;
  space?: string; group?: number; column?: string;
}
