// Puts the sections into the page, and joins them: what is chosen in one is shown in another.
"use strict";

const fill = (id, content) => document.getElementById(id).replaceChildren(...[content].flat(2).filter((one) => one));
const MOST_ROWS = 200;

function openNode(row, focus = true) {
  const run = current();
  state.node = row;
  fill("node-view", make("div", { class: "grid" }, nodeView(run, row, (other) => openNode(other))));
  for (const button of document.querySelectorAll("#node-pick button")) button.setAttribute("aria-pressed", String(Number(button.dataset.row) === row));
  document.getElementById("node-search").value = run.table.ids[row];
  if (state.map) { state.map.marked = state.map.placeOf.get(row) ?? -1; state.map.paint(); }
  if (focus) document.getElementById("node").scrollIntoView();
}

// On the map, or below it where the sample of the map does not have it.
function showNode(row) {
  const there = state.map.goTo(row);
  openNode(row, !there);
  if (there) document.getElementById("map").scrollIntoView();
}

// The row of an id: as it is, or the first that begins with or contains what was typed.
function findNode(text) {
  const { ids } = current().table, wanted = text.trim().toLowerCase();
  if (!wanted) return -1;
  let begins = -1, holds = -1;
  for (let row = 0; row < ids.length; row++) {
    const id = ids[row].toLowerCase();
    if (id === wanted) return row;
    if (begins < 0 && id.startsWith(wanted)) begins = row;
    else if (holds < 0 && id.includes(wanted)) holds = row;
  }
  return begins >= 0 ? begins : holds;
}

function searchBox(id, words, found) {
  const answer = make("span", { role: "status", class: "note", style: { margin: 0 } });
  const input = make("input", { id, type: "search", class: "grow", placeholder: "id of a node", autocomplete: "off" });
  const form = make("form", { class: "bar", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const row = findNode(input.value);
    answer.textContent = row < 0 ? "no node has this id" : found(row) || "";
  } }, make("label", { for: id }, words), input, make("button", { type: "submit" }, "Find"), answer);
  return form;
}

function showSelection(rows) {
  const run = current(), { table: nodes } = run;
  if (!rows) { fill("selection", []); return; }
  const columns = [["id", (row) => make("button", { type: "button", class: "link", onclick: () => openNode(row) }, nodes.ids[row])], ["truth", (row) => classChip(run, nodes.y[row])], ["prediction", (row) => classChip(run, nodes.predicted[row])], ["confidence", (row) => percent(nodes.confidence[row]), true], ["split", (row) => SPLITS[nodes.split[row]]]];
  const csv = () => [["id", "truth", "prediction", "confidence", "split"], ...[...rows].map((row) => [nodes.ids[row], nodes.y[row] === NONE ? "" : run.classes[nodes.y[row]], run.classes[nodes.predicted[row]], nodes.confidence[row].toFixed(4), nodes.split[row] ? SPLITS[nodes.split[row]] : ""])].map((line) => line.map(cell).join(",")).join("\n");
  const cut = rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : "";
  fill("selection", make("div", { class: "card", style: { marginTop: "1.25rem" } }, make("h3", {}, `${whole(rows.length)} nodes selected${cut}`),
    make("div", { class: "bar" }, make("button", { type: "button", id: "save-csv", onclick: () => save(`${run.name.replaceAll("/", "-")}-nodes.csv`, `${csv()}\n`) }, "Save as CSV"), make("button", { type: "button", onclick: () => state.map.select(null) }, "Clear")),
    make("div", { class: "scroll" }, table(columns, [...rows].slice(0, MOST_ROWS)))));
}

function buildMap() {
  const canvas = make("canvas", { id: "map-canvas", tabindex: 0, role: "img", "aria-label": "map of the nodes; arrows move, plus and minus zoom, zero shows all" });
  const holder = make("div", { class: "canvas" }, canvas, make("div", { class: "tip hidden", role: "tooltip" }));
  const legend = make("div", { class: "legend", id: "legend", role: "group", "aria-label": "classes; press one to see it alone" });
  const colors = switcher("color of the points", [["y", "Truth"], ["prediction", "Prediction"], ["confidence", "Confidence"], ["split", "Split"]], "y", (value) => { state.map.color = value; state.map.only = null; state.map.recolor(); });
  const modes = switcher("what dragging does", [["pan", "Move"], ["lasso", "Lasso"]], "pan", (value) => { state.map.mode = value; holder.classList.toggle("lasso", value === "lasso"); });
  const zooms = [["Zoom in", "+", () => state.map.zoom(1.5)], ["Zoom out", "−", () => state.map.zoom(1 / 1.5)], ["Show all", "All", () => { state.map.fit(); state.map.paint(); }]].map(([words, sign, act]) => make("button", { type: "button", "aria-label": words, onclick: act }, sign));
  const visible = make("button", { type: "button", onclick: () => state.map.selectVisible() }, "Select what is visible");
  const search = searchBox("map-search", "Find", (row) => { const there = state.map.goTo(row); openNode(row, false); return there ? "" : "not among the points that were drawn"; });
  fill("map-view", [make("div", { class: "bar" }, colors, modes, make("div", { class: "tools" }, zooms), visible), search, make("div", { class: "map" }, holder, legend), make("p", { class: "note", id: "map-words" }), make("div", { id: "selection" })]);
  state.map = new NodeMap(holder, legend, (row) => openNode(row, false), showSelection);
}

function drawRun() {
  const run = current();
  document.getElementById("sub").textContent = `${run.name === run.data.name ? "" : `${run.name} · `}${run.title} · ${whole(run.data.nodes)} nodes · ${whole(run.data.classes)} classes`;
  fill("overview-view", overview(run));
  fill("curves-view", curves(run));
  fill("classes-view", classesSection(run));
  fill("reliability-view", reliabilitySection(run));
  if (run.suspicious) fill("labels-view", labelsSection(run, showNode));
  document.getElementById("map-words").textContent = `${run.map.words}. Pointing at a node says what it is, pressing it opens it below.`;
}

function drawNodes() {
  const run = current(), { table: nodes } = run;
  // one that has something to show
  const telling = run.explained.find((one) => one.neighbors.length > 3 && one.neighbors.some((other) => other.shows >= 0)) || run.explained[0];
  const first = telling ? telling.row : 0;
  fill("node-bar", searchBox("node-search", "Find", (row) => { openNode(row, false); state.map.goTo(row); }));
  const words = run.explained.length ? `Computed again for ${whole(run.explained.length)} nodes: sure errors, unsure predictions, and a sure node of each class.` : "";
  const groups = [["wrong", run.explained.filter((one) => nodes.y[one.row] !== NONE && nodes.y[one.row] !== nodes.predicted[one.row])], ["right or unknown", run.explained.filter((one) => nodes.y[one.row] === NONE || nodes.y[one.row] === nodes.predicted[one.row])]];
  fill("node-pick", [words ? make("p", { class: "lead" }, words) : null, ...groups.filter(([, some]) => some.length).map(([name, some]) => make("div", { class: "bar", style: { alignItems: "flex-start" } }, make("label", {}, `${name}:`), make("div", { class: "pick grow" }, some.map((one) => make("button", { type: "button", "data-row": one.row, "aria-pressed": "false", onclick: () => openNode(one.row, false) }, one.id)))))]);
  if (nodes.count) openNode(first, false);
}

function chooseRun(k) {
  state.run = k;
  showSelection(null);
  drawRun();
  state.map.show(current());
  drawNodes();
}

function start() {
  const chosen = matchMedia("(prefers-color-scheme: dark)");
  setTheme(chosen.matches ? "dark" : "light");
  chosen.addEventListener("change", () => setTheme(chosen.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  if (report.live) { startLive(); return; }
  if (report.runs.length > 1) {
    const select = make("select", { id: "run", "aria-label": "run", onchange: (event) => chooseRun(Number(event.target.value)) }, report.runs.map((run, k) => make("option", { value: k }, run.name)));
    document.querySelector(".tools").prepend(select);
  }
  buildMap();
  chooseRun(0);
  state.redraw.push(() => { drawRun(); state.map.recolor(); if (state.node !== undefined) openNode(state.node, false); if (state.map.selected) showSelection(state.map.selected.map((k) => state.map.rows[k])); });
  matchMedia("(max-width: 599px)").addEventListener("change", () => { for (const again of state.redraw) again(); });
  const links = [...document.querySelectorAll("nav.sections a")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) for (const link of links) link.toggleAttribute("aria-current", link.hash === `#${entry.target.id}`);
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("section")) seen.observe(section);
  document.documentElement.dataset.ready = "yes";
}
start();
