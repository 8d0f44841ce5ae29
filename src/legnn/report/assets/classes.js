// Scores by class, confusion, the most frequent mistakes, and the labels as the model has learned them.
"use strict";

const NO_SCORES = "No node outside the training split has a known class.";
const SMALL = 12; // with more classes, the matrices are wider

function classScores(data, run) {
  const rows = data.scores.map((row, c) => ({ ...row, c }));
  const columns = [
    ["class", (row) => classChip(run, row.c)],
    ["precision", (row) => percent(row.precision), true],
    ["recall", (row) => percent(row.recall), true],
    ["F1", (row) => percent(row.f1), true],
    ["nodes", (row) => whole(row.support), true],
  ];
  for (const other of payload.runs) {
    if (other === run || other.classes.join("\n") !== run.classes.join("\n")) continue;
    const f1 = (row) => percent(other.sections.classes.scores[row.c]?.f1);
    columns.splice(-1, 0, [`F1 of ${other.name}`, f1, true]);
  }
  const orders = {
    size: (a, b) => b.support - a.support,
    f1: (a, b) => a.f1 - b.f1,
    name: (a, b) => a.c - b.c,
  };
  const holder = scrolled();
  const sort = (order) => holder.replaceChildren(table(columns, [...rows].sort(orders[order])));
  const choices = [
    ["size", "Largest"],
    ["f1", "Worst F1"],
    ["name", "In order"],
  ];
  sort("size");
  const bar = make("div", { class: "bar" }, switcher("order of the classes", choices, "size", sort));
  return card("half", "Scores by class", bar, holder);
}

function mistakes(data, run) {
  const columns = [
    ["truth", ([i]) => classChip(run, i)],
    ["predicted as", ([, j]) => classChip(run, j)],
    ["nodes", ([, , count]) => whole(count), true],
    ["of the class", ([i, , count]) => percent(count / Math.max(1, data.scores[i].support)), true],
  ];
  const content = data.pairs.length ? scrolled(table(columns, data.pairs)) : make("p", {}, "No prediction is wrong.");
  return card("half", "Most confused", content);
}

// A table of classes by classes; `cell(i, j)` of positions is `{ text, title, color, alpha }`.
function matrix(run, order, cell) {
  const head = order.map((c) => make("th", { scope: "col", title: run.classes[c] }, run.classes[c].slice(0, 16)));
  const body = order.map((c, i) => {
    const cells = order.map((_, j) => {
      const { text, title, color, alpha } = cell(i, j);
      const isDeep = alpha > (theme() === "light" ? 0.5 : 0.6);
      const style = {
        background: alpha ? `rgb(${color} / ${alpha.toFixed(3)})` : "var(--track)",
        color: isDeep ? (theme() === "light" ? "#fff" : "#10151b") : "inherit",
      };
      return make("td", { title, style }, text);
    });
    return make("tr", {}, make("th", { scope: "row", title: run.classes[c] }, run.classes[c]), cells);
  });
  return make("table", {}, make("thead", {}, make("tr", {}, make("td"), head)), make("tbody", {}, body));
}
const blue = () => css("--blue");
const orange = () => css("--orange");

function confusion(data, run) {
  const holder = make("div", { class: "matrix" });
  const most = Math.max(...data.confusion.flat(), 1);
  const show = (byRow) => {
    const cell = (i, j) => {
      const count = data.confusion[i][j];
      const share = count / Math.max(1, data.scores[data.order[i]].support);
      return {
        text: count ? (byRow ? Math.round(100 * share) || "<1" : count) : "",
        title: `${run.classes[data.order[i]]} predicted as ${run.classes[data.order[j]]}: ${count}`,
        color: i === j ? blue() : orange(),
        alpha: count ? 0.06 + 0.74 * Math.sqrt(byRow ? share : count / most) : 0,
      };
    };
    holder.replaceChildren(matrix(run, data.order, cell));
  };
  const choices = [
    [false, "Nodes"],
    [true, "Percent of row"],
  ];
  show(false);
  const cut = run.classes.length > data.order.length ? ` The ${data.order.length} largest classes.` : "";
  return card(
    run.classes.length <= SMALL ? "half" : "",
    "Confusion",
    make("div", { class: "bar" }, switcher("values of the confusion matrix", choices, false, show)),
    holder,
    note(`True classes by row, predicted ones by column; blue is right, orange wrong.${cut}`),
  );
}

function learnedLabels(labels, run) {
  if (!labels) return null;
  const title = "Labels as the model has learned them";
  const columns = [
    ["classes", ([a]) => classChip(run, a)],
    ["", ([, b]) => classChip(run, b)],
    ["similarity", ([, , cosine]) => decimal(cosine, 3), true],
  ];
  const cell = (i, j) => {
    const cosine = labels.similarity[i][j];
    return {
      text: i === j ? "" : decimal(cosine, 2).replace("0.", "."),
      title: `${run.classes[labels.order[i]]} and ${run.classes[labels.order[j]]}: ${decimal(cosine, 3)}`,
      color: cosine > 0 ? blue() : orange(),
      alpha: 0.02 + 0.8 * Math.abs(cosine),
    };
  };
  const cut = run.classes.length > labels.order.length ? ` The ${labels.order.length} largest classes.` : "";
  const isSmall = run.classes.length <= SMALL;
  return [
    card(isSmall ? "half" : "third", "Closest labels", scrolled(table(columns, labels.pairs))),
    card(
      isSmall ? "half" : "two-thirds",
      title,
      pointChart(labels.points, run.classes, classColors(run), title, isSmall),
      note(
        "Labels are nodes of the graph and have representations; near are those that point the same way " +
          "(two principal components).",
      ),
    ),
    card(
      isSmall ? "half" : "",
      "Similarity of labels",
      make("div", { class: "matrix" }, matrix(run, labels.order, cell)),
      note(`Cosine of the angle between two labels, similar ones next to each other; orange is below 0.${cut}`),
    ),
  ];
}

sections.classes = {
  draw(data, run) {
    if (!data.scores.length) return [lead(NO_SCORES)];
    return [
      lead(`Of ${data.nodes}.`),
      make(
        "div",
        { class: "grid" },
        classScores(data, run),
        run.classes.length <= SMALL
          ? [confusion(data, run), mistakes(data, run)]
          : [mistakes(data, run), confusion(data, run)],
        learnedLabels(data.labels, run),
      ),
    ];
  },
};
