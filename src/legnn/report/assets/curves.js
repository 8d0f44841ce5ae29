// Metrics by epoch: those of one run side by side, or the same metric of several runs or seeds in one chart.
"use strict";

sections.curves = {
  draw(data, run) {
    const colors = PALETTE[theme()];
    const compare = payload.runs.length > 1;
    const curves = compare
      ? payload.runs.flatMap((other, k) =>
          other.sections.curves.map((curve) => ({
            ...curve,
            run: other.name,
            color: colors[k % colors.length],
          })),
        )
      : data;
    if (!curves.length || !curves[0].values.epoch.length) return [lead("There are no metrics by epoch.")];
    const many = curves.length > 1;
    const marks = !many && curves[0].best ? [curves[0].best] : [];
    const series = (column, name, color, options = {}) =>
      curves.map(({ values, val, run, color: runColor }) => ({
        epochs: values.epoch,
        values: column(values, val),
        name: compare ? run : name,
        color: compare ? runColor : color,
        thin: many,
        ...options,
      }));
    const logged = (name) => (values) => values[name] ?? [];
    const scored = (name) => (values, val) => val[name] ?? [];
    const trainAndVal = (train, trainName, val) => [
      ...(compare ? [] : series(logged(train), trainName, colors[0])),
      ...series(val, "validation", colors[3]),
    ];
    const metrics = [...new Set(curves.flatMap((curve) => Object.keys(curve.val)))].filter(
      (name) => name !== "accuracy",
    );
    const confidence = compare
      ? []
      : series(logged("training_confidence"), "training confidence TC", colors[2], { dashed: true });
    const prefix = compare ? "Validation " : "";
    const charts = [
      lineChart(`${prefix}accuracy`, trainAndVal("train_accuracy", "predicted training nodes", scored("accuracy")), {
        marks,
      }),
      lineChart(`${prefix}loss`, trainAndVal("supervised_loss", "training", logged("val_loss")), { marks }),
      ...metrics.map((name) =>
        lineChart(`validation ${payload.metrics[name]}`, series(scored(name), "validation", colors[3]), { marks }),
      ),
      lineChart("pseudo labels", series(logged("pseudo_labels"), "number", colors[0]), { low: 0, marks }),
      lineChart(
        "confidence and accuracy of pseudo labels",
        [...series(logged("pseudo_label_accuracy"), "accuracy of pseudo labels", colors[3]), ...confidence],
        { low: 0, high: 1, marks },
      ),
    ];
    const words = marks.length ? "The dotted line is the epoch whose weights were kept." : `${curves.length} runs.`;
    return [
      many || marks.length ? lead(words) : null,
      make(
        "div",
        { class: "grid" },
        charts.map((chart) => chart && card("half", null, chart)),
      ),
    ];
  },
};
