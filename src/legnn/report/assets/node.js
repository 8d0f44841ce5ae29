// One node: its probabilities, its neighbors, and what its prediction rests on.
"use strict";

const KIND_WORDS = {
  label: (name) => `label shown by ${name}`,
  edge: (name) => `edge to ${name}`,
  features: (name, own) => (own ? "its own features" : `features of ${name}`),
};

function nodeView(run, row, open) {
  const { table: nodes } = run, one = run.explanations.get(row);
  const truth = nodes.y[row], predicted = nodes.predicted[row];
  const isRight = truth === predicted;
  const facts = make("dl", { class: "facts" },
    make("dt", {}, "prediction"), make("dd", {}, classChip(run, predicted), ` ${percent(nodes.confidence[row])}`),
    make("dt", {}, "truth"), make("dd", {}, classChip(run, truth), truth === NONE ? "" : make("span", { class: isRight ? "good" : "bad" }, isRight ? "  right" : "  wrong")),
    make("dt", {}, "split"), make("dd", {}, SPLITS[nodes.split[row]]),
    make("dt", {}, "neighbors"), make("dd", {}, whole(nodes.degree[row])));
  const p = one ? one.p.slice(0, 8) : Array.from({ length: nodes.top }, (_, k) => [nodes.classes[row * nodes.top + k], nodes.p[row * nodes.top + k] / 65535]);
  const bars = table([["class", ([c]) => classChip(run, c)], ["", ([, value]) => make("div", { class: "meter" }, make("i", { style: { width: `${100 * value}%` } }))], ["probability", ([, value]) => percent(value), true]], p);
  const left = make("div", { class: "card third" }, make("h3", {}, `Node ${nodes.ids[row]}`), facts, make("div", { style: { marginTop: "1rem" } }, bars));
  if (!one) {
    return [left, make("div", { class: "card two-thirds" }, make("h3", {}, "What the prediction rests on"),
      make("p", { class: "lead" }, `This page was written with ${whole(run.explained.length)} nodes computed again. For this one, write it with `, make("code", {}, `--nodes ${nodes.ids[row]}`), "."))];
  }
  const middle = make("div", { class: "card third" }, make("h3", {}, "Neighborhood"), one.neighbors.length ? neighborhood(run, one, open) : null, neighborWords(one));
  return [left, middle, make("div", { class: "card third" }, make("h3", {}, "What the prediction rests on"), effects(run, one, open))];
}

function neighborWords(one) {
  const shown = one.neighbors.filter((other) => other.shows >= 0).length;
  const cut = one.num_neighbors > one.neighbors.length ? ` ${one.neighbors.length} of ${whole(one.num_neighbors)} neighbors are drawn, those that show a label first.` : "";
  return make("p", { class: "note" }, one.neighbors.length ? `Filled: a neighbor that shows its label to the model (${shown}). Outlined: one that shows none.${cut}` : "It has no neighbors.");
}

// The node in the middle, neighbors in one ring or two, sorted by what they show, so that colors stay together.
function neighborhood(run, one, open) {
  const size = 340, mid = size / 2, colors = classColors(run);
  const svg = draw("svg", { viewBox: `0 0 ${size} ${size}`, role: "group", "aria-label": `neighbors of ${one.id}` });
  const order = one.neighbors.map((_, k) => k).sort((a, b) => one.neighbors[b].shows - one.neighbors[a].shows);
  const two = order.length > 18, at = new Array(order.length);
  order.forEach((k, i) => {
    const angle = (2 * Math.PI * i) / order.length - Math.PI / 2;
    const r = two && i % 2 ? size * 0.28 : size * 0.41;
    at[k] = [mid + r * Math.cos(angle), mid + r * Math.sin(angle)];
  });
  const changes = new Map();
  for (const effect of one.effects) if (!effect.own) changes.set(effect.id, Math.max(changes.get(effect.id) || 0, Math.abs(effect.change)));
  const most = Math.max(...changes.values(), 1e-9);
  for (const [a, b] of one.edges) svg.append(draw("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1], stroke: css("--line") }));
  one.neighbors.forEach((other, k) => {
    const weight = (changes.get(other.id) || 0) / most;
    svg.append(draw("line", { x1: mid, y1: mid, x2: at[k][0], y2: at[k][1], stroke: weight ? css("--ink") : css("--faint"), "stroke-opacity": 0.35 + 0.5 * weight, "stroke-width": 1 + 3 * weight }));
  });
  one.neighbors.forEach((other, k) => {
    const shows = other.shows >= 0, words = `${other.id}${other.type ? `, ${other.type}` : ""}: ${shows ? `shows ${className(run, other.shows)}` : "shows no label"}`;
    const dot = draw("circle", { cx: at[k][0], cy: at[k][1], r: 7, fill: shows ? colors[other.shows] : css("--card"), stroke: shows ? css("--card") : css("--soft"), "stroke-width": 1.5 }, draw("title", {}, words));
    if (other.row >= 0) {
      for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": words, style: "cursor: pointer" })) dot.setAttribute(name, value);
      dot.addEventListener("click", () => open(other.row));
      dot.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(other.row); } });
    }
    svg.append(dot);
    if (order.length <= 14) {
      const name = other.id.length > 12 ? `${other.id.slice(0, 11)}…` : other.id;
      svg.append(draw("text", { x: at[k][0], y: at[k][1] + (at[k][1] < mid ? -12 : 20), "text-anchor": "middle", "font-size": 11 }, name));
    }
  });
  svg.append(draw("circle", { cx: mid, cy: mid, r: 11, fill: colors[one.p[0][0]], stroke: css("--ink"), "stroke-width": 2 }, draw("title", {}, `${one.id}: predicted ${className(run, one.p[0][0])}`)));
  return svg;
}

function effects(run, one, open) {
  const most = Math.max(...one.effects.map((effect) => Math.abs(effect.change)), 1e-9), predicted = one.p[0][0];
  const bar = (change) => {
    const width = (50 * Math.abs(change)) / most;
    return make("div", { class: "delta" }, make("i", { style: { width: `${width}%`, left: change < 0 ? `${50 - width}%` : "50%", background: change < 0 ? "var(--accent)" : "var(--bad)" } }));
  };
  const what = (effect) => {
    const words = KIND_WORDS[effect.kind](effect.id, effect.own);
    const name = effect.own || effect.row < 0 ? make("span", {}, words) : make("button", { type: "button", class: "link", onclick: () => open(effect.row) }, words);
    const shown = effect.kind === "label" ? one.neighbors.find((other) => other.id === effect.id) : null;
    return make("div", {}, name, shown ? make("div", { class: "note", style: { margin: 0 } }, classChip(run, shown.shows)) : null,
      effect.becomes !== predicted ? make("div", { class: "bad", style: { fontSize: "0.85rem" } }, `then ${className(run, effect.becomes)}`) : null);
  };
  const digits = most < 0.01 ? 3 : 2;
  return make("div", {}, table([["removed", what], ["", (effect) => bar(effect.change)], ["points", (effect) => signed(effect.change, digits), true]], one.effects),
    make("p", { class: "note" }, `Change of the probability of ${className(run, predicted)} when each is removed, the model computed again: the ${one.effects.length} largest of ${whole(one.tried)}. Removed features are those of the average node.`));
}
