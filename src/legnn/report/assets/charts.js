// Charts as SVG: lines, bars, points with names.
"use strict";

function ticks(low, high, count = 5) {
  const step = 10 ** Math.floor(Math.log10((high - low) / count || 1));
  const size = [1, 2, 5, 10].map((m) => m * step).find((line) => (high - low) / line <= count) || 10 * step;
  const values = [];
  for (let t = Math.ceil(low / size) * size; t <= high + size * 1e-6; t += size)
    values.push(Math.abs(t) < size / 1e6 ? 0 : t);
  return values;
}
const isNarrow = () => window.innerWidth < 600;
const short = (value) => (Math.abs(value) >= 1000 ? `${+(value / 1000).toPrecision(3)}k` : `${+value.toPrecision(3)}`);

// `series`: [{ name, color, values, dashed }] over `epochs`; null is a gap. `marks`: epochs with a dotted line.
function lineChart(title, series, { low = null, high = null, marks = [] } = {}) {
  const width = isNarrow() ? 330 : 560,
    height = isNarrow() ? 220 : 270,
    left = 44,
    right = 12,
    top = 10,
    bottom = 28;
  const all = series.flatMap((line) => line.values.filter(isNumber));
  if (!all.length) return null;
  const most = Math.max(...series.map((line) => line.epochs[line.epochs.length - 1] || 1), 2);
  let [a, b] = [low ?? Math.min(...all), high ?? Math.max(...all)];
  if (b - a < 1e-9) b = a + 1;
  const x = (epoch) => left + ((epoch - 1) / (most - 1)) * (width - left - right);
  const y = (value) => top + (1 - (value - a) / (b - a)) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} by epoch` });
  for (const t of ticks(a, b)) {
    svg.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: y(t), y2: y(t) }));
    svg.append(draw("text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, short(t)));
  }
  for (const t of ticks(1, most, 5)) {
    const epoch = Math.max(1, Math.round(t));
    svg.append(draw("text", { x: x(epoch), y: height - 8, "text-anchor": "middle" }, whole(epoch)));
  }
  for (const epoch of marks)
    svg.append(
      draw("line", {
        x1: x(epoch),
        x2: x(epoch),
        y1: top,
        y2: height - bottom,
        stroke: css("--faint"),
        "stroke-dasharray": "2 3",
      }),
    );
  for (const line of series) {
    let path = "",
      pen = "M";
    line.values.forEach((value, k) => {
      if (!isNumber(value)) {
        pen = "M";
        return;
      }
      const at = Math.max(top - 4, Math.min(height - bottom + 2, y(value)));
      path += `${pen}${x(line.epochs[k]).toFixed(1)} ${at.toFixed(1)}`;
      pen = "L";
    });
    svg.append(
      draw("path", {
        d: path,
        fill: "none",
        stroke: line.color,
        "stroke-width": line.thin ? 1 : 1.8,
        "stroke-opacity": line.thin ? 0.7 : 1,
        "stroke-dasharray": line.dashed ? "5 4" : null,
        "stroke-linejoin": "round",
      }),
    );
  }
  const names = [...new Map(series.map((line) => [line.name, line])).values()];
  const key = make(
    "div",
    { class: "key" },
    names.map((line) => make("span", {}, make("i", { style: { background: line.color } }), line.name)),
  );
  const heading = title[0].toUpperCase() + title.slice(1);
  return make("figure", { style: { margin: 0 } }, make("h3", {}, heading), svg, key);
}

// Accuracy of bands as bars, with the number of nodes beneath and, where given, the mean confidence as a line across.
function bandChart(title, bands, words) {
  const shown = bands.filter((band) => band.nodes > 0);
  const rows = shown.map((band) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, band.name),
      make(
        "td",
        { style: { width: "45%" } },
        make(
          "div",
          {
            class: "meter",
            role: "presentation",
            style: { position: "relative", overflow: "visible", height: "0.75rem" },
          },
          make("i", { style: { width: `${100 * band.accuracy}%`, opacity: band.nodes < 20 ? 0.45 : 1 } }),
          make("span", {
            "aria-hidden": "true",
            style: {
              position: "absolute",
              left: `calc(${100 * band.confidence}% - 1px)`,
              top: "-3px",
              bottom: "-3px",
              width: "2px",
              background: "var(--ink)",
            },
          }),
        ),
      ),
      make("td", { class: "num", title: `mean confidence ${percent(band.confidence)}` }, percent(band.accuracy)),
      make("td", { class: "num" }, whole(band.nodes)),
    ),
  );
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, words),
    make("th", { scope: "col" }, make("span", { class: "sr" }, "accuracy as a bar")),
    ...["accuracy", "nodes"].map((name) => make("th", { scope: "col", class: "num" }, name)),
  );
  return make(
    "div",
    {},
    make("h3", {}, title),
    make("div", { class: "scroll bands" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows))),
  );
}

// Reliability: accuracy against confidence, a dot for each bin, its area by the number of nodes.
function reliabilityChart(bands) {
  const size = 380,
    edge = 52;
  const at = (v) => edge + v * (size - edge - 12);
  const svg = draw("svg", {
    viewBox: `0 0 ${size} ${size}`,
    role: "img",
    "aria-label": "accuracy against confidence",
    style: "max-width: 26rem; margin: 0 auto",
  });
  for (const t of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(draw("line", { class: "axis", x1: at(0), x2: at(1), y1: size - at(t), y2: size - at(t) }));
    svg.append(draw("text", { x: at(0) - 8, y: size - at(t) + 4, "text-anchor": "end" }, t.toFixed(2)));
    svg.append(draw("text", { x: at(t), y: size - edge + 18, "text-anchor": "middle" }, t.toFixed(2)));
  }
  svg.append(
    draw("line", {
      x1: at(0),
      y1: size - at(0),
      x2: at(1),
      y2: size - at(1),
      stroke: css("--faint"),
      "stroke-dasharray": "4 4",
    }),
  );
  svg.append(draw("text", { x: at(0.5), y: size - 8, "text-anchor": "middle" }, "confidence"));
  svg.append(
    draw(
      "text",
      { x: 10, y: size - at(0.5), "text-anchor": "middle", transform: `rotate(-90 10 ${size - at(0.5)})` },
      "accuracy",
    ),
  );
  const most = Math.max(...bands.map((band) => band.nodes), 1);
  const used = bands.filter((band) => band.nodes > 0);
  svg.append(
    draw("path", {
      d: used.map((band, k) => `${k ? "L" : "M"}${at(band.confidence)} ${size - at(band.accuracy)}`).join(""),
      fill: "none",
      stroke: css("--accent"),
      "stroke-width": 1.5,
    }),
  );
  for (const band of used) {
    svg.append(
      draw(
        "circle",
        {
          cx: at(band.confidence),
          cy: size - at(band.accuracy),
          r: 3 + 7 * Math.sqrt(band.nodes / most),
          fill: css("--accent"),
          "fill-opacity": 0.75,
        },
        draw("title", {}, `${band.name}: ${percent(band.accuracy)} of ${whole(band.nodes)} nodes right`),
      ),
    );
  }
  return svg;
}

// Points with names, such as labels; names that would cover others are left out and shown by pointing.
function pointChart(points, names, colors, title, isSmall) {
  const small = isSmall || isNarrow(),
    width = small ? 330 : 720,
    height = small ? 320 : 460,
    pad = 46;
  const xs = points.map((p) => p[0]),
    ys = points.map((p) => p[1]);
  const scale = Math.min(
    (width - 2 * pad) / (Math.max(...xs) - Math.min(...xs) || 1),
    (height - 2 * pad) / (Math.max(...ys) - Math.min(...ys) || 1),
  );
  const mid = (v) => (Math.max(...v) + Math.min(...v)) / 2;
  const at = (p) => [width / 2 + (p[0] - mid(xs)) * scale, height / 2 - (p[1] - mid(ys)) * scale];
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const occupied = points.map((point) => {
    const [x, y] = at(point);
    return [x - 5, y - 5, 10, 10];
  });
  points.forEach((point, c) => {
    const [x, y] = at(point),
      name = names[c].length > 18 ? `${names[c].slice(0, 17)}…` : names[c];
    svg.append(draw("circle", { cx: x, cy: y, r: 5, fill: colors[c] }, draw("title", {}, names[c])));
    const w = 6.5 * name.length + 6,
      box = [x + 6, y - 7, w, 14],
      leftBox = [x - 6 - w, y - 7, w, 14];
    const free = (b) =>
      b[0] > 0 &&
      b[0] + b[2] < width &&
      !occupied.some((t) => b[0] < t[0] + t[2] && t[0] < b[0] + b[2] && b[1] < t[1] + t[3] && t[1] < b[1] + b[3]);
    const place = free(box) ? box : free(leftBox) ? leftBox : null;
    if (!place) return;
    occupied.push(place);
    svg.append(
      draw(
        "text",
        { class: "strong", x: place === box ? x + 9 : x - 9, y: y + 4, "text-anchor": place === box ? "start" : "end" },
        name,
      ),
    );
  });
  return svg;
}
