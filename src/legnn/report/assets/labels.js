// Labels that look wrong: the ranking, by class, and a row leads to its node on the map.
"use strict";

const LABEL_COLUMNS = ["id", "label", "suggested", "score", "p_label", "p_suggested", "neighbors", "neighbors_label", "neighbors_suggested", "split"];

function labelsSection(run, show) {
  const { rows, of } = run.suspicious, holder = make("div", { class: "scroll" }), number = (value) => String(+value.toFixed(2));
  const columns = [["id", (one) => (one.row < 0 ? one.id : make("button", { type: "button", class: "link" }, one.id))], ["given", (one) => classChip(run, one.label)], ["suggested", (one) => classChip(run, one.suggested)],
    ["score", (one) => decimal(one.score), true], ["p given", (one) => percent(one.p_label), true], ["p suggested", (one) => percent(one.p_suggested), true],
    ["labeled neighbors", (one) => number(one.neighbors), true], ["as given", (one) => number(one.neighbors_label), true], ["as suggested", (one) => number(one.neighbors_suggested), true], ["split", (one) => one.split]];
  let chosen = rows;
  const heading = make("h3", { id: "labels-count", role: "status" });
  const only = (c) => {
    chosen = rows.filter((one) => c < 0 || one.label === c);
    heading.textContent = `${whole(chosen.length)} labels, the most suspicious first${chosen.length > MOST_ROWS ? `, ${MOST_ROWS} shown` : ""}`;
    // a row is pressed anywhere, and by its button from the keyboard
    holder.replaceChildren(table(columns, chosen.slice(0, MOST_ROWS), { open: (one) => { if (one.row >= 0) show(one.row); } }));
  };
  only(-1);
  const value = (one, name) => (name === "label" || name === "suggested" ? run.classes[one[name]] : one[name]);
  const csv = () => [LABEL_COLUMNS, ...chosen.map((one) => LABEL_COLUMNS.map((name) => value(one, name)))].map((line) => line.map(cell).join(",")).join("\n");
  const given = [...new Set(rows.map((one) => one.label))].sort((a, b) => a - b);
  const filter = make("select", { id: "labels-class", onchange: (event) => only(Number(event.target.value)) }, make("option", { value: -1 }, "every class"), given.map((c) => make("option", { value: c }, run.classes[c])));
  const cut = of > rows.length ? ` The first ${whole(rows.length)} of ${whole(of)} labels.` : "";
  return [make("p", { class: "lead" }, `Ranked by legnn labels check; no model judged a label it was trained on.${cut} Pressing a row shows its node on the map.`),
    make("div", { class: "card" }, heading, make("div", { class: "bar" }, make("label", { for: "labels-class" }, "Given class"), filter,
      make("button", { type: "button", id: "save-labels", onclick: () => save(`${run.name.replaceAll("/", "-")}-labels.csv`, `${csv()}\n`) }, "Save as CSV")), holder,
    make("p", { class: "note" }, "The score is the estimated probability that the label is wrong; the probabilities are of the given and of the suggested class, from all but the node's own label."))];
}
