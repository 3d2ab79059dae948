/** What passes between the modules of the page; the format of the payload is in payload.py. */

export type Numbers = Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array;
export type Floats = Float32Array | Float64Array;
export interface MapEntry { space: string; method: string; array: string; title: string }
/** What a person chooses for a term of the model: one of its groups, a number, or any text. */
export interface TermEntry {
  label: string; columns: string[]; kind: "choice" | "number" | "text";
  choices?: (string | number)[]; center?: number; scale?: number;
}
export interface PredictionEntry {
  refused?: string; remark?: string; columns: string[]; explains: boolean; text: boolean;
  family: string; link: string; scale: string; binary: boolean; has_intercept: boolean; pseudo_count: number;
  total: string; tables?: Record<string, string[]>; terms: TermEntry[];
}
export interface RelationEntry {
  refused?: string; refused_substitutes?: string; target: string; bag: string; min_similarity: number; low_z: number;
}
/** Groups of rows with vectors of their own; `in_order` if they are slices of time. */
export interface SliceEntry { column: string; labels: (string | number)[]; in_order: boolean; drift?: Row[] }
export interface CardEntry { facts: string[][]; history: { name?: string; values?: number[] }; verdict?: string }
/** A way to color the points: names and colors of buckets, the first of which is the rest. */
export interface ColoringEntry { key: string; name: string; title: string; buckets: [string, string][] }
export interface Header {
  name: string; n: number; k: number; noun: string; article: string; neural: boolean; labels: string[]; notes: string[]; spaces: string[];
  maps: MapEntry[]; topics: string[]; relations: RelationEntry; prediction: PredictionEntry; card: CardEntry;
  tied?: boolean; slices?: SliceEntry; groups?: { title: string; names: string[] }; tabs: Record<string, string>;
  colorings: ColoringEntry[];
  arrays: Record<string, { type: string; shape: number[]; offset: number; bits?: number; rows?: number[] }>;
}
export interface Payload { header: Header; arrays: Record<string, Numbers> }

/** A line of an answer: an item by its number, and what the question says of it. */
export type Row = Record<string, any> & { code: number };
/** Items and amounts. */
export type Basket = [number, number][];
/** What a question takes; the page and the server read the same. */
export interface Body {
  item: number; items: number[]; positive: number[]; negative: number[]; space: string; method: string; n: number;
  group: number; basket: Basket; row: Record<string, string | number>; table: string; factor: number;
}
export type Ask = (question: string, body: Partial<Body>) => Promise<any>;

export interface Coloring {
  title: string; buckets: { name: string; color: string; codes: number[]; isRest: boolean }[];
}
export interface Theme { ink: string; paper: string; soft: string }
/** Where plotly runs: in the page, or in a frame of its own. */
export interface Surface { Plotly: any; document: Document; root: HTMLElement }
/** An item that is lit. */
export interface Mark { code: number; color: string; weight?: number }
export type Interval = [number, number];
export interface View { x: Interval; y: Interval }
export interface MapEvents {
  onClick: (code: number) => void; onSelect: (codes: number[]) => void; onView: (view: View) => void;
}
/** Pixels are coordinates * scale + shift. */
export interface Frame {
  width: number; height: number; scale: number[]; shift: number[]; points: Floats; dimensions: number;
}
export interface State {
  map: string; color: string; item: number | null; tab: string; basket: Basket; slice: number | undefined;
  row: Record<string, string | number>; theme: string; view: View | null; factor: number; solid: boolean;
  positive: number[]; negative: number[];
}
/** What a panel shows, and what it lights on the map, and on that of a second model. */
export interface Shown { nodes: Node[]; marks: Mark[]; others?: Mark[] }
/** A line of a list with a bar. */
export interface Line {
  label: string; value: number; text?: string; detail?: string; lit?: boolean; chosen?: boolean;
  choose?: () => void; add?: Node | null;
}
