// A run in progress: asks for new epochs every two seconds, until it is finished.
"use strict";

const EVERY = 2000;

function startLive() {
  const run = report.runs[0];
  const show = () => {
    const course = run.curves[0], epoch = course.epoch.length, last = (name) => (epoch ? course[name][epoch - 1] : null);
    const figure = (name, value) => make("div", { class: "card figure" }, make("div", { class: "value" }, value), make("div", { class: "name" }, name));
    document.getElementById("sub").textContent = `${run.name} · ${run.title} · ${run.finished ? "finished" : "in progress"}`;
    fill("overview-view", [make("div", { class: "figures" }, figure(`epoch of at most ${whole(run.most)}`, whole(epoch)), figure("loss", decimal(last("loss"), 3)), figure("validation accuracy", percent(last("val_accuracy"), 2)), isNumber(last("pseudo_labels")) ? figure("pseudo labels", whole(last("pseudo_labels"))) : null),
      run.finished ? make("p", { class: "lead" }, "The run is finished. ", make("a", { href: "/report" }, "Show the whole report"), " (it takes a while to compute).") : null]);
    fill("curves-view", epoch ? curves(run) : [make("p", { class: "lead" }, "No epoch is finished yet.")]);
  };
  const ask = async () => {
    try {
      const answer = await (await fetch(`/progress.json?after=${run.curves[0].epoch.length}`)).json();
      if (answer.curves) { for (const [name, values] of Object.entries(answer.curves)) { if (Array.isArray(values)) (run.curves[0][name] ||= []).push(...values); else run.curves[0][name] = values; } }
      Object.assign(run, { finished: answer.finished, most: answer.most });
      show();
    } catch (error) {
      document.getElementById("sub").textContent = `${run.name} · no answer from legnn report; is it still running?`;
    }
    if (!run.finished) setTimeout(ask, EVERY);
  };
  state.redraw.push(show);
  show();
  document.documentElement.dataset.ready = "yes";
  setTimeout(ask, EVERY);
}
