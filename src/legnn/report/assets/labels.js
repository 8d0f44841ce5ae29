// Labels that look wrong: the ranking, by class; a row leads to its node on the map.
"use strict";

const LABEL_COLUMNS = [
  "id",
  "label",
  "suggested",
  "score",
  "p_label",
  "p_suggested",
  "neighbors",
  "neighbors_label",
  "neighbors_suggested",
  "split",
];

sections.labels = {
  draw(data, run) {
    const number = (value) => String(+value.toFixed(2));
    const columns = [
      ["id", (row) => (row.row < 0 ? row.id : make("button", { type: "button", class: "link" }, row.id))],
      ["label", (row) => classChip(run, row.label)],
      ["suggested", (row) => classChip(run, row.suggested)],
      ["score", (row) => decimal(row.score), true],
      ["p of label", (row) => percent(row.p_label), true],
      ["p of suggested", (row) => percent(row.p_suggested), true],
      ["labeled neighbors", (row) => number(row.neighbors), true],
      ["with the label", (row) => number(row.neighbors_label), true],
      ["with the suggested", (row) => number(row.neighbors_suggested), true],
      ["split", (row) => row.split],
    ];
    const holder = scrolled();
    const heading = make("h3", { id: "labels-count", role: "status" });
    let rows = data.rows;
    const showClass = (c) => {
      rows = data.rows.filter((row) => c < 0 || row.label === c);
      const cut = rows.length > MOST_ROWS ? `, ${MOST_ROWS} shown` : "";
      heading.textContent = `${whole(rows.length)} labels, the most suspicious first${cut}`;
      // a row is pressed anywhere, and by its button from the keyboard
      const open = (row) => row.row >= 0 && showOnMap(row.row);
      holder.replaceChildren(table(columns, rows.slice(0, MOST_ROWS), { open }));
    };
    showClass(-1);
    const value = (row, name) => (name === "label" || name === "suggested" ? run.classes[row[name]] : row[name]);
    const saveRows = () =>
      saveTable(`${run.name.replaceAll("/", "-")}-labels.csv`, [
        LABEL_COLUMNS,
        ...rows.map((row) => LABEL_COLUMNS.map((name) => value(row, name))),
      ]);
    const classes = [...new Set(data.rows.map((row) => row.label))].sort((a, b) => a - b);
    const filter = make(
      "select",
      { id: "labels-class", onchange: (event) => showClass(Number(event.target.value)) },
      make("option", { value: -1 }, "every class"),
      classes.map((c) => make("option", { value: c }, run.classes[c])),
    );
    const cut =
      data.total > data.rows.length ? ` The first ${whole(data.rows.length)} of ${whole(data.total)} labels.` : "";
    return [
      lead(
        "Ranked by legnn labels check; no model judged a label it was trained on." +
          `${cut} Pressing a row shows its node on the map.`,
      ),
      make(
        "div",
        { class: "card" },
        heading,
        make(
          "div",
          { class: "bar" },
          make("label", { for: "labels-class" }, "Label"),
          filter,
          make("button", { type: "button", id: "save-labels", onclick: saveRows }, "Save as CSV"),
        ),
        holder,
        note(
          "The score is the estimated probability that the label is wrong; the probabilities do not depend on the " +
            "node's own label.",
        ),
      ),
    ];
  },
};
