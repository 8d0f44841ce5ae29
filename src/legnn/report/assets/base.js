// What every part of the page uses: elements, numbers, colors, arrays from text. Names from the data become text nodes,
// never markup.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const state = { run: 0, redraw: [] };

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const KINDS = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
function unpack(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new KINDS[packed.kind](bytes.buffer);
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

// Okabe and Ito's colors and four more; they stay apart for color-blind readers. Lighter on dark ground.
const PALETTE = {
  light: ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#882255", "#999933", "#6a4fb3", "#8b5e3c"],
  dark: ["#4aa3df", "#f0b43c", "#2fc496", "#f08048", "#8fd0f7", "#e3a0c5", "#d0608f", "#c9c95c", "#a592e8", "#c79a74"],
};
const REST = { light: "#aab2be", dark: "#5f6875" };
const theme = () => document.documentElement.dataset.theme;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The largest classes have colors of their own; all others share a gray, and are told apart by pointing at them.
function classColors(run) {
  if (!run.rank) {
    const size = new Array(run.classes.length).fill(0);
    for (const c of run.table.predicted) size[c]++;
    const order = size.map((n, c) => c).sort((a, b) => size[b] - size[a]);
    run.rank = new Array(size.length).fill(-1);
    const colored = run.classes.length <= PALETTE.light.length ? [...order].sort((a, b) => a - b) : order;
    colored.slice(0, PALETTE.light.length).forEach((c, k) => { run.rank[c] = k; });
  }
  return run.rank.map((k) => (k < 0 ? REST[theme()] : PALETTE[theme()][k]));
}
const className = (run, c) => (c < 0 || c === NONE ? "unknown" : run.classes[c]);
const classChip = (run, c) => make("span", { class: "chip" },
  make("span", { class: "dot", style: { background: c < 0 || c === NONE ? "transparent" : classColors(run)[c], border: c < 0 || c === NONE ? "1px solid var(--faint)" : "0" } }),
  className(run, c));

const NONE = 65535;
const SPLITS = ["none", "train", "val", "test"];

// The columns of a run's nodes, decoded once when they are first asked for.
function prepare(run) {
  if (run.table || !run.nodes) return run;
  const nodes = run.nodes, top = nodes.top;
  const classes = unpack(nodes.classes), p = unpack(nodes.p);
  const table = { count: nodes.count, ids: nodes.ids.split("\n"), y: unpack(nodes.y), split: unpack(nodes.split), degree: unpack(nodes.degree), classes, p, top };
  table.predicted = new Uint16Array(nodes.count);
  table.confidence = new Float32Array(nodes.count);
  for (let i = 0; i < nodes.count; i++) {
    table.predicted[i] = classes[i * top];
    table.confidence[i] = p[i * top] / 65535;
  }
  run.table = table;
  run.places = { rows: unpack(run.map.rows), points: unpack(run.map.points) };
  run.explanations = new Map(run.explained.map((one) => [one.row, one]));
  return run;
}
const current = () => prepare(report.runs[state.run]);

// A table with a caption; `columns` are [title, cell(row), isNumber]. Pressing a row calls `open` with it.
function table(columns, rows, attributes = {}) {
  const head = make("tr", {}, columns.map(([title, , number]) => make("th", { scope: "col", class: number ? "num" : null }, title)));
  const body = rows.map((row) => make("tr", { onclick: attributes.open ? () => attributes.open(row) : null, class: attributes.open ? "open" : null }, columns.map(([, cell, number], k) => {
    const value = cell(row);
    return make(k === 0 && !number ? "th" : "td", { class: number ? "num" : null, scope: k === 0 && !number ? "row" : null }, value ?? "");
  })));
  const caption = attributes.caption ? make("caption", {}, attributes.caption) : null;
  return make("table", {}, caption, make("thead", {}, head), make("tbody", {}, body));
}

// Buttons of which one is pressed.
function switcher(label, choices, chosen, choose) {
  const group = make("div", { class: "switch", role: "group", "aria-label": label });
  for (const [value, words] of choices) {
    group.append(make("button", { type: "button", "aria-pressed": String(value === chosen), onclick: (event) => {
      for (const one of group.children) one.setAttribute("aria-pressed", String(one === event.currentTarget));
      choose(value);
    } }, words));
  }
  return group;
}

function save(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
// A cell that begins like a formula would be one in a spreadsheet.
const cell = (value) => {
  const text = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  if (button) button.textContent = name === "dark" ? "Light" : "Dark";
  for (const again of state.redraw) again();
}
