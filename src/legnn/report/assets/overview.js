// Scores, data and model, notes, the leaderboard and all settings; of several runs also the comparison.
"use strict";

const MOST_FIGURES = 6; // the table has all metrics

const scoreOf = (run, split, metric) =>
  run.sections.overview.scores.find((row) => row.split === split)?.scores[metric] ?? null;

function dataCard(overview, run) {
  const { data } = run;
  const splits = data.split_percent.map((value) => `${value.toFixed(1)} %`).join(" / ");
  const epochs = overview.best_epoch
    ? `best ${whole(overview.best_epoch)} of ${whole(overview.epochs)}`
    : whole(overview.epochs);
  const facts = [
    ["data", data.name],
    ["nodes", whole(data.nodes)],
    data.types.length ? ["node types", `${data.types.join(", ")} (predicted: ${data.target_type})`] : null,
    ["edges", whole(data.edges)],
    ["features", whole(data.features)],
    ["classes", whole(data.classes)],
    ["labeled", whole(data.labeled)],
    ["train / val / test", splits],
    ["homophily", isNumber(data.homophily) ? data.homophily.toFixed(2) : "unknown"],
    ["model", run.title],
    ["epochs", epochs],
    ["parameters", whole(overview.parameters)],
    ["time", `${duration(overview.seconds)} on ${overview.device}`],
  ].filter((fact) => fact);
  const title = payload.runs.length > 1 ? `Data and model of ${run.name}` : "Data and model";
  const rows = facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return card("half", title, make("dl", { class: "facts" }, rows));
}

function scoresCard(overview, run) {
  const splits = overview.scores.map((row) => [row.split, (name) => scoreText(row.scores[name]), true]);
  const seeds = "Mean and unbiased deviation over the seeds. The sections below show the mean of their probabilities.";
  const columns = [["metric", (name) => payload.metrics[name]], ...splits];
  return card(
    "",
    "Scores",
    scrolled(table(columns, Object.keys(payload.metrics))),
    run.kind === "seeds" ? note(seeds) : null,
  );
}

function comparison() {
  const metrics = Object.keys(payload.metrics);
  const score = (split, name) => [
    `${split} ${payload.metrics[name]}`,
    (run) => scoreText(scoreOf(run, split, name)),
    true,
  ];
  const columns = [
    ["run", (run) => run.name],
    ["model", (run) => run.title],
    score("validation", metrics[0]),
    ...metrics.map((name) => score("test", name)),
    ["parameters", (run) => whole(run.sections.overview.parameters), true],
    ["time", (run) => duration(run.sections.overview.seconds), true],
  ];
  const settings = Object.keys(payload.differing);
  const values = payload.runs.map((run, k) => [run.name, (name) => payload.differing[name][k]]);
  return [
    card("", "Runs side by side", scrolled(table(columns, payload.runs))),
    settings.length
      ? card("", "Settings that differ", scrolled(table([["setting", (name) => name], ...values], settings)))
      : null,
  ];
}

function leaderboard(board) {
  if (!board) return null;
  const columns = [
    ["name", (row) => row.name],
    ["after", (row) => (row.postprocess === "none" ? "" : row.postprocess.replaceAll("_", " "))],
    ["validation", (row) => percent(row.val, 2), true],
    ["test", (row) => percent(row.test, 2), true],
    ["weight", (row) => (row.weight ? row.weight.toFixed(2) : ""), true],
    ["parameters", (row) => whole(row.parameters), true],
    ["time", (row) => duration(row.seconds), true],
  ];
  const cut = board.total > board.rows.length ? `, the first ${board.rows.length} of ${board.total} ${board.unit}` : "";
  const words =
    "Accuracies, in order of validation; a weight is that of a member of the ensemble. " +
    "Nothing was chosen by test nodes.";
  return card("", `Leaderboard${cut}`, scrolled(table(columns, board.rows)), note(words));
}

sections.overview = {
  draw(overview, run) {
    const several = payload.runs.length > 1;
    const test = overview.scores.find((row) => row.split === "test") ?? overview.scores[0];
    const first = Object.entries(test ? test.scores : {}).slice(0, MOST_FIGURES);
    const figures = first.map(([name, score]) =>
      figure(`${test.split} ${payload.metrics[name]}`, decimal(score.mean), deviation(score)),
    );
    const notes = card(
      "grow",
      several ? `Notes on ${run.name}` : "Notes",
      overview.notes.length
        ? make(
            "ul",
            { class: "plain" },
            overview.notes.map((line) => make("li", {}, line)),
          )
        : note("There are none."),
    );
    const settings = [
      ["setting", ([name]) => name],
      ["value", ([, value]) => value],
    ];
    return [
      make("div", { class: "figures" }, figures),
      make(
        "div",
        { class: "grid" },
        several ? comparison() : null,
        make("div", { class: "stack half" }, several ? null : scoresCard(overview, run), notes),
        dataCard(overview, run),
        leaderboard(overview.leaderboard),
        make(
          "details",
          { class: "card" },
          make("summary", {}, "All settings"),
          scrolled(table(settings, Object.entries(overview.settings))),
        ),
      ),
    ];
  },
};
