// One node: its probabilities, its neighbors, and the parts of the input that its prediction rests on.
"use strict";

const KIND_WORDS = {
  label: (name) => `label shown by ${name}`,
  edge: (name) => `edge to ${name}`,
  features: () => "its features",
};

function nodeView(run, row, open) {
  const { table: nodes } = run,
    explained = run.sections.node.find((node) => node.row === row);
  const truth = nodes.y[row],
    predicted = nodes.predicted[row];
  const isRight = truth === predicted;
  const facts = make(
    "dl",
    { class: "facts" },
    make("dt", {}, "prediction"),
    make("dd", {}, classChip(run, predicted), ` ${percent(nodes.confidence[row])}`),
    make("dt", {}, "truth"),
    make(
      "dd",
      {},
      classChip(run, truth),
      truth === NO_CLASS ? "" : make("span", { class: isRight ? "good" : "bad" }, isRight ? "  right" : "  wrong"),
    ),
    make("dt", {}, "split"),
    make("dd", {}, SPLITS[nodes.split[row]]),
    make("dt", {}, "neighbors"),
    make("dd", {}, whole(nodes.degree[row])),
  );
  const p = explained
    ? explained.p.slice(0, 8)
    : Array.from({ length: nodes.top }, (_, k) => [
        nodes.classes[row * nodes.top + k],
        nodes.p[row * nodes.top + k] / LEVELS,
      ]);
  const bars = table(
    [
      ["class", ([c]) => classChip(run, c)],
      ["", ([, value]) => make("div", { class: "meter" }, make("i", { style: { width: `${100 * value}%` } }))],
      ["probability", ([, value]) => percent(value), true],
    ],
    p,
  );
  const left = make(
    "div",
    { class: "card third" },
    make("h3", {}, `Node ${nodes.ids[row]}`),
    facts,
    make("div", { style: { marginTop: "1rem" } }, bars),
  );
  if (!explained) {
    return [
      left,
      make(
        "div",
        { class: "card two-thirds" },
        make("h3", {}, "What the prediction rests on"),
        make(
          "p",
          { class: "lead" },
          `This page explains ${whole(run.sections.node.length)} nodes. To have this one, too, write it with `,
          make("code", {}, `--nodes ${nodes.ids[row]}`),
          ".",
        ),
      ),
    ];
  }
  const middle = make(
    "div",
    { class: "card third" },
    make("h3", {}, "Neighborhood"),
    explained.neighbors.length ? neighborhood(run, explained, open) : null,
    neighborWords(explained),
  );
  return [
    left,
    middle,
    make("div", { class: "card third" }, make("h3", {}, "What the prediction rests on"), effects(run, explained, open)),
  ];
}

function neighborWords(explained) {
  const shown = explained.neighbors.filter((other) => other.shows >= 0).length;
  const cut =
    explained.num_neighbors > explained.neighbors.length
      ? ` ${explained.neighbors.length} of ${whole(explained.num_neighbors)} are drawn, those that show a label first.`
      : "";
  return make(
    "p",
    { class: "note" },
    explained.neighbors.length
      ? `Filled: a neighbor that shows its label to the model (${shown}). Outlined: one that shows none.${cut}`
      : "It has no neighbors.",
  );
}

// The node in the middle, neighbors in one ring or two, sorted by what they show, so that colors stay together.
function neighborhood(run, explained, open) {
  const size = 340,
    mid = size / 2,
    colors = classColors(run);
  const svg = draw("svg", {
    viewBox: `0 0 ${size} ${size}`,
    role: "group",
    "aria-label": `neighbors of ${explained.id}`,
  });
  const order = explained.neighbors
    .map((_, k) => k)
    .sort((a, b) => explained.neighbors[b].shows - explained.neighbors[a].shows);
  const two = order.length > 18,
    at = new Array(order.length);
  order.forEach((k, i) => {
    const angle = (2 * Math.PI * i) / order.length - Math.PI / 2;
    const r = two && i % 2 ? size * 0.28 : size * 0.41;
    at[k] = [mid + r * Math.cos(angle), mid + r * Math.sin(angle)];
  });
  const changes = new Map();
  for (const effect of explained.effects)
    if (effect.kind !== "features") changes.set(effect.id, Math.max(changes.get(effect.id) || 0, Math.abs(effect.change)));
  const most = Math.max(...changes.values(), 1e-9);
  for (const [a, b] of explained.edges)
    svg.append(draw("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1], stroke: css("--line") }));
  explained.neighbors.forEach((other, k) => {
    const weight = (changes.get(other.id) || 0) / most;
    svg.append(
      draw("line", {
        x1: mid,
        y1: mid,
        x2: at[k][0],
        y2: at[k][1],
        stroke: weight ? css("--ink") : css("--faint"),
        "stroke-opacity": 0.35 + 0.5 * weight,
        "stroke-width": 1 + 3 * weight,
      }),
    );
  });
  explained.neighbors.forEach((other, k) => {
    const shows = other.shows >= 0,
      type = other.type ? `, ${other.type}` : "",
      words = `${other.id}${type}: shows ${shows ? className(run, other.shows) : "no label"}`;
    const dot = draw(
      "circle",
      {
        cx: at[k][0],
        cy: at[k][1],
        r: 7,
        fill: shows ? colors[other.shows] : css("--card"),
        stroke: shows ? css("--card") : css("--soft"),
        "stroke-width": 1.5,
      },
      draw("title", {}, words),
    );
    if (other.row >= 0) {
      for (const [name, value] of Object.entries({
        tabindex: 0,
        role: "button",
        "aria-label": words,
        style: "cursor: pointer",
      }))
        dot.setAttribute(name, value);
      dot.addEventListener("click", () => open(other.row));
      dot.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          open(other.row);
        }
      });
    }
    svg.append(dot);
    if (order.length <= 14) {
      const name = other.id.length > 12 ? `${other.id.slice(0, 11)}…` : other.id;
      svg.append(
        draw(
          "text",
          { x: at[k][0], y: at[k][1] + (at[k][1] < mid ? -12 : 20), "text-anchor": "middle", "font-size": 11 },
          name,
        ),
      );
    }
  });
  svg.append(
    draw(
      "circle",
      { cx: mid, cy: mid, r: 11, fill: colors[explained.p[0][0]], stroke: css("--ink"), "stroke-width": 2 },
      draw("title", {}, `${explained.id}: predicted ${className(run, explained.p[0][0])}`),
    ),
  );
  return svg;
}

function effects(run, explained, open) {
  const most = Math.max(...explained.effects.map((effect) => Math.abs(effect.change)), 1e-9),
    predicted = explained.p[0][0];
  const bar = (change) => {
    const width = (50 * Math.abs(change)) / most;
    return make(
      "div",
      { class: "delta" },
      make("i", {
        style: {
          width: `${width}%`,
          left: change < 0 ? `${50 - width}%` : "50%",
          background: change < 0 ? "var(--accent)" : "var(--bad)",
        },
      }),
    );
  };
  const what = (effect) => {
    const words = KIND_WORDS[effect.kind](effect.id);
    const name =
      effect.kind === "features" || effect.row < 0
        ? make("span", {}, words)
        : make("button", { type: "button", class: "link", onclick: () => open(effect.row) }, words);
    const shown = effect.kind === "label" ? explained.neighbors.find((other) => other.id === effect.id) : null;
    return make(
      "div",
      {},
      name,
      shown ? make("div", { class: "note", style: { margin: 0 } }, classChip(run, shown.shows)) : null,
      effect.becomes !== predicted
        ? make("div", { class: "bad", style: { fontSize: "0.85rem" } }, `then ${className(run, effect.becomes)}`)
        : null,
    );
  };
  const digits = most < 0.01 ? 3 : 2;
  return make(
    "div",
    {},
    table(
      [
        ["removed", what],
        ["", (effect) => bar(effect.change)],
        ["points", (effect) => signed(effect.change, digits), true],
      ],
      explained.effects,
    ),
    make(
      "p",
      { class: "note" },
      `Change of the probability of ${className(run, predicted)} when each is removed and the model predicts again: ` +
        `the ${explained.effects.length} largest of ${whole(explained.num_removals)}. ` +
        "Removed features are replaced by those of the average node.",
    ),
  );
}

function openNode(row, focus = true) {
  const run = current();
  state.node = row;
  fill(
    "node-card",
    make(
      "div",
      { class: "grid" },
      nodeView(run, row, (other) => openNode(other)),
    ),
  );
  for (const button of document.querySelectorAll("#node-pick button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.row) === row));
  }
  document.getElementById("node-search").value = run.table.ids[row];
  state.map.mark(row);
  if (focus) document.getElementById("node").scrollIntoView();
}

function nodeButtons(name, nodes) {
  if (!nodes.length) return null;
  const buttons = nodes.map((node) =>
    make(
      "button",
      { type: "button", "data-row": node.row, "aria-pressed": "false", onclick: () => openNode(node.row, false) },
      node.id,
    ),
  );
  return make("div", { class: "bar" }, make("label", {}, `${name}:`), make("div", { class: "pick grow" }, buttons));
}

sections.node = {
  draw(data, run) {
    const { y, predicted, count } = run.table;
    const isWrong = (node) => y[node.row] !== NO_CLASS && y[node.row] !== predicted[node.row];
    const found = (row) => {
      openNode(row, false);
      state.map.goTo(row);
    };
    // a node with neighbors that show labels has something to tell
    const first =
      data.find((node) => node.neighbors.length > 3 && node.neighbors.some((other) => other.shows >= 0)) ?? data[0];
    if (count) queueMicrotask(() => openNode(first ? first.row : 0, false));
    const words =
      `Computed again for ${whole(data.length)} nodes: sure errors, unsure predictions, ` +
      "and a sure node of each class.";
    return [
      searchBox("node-search", "Find", found),
      make(
        "div",
        { id: "node-pick" },
        data.length ? lead(words) : null,
        nodeButtons("wrong", data.filter(isWrong)),
        nodeButtons(
          "right or unknown",
          data.filter((node) => !isWrong(node)),
        ),
      ),
      make("div", { id: "node-card" }),
    ];
  },
  restyle: () => openNode(state.node, false),
};
