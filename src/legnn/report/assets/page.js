// Puts the sections into the page, for the chosen run and in the chosen theme.
"use strict";

const setSubtitle = (text) => (document.getElementById("sub").textContent = text);

function addSections() {
  for (const [name, title] of Object.entries(payload.sections)) {
    document.getElementById("links").append(make("li", {}, make("a", { href: `#${name}` }, title)));
    const heading = make("h2", { id: `${name}-title` }, title);
    const view = make("div", { id: `${name}-view` });
    document
      .getElementById("sections")
      .append(make("section", { id: name, "aria-labelledby": `${name}-title` }, heading, view));
  }
}

function drawSection(name) {
  const run = current();
  const data = run.sections[name];
  fill(`${name}-view`, data ? sections[name].draw(data, run) : lead(`${run.name} has none.`));
}

function showRun(k) {
  state.run = k;
  const run = current();
  const name = run.name === run.data.name ? "" : `${run.name} · `;
  setSubtitle(`${name}${run.title} · ${whole(run.data.nodes)} nodes · ${whole(run.data.classes)} classes`);
  Object.keys(payload.sections).forEach(drawSection);
}

function restyle() {
  for (const name of Object.keys(payload.sections)) {
    if (sections[name].restyle) sections[name].restyle();
    else drawSection(name);
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

// Marks the link of the section that is in view.
function watchScrolling() {
  const links = [...document.querySelectorAll("nav.sections a")];
  const mark = (entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      for (const link of links) link.toggleAttribute("aria-current", link.hash === `#${entry.target.id}`);
    }
  };
  const observer = new IntersectionObserver(mark, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("section")) observer.observe(section);
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  addSections();
  let redraw = restyle;
  if (payload.progress) {
    redraw = startLive();
  } else {
    if (payload.runs.length > 1) {
      const options = payload.runs.map((run, k) => make("option", { value: k }, run.name));
      const onchange = (event) => showRun(Number(event.target.value));
      document.querySelector(".tools").prepend(make("select", { id: "run", "aria-label": "run", onchange }, options));
    }
    showRun(0);
  }
  const changeTheme = (name) => {
    setTheme(name);
    redraw();
  };
  dark.addEventListener("change", () => changeTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => changeTheme(theme() === "dark" ? "light" : "dark"));
  matchMedia("(max-width: 599px)").addEventListener("change", () => redraw());
  watchScrolling();
  document.documentElement.dataset.ready = "yes";
}
start();
