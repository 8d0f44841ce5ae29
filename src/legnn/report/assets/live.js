// A run in progress: asks for new epochs every two seconds, until it is finished.
"use strict";

const PERIOD = 2000;

function startLive() {
  const run = payload.runs[0];
  const curve = run.sections.curves[0];
  const { values } = curve;
  const show = () => {
    const { is_finished: isFinished, max_epochs: maxEpochs } = payload.progress;
    const epochs = values.epoch.length;
    const last = (column) => column?.at(-1) ?? null;
    const link = make("a", { href: "/report" }, "Show the whole report");
    setSubtitle(`${run.name} · ${run.title} · ${isFinished ? "finished" : "in progress"}`);
    fill("overview-view", [
      make(
        "div",
        { class: "figures" },
        figure(`epoch of at most ${whole(maxEpochs)}`, whole(epochs)),
        figure("loss", decimal(last(values.loss), 3)),
        figure("validation accuracy", decimal(last(curve.val.accuracy))),
        isNumber(last(values.pseudo_labels)) ? figure("pseudo labels", whole(last(values.pseudo_labels))) : null,
      ),
      isFinished ? lead(["The run is finished. ", link, " (it takes a while to compute)."]) : null,
    ]);
    fill("curves-view", sections.curves.draw(run.sections.curves, run));
  };
  const ask = async () => {
    try {
      const progress = await (await fetch(`/progress.json?after=${values.epoch.length}`)).json();
      for (const [name, column] of Object.entries(progress.curve.values)) values[name].push(...column);
      for (const [name, column] of Object.entries(progress.curve.val)) (curve.val[name] ??= []).push(...column);
      curve.best = progress.curve.best;
      Object.assign(payload.progress, { is_finished: progress.is_finished, max_epochs: progress.max_epochs });
      show();
    } catch (error) {
      setSubtitle(`${run.name} · no answer from legnn report; is it still running?`);
    }
    if (!payload.progress.is_finished) setTimeout(ask, PERIOD);
  };
  show();
  setTimeout(ask, PERIOD);
  return show;
}
