// Points of nodes on a canvas: it works without WebGL, and 20,000 points are drawn in a few milliseconds.
"use strict";

function ramp(value) {
  const stops = payload.constants.confidence[theme()];
  const position = Math.max(0, Math.min(0.9999, value)) * (stops.length - 1);
  const k = Math.floor(position);
  const t = position - k;
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round(part(stops[k], i) * (1 - t) + part(stops[k + 1], i) * t)).join(" ")})`;
}

class NodeCanvas {
  constructor(holder, legend, onOpen, onSelect) {
    Object.assign(this, {
      holder,
      legend,
      onOpen,
      onSelect,
      color: "y",
      only: null,
      mode: "pan",
      marked: -1,
      selected: null,
    });
    this.canvas = holder.querySelector("canvas");
    this.tip = holder.querySelector(".tip");
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  show(run, data) {
    this.run = run;
    this.hovered = -1;
    this.points = unpack(data.points);
    this.rows = unpack(data.rows);
    this.pointOf = new Map();
    this.rows.forEach((row, k) => this.pointOf.set(row, k));
    this.fit();
    this.recolor();
  }

  // Groups of points by color: one path for each.
  recolor() {
    if (!this.run) return;
    const { table } = this.run;
    const groups = new Map();
    const put = (key, color, words, k) => {
      if (!groups.has(key)) groups.set(key, { key, color, words, members: [] });
      groups.get(key).members.push(k);
    };
    const colors = classColors(this.run);
    const splitColors = [null, 0, 1, 3];
    this.rows.forEach((row, k) => {
      if (this.color === "confidence") {
        const step = Math.min(19, Math.floor(table.confidence[row] * 20));
        put(step, ramp((step + 0.5) / 20), "", k);
      } else if (this.color === "split") {
        const s = table.split[row];
        put(s, s ? PALETTE[theme()][splitColors[s]] : GRAY[theme()], SPLITS[s], k);
      } else {
        const c = this.color === "y" ? table.y[row] : table.predicted[row];
        put(c, c === NO_CLASS ? GRAY[theme()] : colors[c], className(this.run, c), k);
      }
    });
    this.groups = [...groups.values()];
    // gray ones first, so that they cover nothing
    this.groups.sort(
      (a, b) => (b.color === GRAY[theme()]) - (a.color === GRAY[theme()]) || b.members.length - a.members.length,
    );
    this.drawLegend();
    this.paint();
  }

  drawLegend() {
    if (this.color === "confidence") {
      const stops = payload.constants.confidence[theme()].join(", ");
      this.legend.replaceChildren(
        make("div", { class: "ramp", style: { background: `linear-gradient(90deg, ${stops})` } }),
        make(
          "div",
          { class: "ends" },
          make("span", {}, "0 %"),
          make("span", {}, "confidence"),
          make("span", {}, "100 %"),
        ),
      );
      return;
    }
    const gray = GRAY[theme()];
    const order = [...this.groups].sort(
      (a, b) =>
        (a.color === gray) - (b.color === gray) ||
        (this.run.classes.length <= 10 && this.color !== "split" ? a.key - b.key : b.members.length - a.members.length),
    );
    this.legend.replaceChildren(
      ...order.map((group) =>
        make(
          "button",
          {
            type: "button",
            "aria-pressed": String(this.only === group.key),
            title: group.words,
            onclick: () => {
              this.only = this.only === group.key ? null : group.key;
              this.drawLegend();
              this.paint();
            },
          },
          make("span", { class: "dot", style: { background: group.color } }),
          make("span", { class: "label" }, group.words),
          make("span", { class: "n" }, whole(group.members.length)),
        ),
      ),
    );
  }

  fit() {
    const { width, height } = this.size();
    this.scale = Math.min(width, height) * 0.94;
    this.x = width / 2 - this.scale / 2;
    this.y = height / 2 - this.scale / 2;
  }

  size() {
    return { width: this.canvas.clientWidth || 600, height: this.canvas.clientHeight || 400 };
  }

  resize() {
    const { width, height } = this.size(),
      ratio = window.devicePixelRatio || 1;
    if (this.canvas.width === Math.round(width * ratio) && this.canvas.height === Math.round(height * ratio)) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (this.run) {
      this.fit();
      this.paint();
    }
  }

  paint() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paintNow();
    });
  }

  paintNow() {
    if (!this.groups) return;
    const ratio = window.devicePixelRatio || 1,
      { width, height } = this.size(),
      pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const few = this.rows.length < 3000,
      zoom = this.scale / Math.min(width, height);
    const r = Math.min(7, (few ? 3 : 1.7) * Math.sqrt(Math.max(1, zoom)));
    for (const group of this.groups) {
      if (this.only !== null && this.only !== group.key) this.dots(pen, group.members, GRAY[theme()], 0.25, r * 0.8);
    }
    for (const group of this.groups) {
      if (this.only === null || this.only === group.key) {
        const isRest = this.only === null && group.color === GRAY[theme()];
        this.dots(
          pen,
          group.members,
          this.only !== null && isRest ? css("--accent") : group.color,
          isRest ? 0.55 : 0.85,
          r,
        );
      }
    }
    if (this.selected) this.ring(pen, this.selected.length > 4000 ? [] : this.selected, r + 1.5, 1);
    if (this.marked >= 0) this.ring(pen, [this.marked], r + 5, 2.5);
    if (this.hovered >= 0) this.ring(pen, [this.hovered], r + 3, 1.5);
    if (this.polygon && this.polygon.length > 1) {
      pen.beginPath();
      this.polygon.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      pen.globalAlpha = 0.12;
      pen.fillStyle = css("--accent");
      pen.fill();
      pen.globalAlpha = 1;
      pen.strokeStyle = css("--accent");
      pen.lineWidth = 1.5;
      pen.stroke();
    }
  }

  dots(pen, members, color, alpha, r) {
    pen.globalAlpha = alpha;
    pen.fillStyle = color;
    pen.beginPath();
    for (const k of members) {
      const x = this.x + this.points[2 * k] * this.scale,
        y = this.y + (1 - this.points[2 * k + 1]) * this.scale;
      pen.moveTo(x + r, y);
      pen.arc(x, y, r, 0, 6.2832);
    }
    pen.fill();
    pen.globalAlpha = 1;
  }

  ring(pen, members, r, line) {
    pen.strokeStyle = css("--ink");
    pen.lineWidth = line;
    for (const k of members) {
      pen.beginPath();
      pen.arc(...this.at(k), r, 0, 6.2832);
      pen.stroke();
    }
  }

  at(k) {
    return [this.x + this.points[2 * k] * this.scale, this.y + (1 - this.points[2 * k + 1]) * this.scale];
  }

  nearest(x, y, reach = 12) {
    let best = -1,
      least = reach * reach;
    for (let k = 0; k < this.rows.length; k++) {
      const dx = this.x + this.points[2 * k] * this.scale - x,
        dy = this.y + (1 - this.points[2 * k + 1]) * this.scale - y;
      const d = dx * dx + dy * dy;
      if (d < least) {
        least = d;
        best = k;
      }
    }
    return best;
  }

  zoom(factor, x = this.size().width / 2, y = this.size().height / 2) {
    const scale = Math.max(80, Math.min(60000, this.scale * factor)),
      by = scale / this.scale;
    this.x = x - (x - this.x) * by;
    this.y = y - (y - this.y) * by;
    this.scale = scale;
    this.paint();
  }

  // Moves to a node; false if the sample does not have it.
  goTo(row) {
    const k = this.pointOf.get(row);
    this.marked = k ?? -1;
    if (k === undefined) {
      this.paint();
      return false;
    }
    const { width, height } = this.size();
    this.scale = Math.max(this.scale, Math.min(width, height) * 4);
    this.x = width / 2 - this.points[2 * k] * this.scale;
    this.y = height / 2 - (1 - this.points[2 * k + 1]) * this.scale;
    this.paint();
    return true;
  }

  mark(row) {
    this.marked = this.pointOf.get(row) ?? -1;
    this.paint();
  }

  select(members) {
    this.selected = members;
    this.paint();
    this.onSelect(members ? members.map((k) => this.rows[k]) : null);
  }

  selectVisible() {
    const { width, height } = this.size(),
      selected = [];
    for (let k = 0; k < this.rows.length; k++) {
      const [x, y] = this.at(k);
      if (x >= 0 && y >= 0 && x <= width && y <= height) selected.push(k);
    }
    this.select(selected);
  }

  inside(polygon) {
    const selected = [];
    for (let k = 0; k < this.rows.length; k++) {
      const [x, y] = this.at(k);
      let within = false;
      for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
        const [ax, ay] = polygon[i],
          [bx, by] = polygon[j];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
      }
      if (within) selected.push(k);
    }
    return selected;
  }

  hover(x, y) {
    this.hovered = this.nearest(x, y);
    this.tip.classList.toggle("hidden", this.hovered < 0);
    if (this.hovered >= 0) {
      const row = this.rows[this.hovered],
        { table } = this.run;
      this.tip.replaceChildren(
        make("strong", {}, table.ids[row]),
        make("br"),
        `truth: ${className(this.run, table.y[row])}`,
        make("br"),
        `prediction: ${className(this.run, table.predicted[row])}, ${percent(table.confidence[row])}`,
        make("br"),
        `split: ${SPLITS[table.split[row]]}`,
      );
      const { width } = this.size();
      Object.assign(this.tip.style, {
        left: `${x > width / 2 ? "" : x + 14}px`,
        right: x > width / 2 ? `${width - x + 14}px` : "",
        top: `${Math.max(4, y - 10)}px`,
      });
      if (x <= width / 2) this.tip.style.right = "auto";
      else this.tip.style.left = "auto";
    }
    this.paint();
  }

  listen() {
    const pointers = new Map();
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      this.from = place(event);
      this.moved = false;
      if (this.mode === "lasso" && pointers.size === 1) this.polygon = [place(event)];
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const now = place(event);
      if (!pointers.has(event.pointerId)) {
        if (event.pointerType !== "touch") this.hover(...now);
        return;
      }
      const before = pointers.get(event.pointerId);
      if (Math.hypot(now[0] - this.from[0], now[1] - this.from[1]) > 4) this.moved = true;
      if (pointers.size === 2) {
        const [a, b] = [...pointers.values()],
          other = a === before ? b : a;
        const ratio =
          Math.hypot(now[0] - other[0], now[1] - other[1]) /
          Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
        this.polygon = null;
        this.zoom(ratio, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else if (this.polygon) {
        this.polygon.push(now);
        this.paint();
      } else {
        this.x += now[0] - before[0];
        this.y += now[1] - before[1];
        this.paint();
      }
      pointers.set(event.pointerId, now);
    });
    const end = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      const polygon = this.polygon;
      this.polygon = null;
      if (polygon && polygon.length > 3 && this.moved) this.select(this.inside(polygon));
      else if (!this.moved && event.type === "pointerup") {
        const k = this.nearest(...place(event), event.pointerType === "touch" ? 24 : 12);
        if (k >= 0) {
          this.marked = k;
          this.onOpen(this.rows[k]);
        }
      }
      this.paint();
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      this.tip.classList.add("hidden");
      this.paint();
    });
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.0016), ...place(event));
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => {
      const step = 40,
        by = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
      if (by) {
        this.x += by[0];
        this.y += by[1];
        this.paint();
      } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") {
        this.fit();
        this.paint();
      } else return;
      event.preventDefault();
    });
  }
}
