// Calibration, and accuracy by properties of nodes.
"use strict";

sections.reliability = {
  draw(data) {
    if (!data.nodes) return [lead(NO_SCORES)];
    const bars = "Bars are accuracies, the vertical mark is the mean confidence; pale bars are of fewer than 20 nodes.";
    const chart = (width, title, bands, header) => card(width, null, bandChart(title, bands, header));
    return [
      lead(`Of ${data.nodes}. ${bars}`),
      make(
        "div",
        { class: "grid" },
        card(
          "half",
          "Calibration",
          reliabilityChart(data.confidence),
          note(
            `Expected calibration error ${percent(data.ece, 2)}, Brier score ${decimal(data.brier)}. ` +
              "Below the dashed line, the model is surer than it is right.",
          ),
        ),
        chart("half", "By confidence", data.confidence, "confidence"),
        chart("half", "By confidence above 0.9, where pseudo labels come from", data.high_confidence, "confidence"),
        chart("half", "By degree", data.degree, "neighbors"),
        chart("half", "By homophily", data.homophily, "same class"),
        chart("half", "By distance to the nearest shown label", data.distance, "distance"),
      ),
    ];
  },
};
