// Elements, numbers, colors, and arrays from text. Names from the data become text nodes, never markup.
"use strict";

// The data of the page, as the dataclasses of `report/payload.py`.
const payload = JSON.parse(document.getElementById("data").textContent);
const { no_class: NO_CLASS, levels: LEVELS, splits: SPLITS, palette: PALETTE, gray: GRAY } = payload.constants;
const MOST_ROWS = 200;

// Each section is `{ draw(data, run), restyle() }`: `draw` returns its elements, `restyle` follows a change of the theme
// where drawing again is not wanted.
const sections = {};
const state = { run: 0 };

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const fill = (id, content) =>
  document.getElementById(id).replaceChildren(...[content].flat(Infinity).filter((child) => child));
const lead = (words) => make("p", { class: "lead" }, words);
const note = (words) => make("p", { class: "note" }, words);
const card = (width, title, ...content) =>
  make("div", { class: `card ${width}` }, title ? make("h3", {}, title) : null, content);
const figure = (name, value, small = null) =>
  make(
    "div",
    { class: "card figure" },
    make("div", { class: "value" }, value, small ? make("small", {}, ` ${small}`) : null),
    make("div", { class: "name" }, name),
  );

function unpack(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new globalThis[payload.constants.arrays[packed.kind]](bytes.buffer);
}

const isNumber = (value) => value !== null && value !== undefined;
const whole = (value) => (isNumber(value) ? value.toLocaleString("en-US") : "–");
const percent = (value, digits = 1) => (isNumber(value) ? `${(100 * value).toFixed(digits)} %` : "–");
const decimal = (value, digits = 4) => (isNumber(value) ? value.toFixed(digits) : "–");
const signed = (value, digits = 1) => `${value < 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(digits)}`;

function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// A score `{ mean, std }`.
const deviation = (score) => (isNumber(score.std) ? `± ${decimal(score.std)}` : "");
const scoreText = (score) => (score ? `${decimal(score.mean)} ${deviation(score)}`.trim() : "–");

const theme = () => document.documentElement.dataset.theme;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The largest classes have colors of their own; the others are gray, and are told apart by pointing at them.
function classColors(run) {
  const palette = PALETTE[theme()];
  if (!run.rank) {
    const size = new Array(run.classes.length).fill(0);
    for (const c of run.table.predicted) size[c]++;
    const bySize = size.map((_, c) => c).sort((a, b) => size[b] - size[a]);
    const colored = bySize.slice(0, palette.length);
    if (run.classes.length <= palette.length) colored.sort((a, b) => a - b);
    run.rank = new Array(size.length).fill(-1);
    colored.forEach((c, k) => (run.rank[c] = k));
  }
  return run.rank.map((k) => (k < 0 ? GRAY[theme()] : palette[k]));
}

const isUnknown = (c) => c < 0 || c === NO_CLASS;
const className = (run, c) => (isUnknown(c) ? "unknown" : run.classes[c]);

function classChip(run, c) {
  const style = isUnknown(c)
    ? { background: "transparent", border: "1px solid var(--faint)" }
    : { background: classColors(run)[c], border: "0" };
  return make("span", { class: "chip" }, make("span", { class: "dot", style }), className(run, c));
}

// The columns of a run's nodes, decoded when they are first read.
function prepare(run) {
  if (run.table || !run.nodes) return run;
  const { count, top } = run.nodes;
  const classes = unpack(run.nodes.classes);
  const p = unpack(run.nodes.p);
  run.table = {
    count,
    top,
    classes,
    p,
    ids: run.nodes.ids.split("\n"),
    y: unpack(run.nodes.y),
    split: unpack(run.nodes.split),
    degree: unpack(run.nodes.degree),
    predicted: Uint16Array.from({ length: count }, (_, i) => classes[i * top]),
    confidence: Float32Array.from({ length: count }, (_, i) => p[i * top] / LEVELS),
  };
  return run;
}
const current = () => prepare(payload.runs[state.run]);

// A table with a caption; `columns` are [title, cell(row), isNumber]. Pressing a row calls `open` with it.
function table(columns, rows, { open = null } = {}) {
  const head = columns.map(([title, , number]) => make("th", { scope: "col", class: number ? "num" : null }, title));
  const body = rows.map((row) => {
    const cells = columns.map(([, value, number], k) => {
      const isHeader = k === 0 && !number;
      const attributes = { class: number ? "num" : null, scope: isHeader ? "row" : null };
      return make(isHeader ? "th" : "td", attributes, value(row) ?? "");
    });
    return make("tr", { onclick: open && (() => open(row)), class: open ? "open" : null }, cells);
  });
  return make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
}
const scrolled = (...content) => make("div", { class: "scroll" }, content);

// Buttons of which one is pressed.
function switcher(label, choices, chosen, choose) {
  const group = make("div", { class: "switch", role: "group", "aria-label": label });
  for (const [value, words] of choices) {
    const onclick = (event) => {
      for (const button of group.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      choose(value);
    };
    group.append(make("button", { type: "button", "aria-pressed": String(value === chosen), onclick }, words));
  }
  return group;
}

// Saves rows of values as CSV. A cell that begins like a formula would be one in a spreadsheet.
function saveTable(name, rows) {
  const cell = (value) => {
    const text = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text = rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
