// The map of the nodes: colors, search, and a table of selected nodes to save.
"use strict";

// The row of an id: the exact one, or the first that begins with or contains the text.
function findNode(text) {
  const ids = current().table.ids.map((id) => id.toLowerCase());
  const wanted = text.trim().toLowerCase();
  if (!wanted) return -1;
  const tests = [(id) => id === wanted, (id) => id.startsWith(wanted), (id) => id.includes(wanted)];
  return tests.map((test) => ids.findIndex(test)).find((row) => row >= 0) ?? -1;
}

function searchBox(id, words, found) {
  const answer = make("span", { role: "status", class: "note", style: { margin: 0 } });
  const input = make("input", { id, type: "search", class: "grow", placeholder: "id of a node", autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    const row = findNode(input.value);
    answer.textContent = row < 0 ? "no node has this id" : found(row) || "";
  };
  return make(
    "form",
    { class: "bar", role: "search", onsubmit },
    make("label", { for: id }, words),
    input,
    make("button", { type: "submit" }, "Find"),
    answer,
  );
}

// Shows a node on the map, or below it where the sample of the map does not have it.
function showOnMap(row) {
  const isOnMap = state.map.goTo(row);
  openNode(row, !isOnMap);
  if (isOnMap) document.getElementById("map").scrollIntoView();
}

function showSelection(rows) {
  if (!rows) {
    fill("selection", []);
    return;
  }
  const run = current();
  const { table: nodes } = run;
  const columns = [
    ["id", (row) => make("button", { type: "button", class: "link", onclick: () => openNode(row) }, nodes.ids[row])],
    ["truth", (row) => classChip(run, nodes.y[row])],
    ["prediction", (row) => classChip(run, nodes.predicted[row])],
    ["confidence", (row) => percent(nodes.confidence[row]), true],
    ["split", (row) => SPLITS[nodes.split[row]]],
  ];
  const saveRows = () =>
    saveTable(`${run.name.replaceAll("/", "-")}-nodes.csv`, [
      ["id", "truth", "prediction", "confidence", "split"],
      ...rows.map((row) => [
        nodes.ids[row],
        nodes.y[row] === NO_CLASS ? "" : run.classes[nodes.y[row]],
        run.classes[nodes.predicted[row]],
        nodes.confidence[row].toFixed(4),
        nodes.split[row] ? SPLITS[nodes.split[row]] : "",
      ]),
    ]);
  const cut = rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : "";
  const buttons = make(
    "div",
    { class: "bar" },
    make("button", { type: "button", id: "save-csv", onclick: saveRows }, "Save as CSV"),
    make("button", { type: "button", onclick: () => state.map.select(null) }, "Clear"),
  );
  fill("selection", [
    card(
      "below",
      `${whole(rows.length)} nodes selected${cut}`,
      buttons,
      scrolled(table(columns, rows.slice(0, MOST_ROWS))),
    ),
  ]);
}

function colorSwitcher() {
  const choices = [
    ["y", "Truth"],
    ["prediction", "Prediction"],
    ["confidence", "Confidence"],
    ["split", "Split"],
  ];
  return switcher("color of the points", choices, "y", (value) => {
    state.map.color = value;
    state.map.only = null;
    state.map.recolor();
  });
}

function modeSwitcher(holder) {
  const choices = [
    ["pan", "Move"],
    ["lasso", "Lasso"],
  ];
  return switcher("what dragging does", choices, "pan", (value) => {
    state.map.mode = value;
    holder.classList.toggle("lasso", value === "lasso");
  });
}

function zoomButtons() {
  const showAll = () => {
    state.map.fit();
    state.map.paint();
  };
  const buttons = [
    ["Zoom in", "+", () => state.map.zoom(1.5)],
    ["Zoom out", "−", () => state.map.zoom(1 / 1.5)],
    ["Show all", "All", showAll],
  ];
  return make(
    "div",
    { class: "tools" },
    buttons.map(([words, sign, onclick]) => make("button", { type: "button", "aria-label": words, onclick }, sign)),
  );
}

sections.map = {
  draw(data, run) {
    const canvas = make("canvas", {
      id: "map-canvas",
      tabindex: 0,
      role: "img",
      "aria-label": "map of the nodes; arrows move, plus and minus zoom, zero shows all",
    });
    const holder = make("div", { class: "canvas" }, canvas, make("div", { class: "tip hidden", role: "tooltip" }));
    const label = "classes; press one to see it alone";
    const legend = make("div", { class: "legend", id: "legend", role: "group", "aria-label": label });
    state.map = new NodeCanvas(holder, legend, (row) => openNode(row, false), showSelection);
    state.map.show(run, data);
    const search = searchBox("map-search", "Find", (row) => {
      const isOnMap = state.map.goTo(row);
      openNode(row, false);
      return isOnMap ? "" : "not among the points that were drawn";
    });
    const visible = make(
      "button",
      { type: "button", onclick: () => state.map.selectVisible() },
      "Select what is visible",
    );
    return [
      make("div", { class: "bar" }, colorSwitcher(), modeSwitcher(holder), zoomButtons(), visible),
      search,
      make("div", { class: "map" }, holder, legend),
      note(`${data.words}. Pointing at a node says what it is, pressing it opens it below.`),
      make("div", { id: "selection" }),
    ];
  },
  restyle() {
    state.map.recolor();
    state.map.select(state.map.selected);
  },
};
