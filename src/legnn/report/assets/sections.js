// The sections of the page, from the collected values.
"use strict";

const score = (one) => (one ? `${decimal(one.mean, 4)}${isNumber(one.std) ? ` ± ${one.std.toFixed(4)}` : ""}` : "–");
const scoreTitles = (runs) => [...new Set(runs.flatMap((run) => run.scores.flatMap((one) => Object.keys(one.values))))];
const scoreOf = (run, split) => run.scores.find((one) => one.split === split);

function overview(run) {
  const test = scoreOf(run, "test"), val = scoreOf(run, "validation");
  const figure = (name, value, small = "") => make("div", { class: "card figure" }, make("div", { class: "value" }, value, small ? make("small", {}, ` ${small}`) : null), make("div", { class: "name" }, name));
  const of = (name, one) => figure(name, decimal(one.mean, 4), isNumber(one.std) ? `± ${one.std.toFixed(4)}` : "");
  const figures = make("div", { class: "figures" }, Object.entries((test || val || { values: {} }).values).map(([name, value]) => of(`${test ? "test" : "validation"} ${name}`, value)));
  const several = report.runs.length > 1;
  const notes = make("div", { class: "card grow" }, make("h3", {}, several ? `What to know of ${run.name}` : "What to know"), run.notes.length ? make("ul", { class: "plain" }, run.notes.map((note) => make("li", {}, note))) : make("p", { class: "note", style: { margin: 0 } }, "Nothing was noted."));
  const rows = several ? compareRuns() : make("div", { class: "card" }, make("h3", {}, "Scores"),
    make("div", { class: "scroll" }, table([["", (name) => name], ...run.scores.map((one) => [one.split, (name) => score(one.values[name]), true])], scoreTitles([run]))),
    run.kind === "seeds" ? make("p", { class: "note" }, "Mean and unbiased deviation over the seeds. The sections below show the mean of their probabilities.") : null);
  return [figures, make("div", { class: "grid" }, several ? rows : null, make("div", { class: "stack half" }, several ? null : rows, notes), dataCard(run), leaderboard(run), settingsCard(run))];
}

function dataCard(run) {
  const data = run.data, result = run.result;
  const facts = [["data", data.name], ["nodes", whole(data.nodes)], ["edges", whole(data.edges)], ["features", whole(data.features)], ["classes", whole(data.classes)], ["labeled", whole(data.labeled)],
    ["train / val / test", [data.train_percent, data.val_percent, data.test_percent].map((v) => `${v.toFixed(1)} %`).join(" / ")], ["homophily", isNumber(data.homophily) ? data.homophily.toFixed(2) : "unknown"],
    ["model", run.title], ["epochs", result.best_epoch ? `best ${whole(result.best_epoch)} of ${whole(result.epochs)}` : whole(result.epochs)], ["parameters", whole(result.parameters)], ["time", `${duration(result.seconds)} on ${result.device}`]];
  if (run.types.length) facts.splice(2, 0, ["node types", `${run.types.join(", ")} (predicted: ${run.target_type})`]);
  return make("div", { class: "card half" }, make("h3", {}, report.runs.length > 1 ? `Data and model of ${run.name}` : "Data and model"), make("dl", { class: "facts" }, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
}

function compareRuns() {
  const names = Object.keys(report.differing);
  const columns = [["run", (one) => one.name], ["model", (one) => one.title], ...["test", "validation"].flatMap((split) => scoreTitles(report.runs).map((title) => [`${split} ${title}`, (one) => score(scoreOf(one, split)?.values[title]), true])), ["parameters", (one) => whole(one.result.parameters), true], ["time", (one) => duration(one.result.seconds), true]];
  const differing = names.length ? make("div", { class: "card" }, make("h3", {}, "Settings that differ"), make("div", { class: "scroll" },
    table([["setting", (name) => name], ...report.runs.map((one, k) => [one.name, (name) => report.differing[name][k]])], names))) : null;
  return [make("div", { class: "card" }, make("h3", {}, "Runs side by side"), make("div", { class: "scroll" }, table(columns, report.runs))), differing];
}

function leaderboard(run) {
  const board = run.leaderboard;
  if (!board) return null;
  const columns = [["name", (row) => row.name], ["after", (row) => (row.postprocess === "none" ? "" : row.postprocess.replaceAll("_", " "))], ["validation", (row) => percent(row.val, 2), true], ["test", (row) => percent(row.test, 2), true], ["weight", (row) => (row.weight ? row.weight.toFixed(2) : ""), true], ["parameters", (row) => whole(row.parameters), true], ["time", (row) => duration(row.seconds), true]];
  const cut = board.of > board.rows.length ? `, the first ${board.rows.length} of ${board.of} ${board.what}` : "";
  return make("div", { class: "card" }, make("h3", {}, `Leaderboard${cut}`), make("div", { class: "scroll" }, table(columns, board.rows)), make("p", { class: "note" }, "In order of validation accuracy; a weight is that of a member of the ensemble. Nothing was chosen by test nodes."));
}

function settingsCard(run) {
  const rows = Object.entries(run.settings);
  return make("details", { class: "card" }, make("summary", {}, "All settings"), make("div", { class: "scroll", style: { marginTop: "0.75rem" } }, table([["setting", ([name]) => name], ["value", ([, value]) => value]], rows)));
}

// One run: its metrics side by side. Several runs or seeds: the same metric of all of them in one chart.
function curves(run) {
  const compare = report.runs.length > 1;
  const courses = compare ? report.runs.flatMap((one, k) => one.curves.map((course) => ({ ...course, label: one.name, color: PALETTE[theme()][k % 10] }))) : run.curves.map((course) => ({ ...course, label: course.name, color: css("--accent") }));
  if (!courses.length) return [make("p", { class: "lead" }, "There are no metrics by epoch.")];
  const many = courses.length > 1, marks = courses.length === 1 && courses[0].best ? [courses[0].best] : [];
  const second = PALETTE[theme()][3];
  const pick = (name, words, color, extra = {}) => courses.map((course) => ({ epochs: course.epoch, values: course[name], name: compare ? course.label : words, color: compare ? course.color : color, thin: many, ...extra }));
  const pair = (a, aWords, b, bWords) => (compare ? pick(b, bWords, second) : [...pick(a, aWords, PALETTE[theme()][0]), ...pick(b, bWords, second)]);
  const charts = [
    lineChart(compare ? "Validation accuracy" : "Accuracy", pair("train_accuracy", "predicted training nodes", "val_accuracy", "validation"), { marks }),
    lineChart(compare ? "Validation loss" : "Loss", pair("supervised_loss", "training", "val_loss", "validation"), { marks }),
    ...Object.entries(Object.assign({}, ...courses.map((course) => course.titles))).filter(([name]) => name !== "val_accuracy").map(([name, title]) => lineChart(`Validation: ${title}`, pick(name, "validation", second), { marks })),
    lineChart("Pseudo labels", pick("pseudo_labels", "how many", PALETTE[theme()][0]), { low: 0, marks }),
    lineChart("Confidence and accuracy of pseudo labels", [...pick("pseudo_label_accuracy", "accuracy of pseudo labels", second), ...(compare ? [] : pick("training_confidence", "training confidence TC", PALETTE[theme()][2], { dashed: true }))], { low: 0, high: 1, marks }),
  ].filter((chart) => chart);
  const words = marks.length ? "The dotted line is the epoch whose weights were kept." : many ? `${courses.length} runs.` : "";
  return [words ? make("p", { class: "lead" }, words) : null, make("div", { class: "grid" }, charts.map((chart) => make("div", { class: "card half" }, chart)))];
}

function classesSection(run) {
  const found = run.scores_by_class;
  if (!found.rows.length) return [make("p", { class: "lead" }, "No node outside the training split has a known class.")];
  const rows = found.rows.map((row, c) => ({ ...row, c }));
  const holder = make("div", { class: "scroll" });
  const columns = [["class", (row) => classChip(run, row.c)], ["precision", (row) => percent(row.precision), true], ["recall", (row) => percent(row.recall), true], ["F1", (row) => percent(row.f1), true], ["nodes", (row) => whole(row.support), true]];
  const shared = report.runs.length > 1 ? report.runs.filter((one) => one !== run && one.classes.join("\n") === run.classes.join("\n")) : [];
  for (const other of shared) columns.splice(-1, 0, [`F1 of ${other.name}`, (row) => percent(other.scores_by_class.rows[row.c]?.f1), true]);
  const sort = (by) => holder.replaceChildren(table(columns, [...rows].sort({ size: (a, b) => b.support - a.support, f1: (a, b) => a.f1 - b.f1, name: (a, b) => a.c - b.c }[by])));
  sort("size");
  const scores = make("div", { class: "card half" }, make("h3", {}, "Scores by class"), make("div", { class: "bar" }, switcher("order of the classes", [["size", "Largest"], ["f1", "Worst F1"], ["name", "In order"]], "size", sort)), holder);
  const small = rows.length <= 12;
  const pairs = make("div", { class: small ? "card third" : "card half" }, make("h3", {}, "Most confused"), found.pairs.length ? make("div", { class: "scroll" }, table([["truth", ([i]) => classChip(run, i)], ["predicted as", ([, j]) => classChip(run, j)], ["nodes", ([, , n]) => whole(n), true], ["of the class", ([i, , n]) => percent(n / Math.max(1, found.rows[i].support)), true]], found.pairs)) : make("p", {}, "No node is predicted wrong."));
  return [make("p", { class: "lead" }, `Of ${found.of}.`), make("div", { class: "grid" }, small ? [scores, confusion(run, "half"), pairs, labels(run, "third")] : [scores, pairs, confusion(run, ""), labels(run, "two-thirds")])];
}

const MOST_COLUMNS = 24;
function confusion(run, width) {
  const found = run.scores_by_class, size = found.rows.length, holder = make("div", { class: "matrix" });
  const order = found.rows.map((_, c) => c).sort((a, b) => (size > MOST_COLUMNS ? found.rows[b].support - found.rows[a].support || a - b : a - b)).slice(0, MOST_COLUMNS);
  const fill = (byRow) => {
    const most = Math.max(...order.flatMap((i) => order.map((j) => found.confusion[i][j])), 1), rgb = theme() === "dark" ? "108 182 240" : "11 99 165", wrong = theme() === "dark" ? "239 138 90" : "179 64 15";
    const head = make("tr", {}, make("td"), order.map((j) => make("th", { scope: "col", title: run.classes[j] }, run.classes[j].slice(0, 16))));
    const body = order.map((i) => make("tr", {}, make("th", { scope: "row", title: run.classes[i] }, run.classes[i]), order.map((j) => {
      const n = found.confusion[i][j], share = n / Math.max(1, found.rows[i].support), depth = byRow ? share : n / most;
      const alpha = n ? 0.06 + 0.74 * Math.sqrt(depth) : 0;
      return make("td", { title: `${run.classes[i]} predicted as ${run.classes[j]}: ${n}`, style: { background: n ? `rgb(${i === j ? rgb : wrong} / ${alpha.toFixed(3)})` : "var(--track)", color: alpha > 0.5 && theme() === "light" ? "#fff" : alpha > 0.6 ? "#10151b" : "inherit" } }, n ? (byRow ? Math.round(100 * share) || "<1" : n) : "");
    })));
    holder.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, body)));
  };
  fill(false);
  const cut = size > order.length ? ` The ${order.length} largest of ${size} classes.` : "";
  return make("div", { class: `card ${width}` }, make("h3", {}, "Confusion"), make("div", { class: "bar" }, switcher("values of the confusion matrix", [[false, "Nodes"], [true, "Percent of row"]], false, fill)), holder, make("p", { class: "note" }, `True classes by row, predicted ones by column; blue is right, orange wrong.${cut}`));
}

function labels(run, width) {
  if (!run.labels) return null;
  const colors = classColors(run), chart = pointChart(run.labels.points, run.classes, colors, "labels as the model has learned them", width === "third");
  const pairs = table([["classes", ([a]) => classChip(run, a)], ["", ([, b]) => classChip(run, b)], ["similarity", ([, , s]) => decimal(s, 3), true]], run.labels.pairs);
  return [make("div", { class: `card ${width}` }, make("h3", {}, "Labels as the model has learned them"), chart, make("p", { class: "note" }, "Labels are nodes of the graph and have representations; near are those that point the same way (two principal components).")),
    make("div", { class: "card third" }, make("h3", {}, "Closest labels"), make("div", { class: "scroll" }, pairs), make("p", { class: "note" }, "Cosine of the angle between two labels."))];
}

function reliabilitySection(run) {
  const { bands } = run, card = (kind, chart) => make("div", { class: `card ${kind}` }, chart);
  if (!run.scores_by_class.rows.length) return [make("p", { class: "lead" }, "No node outside the training split has a known class.")];
  return [make("p", { class: "lead" }, `Of ${run.scores_by_class.of}. Bars are accuracies, the vertical mark is the mean confidence; pale bars are of fewer than 20 nodes.`), make("div", { class: "grid" },
    make("div", { class: "card half" }, make("h3", {}, "Calibration"), reliabilityChart(bands.confidence), make("p", { class: "note" }, `Expected calibration error ${percent(run.scores_by_class.ece, 2)}, Brier score ${decimal(run.scores_by_class.brier)}. Points below the dashed line: surer than right.`)),
    card("half", bandChart("By confidence", bands.confidence, "confidence")), card("third", bandChart("By degree", bands.degree, "neighbors")),
    card("third", bandChart("By homophily", bands.homophily, "same class")), card("third", bandChart("By distance to the nearest shown label", bands.distance, "distance")))];
}
