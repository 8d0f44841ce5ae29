"""Draws the figures of the method and the speed bars: `python docs/site/figures.py` writes them to docs/images."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape

DOCS = Path(__file__).resolve().parents[1]
BLUE, ORANGE, GRAY, INK = "#3b6fb6", "#d9822b", "#8a8f98", "#222"
FONT = 'font-family="Helvetica, Arial, sans-serif"'
BACKBONES = {"gat": "GAT", "sage": "GraphSAGE"}


def text(x: float, y: float, words: str, *, size: float = 13, fill: str = INK, anchor: str = "middle") -> str:
    """Returns a line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}">{escape(words)}</text>'


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """Returns a picture on white, so that it is readable on a dark page, too."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT} role="img">'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{height}" fill="white"/>']
    ) + ("\n" + "\n".join(parts) + "\n</svg>\n")


def line(a: tuple[float, float], b: tuple[float, float], color: str = GRAY, dash: str = "") -> str:
    """Returns an edge."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{a[0]:g}" y1="{a[1]:g}" x2="{b[0]:g}" y2="{b[1]:g}" stroke="{color}" stroke-width="1.8"{dashed}/>'
    )


def disc(at: tuple[float, float], words: str, fill: str, stroke: str, radius: float = 17) -> str:
    """Returns a node of the graph."""
    circle = f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="2"/>'
    return circle + text(at[0], at[1] + 4.5, words, size=12.5)


def box(at: tuple[float, float], words: str, color: str) -> str:
    """Returns a label, which is a node of another kind."""
    x, y = at
    frame = f'<rect x="{x - 46:g}" y="{y - 18:g}" width="92" height="36" rx="5"'
    shape = f'{frame} fill="#fff" stroke="{color}" stroke-width="2.4"/>'
    return shape + text(x, y + 4.5, words, fill=color)


def label_graph() -> str:
    """Returns the label graph: nodes, labels, and who shows which label."""
    nodes = {
        1: (70, 190),
        2: (170, 150),
        3: (270, 195),
        4: (380, 150),
        5: (480, 190),
        6: (570, 150),
        7: (115, 255),
        8: (480, 255),
    }
    edges = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 7), (7, 3), (5, 8), (8, 4)]
    labels = {"label red": (150, 45), "label blue": (470, 45)}
    colors = {"label red": "#b8403a", "label blue": BLUE}
    shows = {1: "label red", 2: "label red", 5: "label blue", 6: "label blue"}
    predicted = {7: "label red", 4: "label blue"}
    parts = [line(nodes[a], nodes[b]) for a, b in edges]
    parts += [line(nodes[node], labels[label], colors[label]) for node, label in shows.items()]
    parts += [line(nodes[node], labels[label], colors[label], "3 6") for node, label in predicted.items()]
    parts += [box(at, words, colors[words]) for words, at in labels.items()]
    for node, at in nodes.items():
        label = shows.get(node) or predicted.get(node)
        fill = {"label red": "#f6dcda", "label blue": "#dce7f6"}.get(label or "", "#eee")
        parts.append(disc(at, str(node), fill, colors[label] if label else GRAY))
    notes = [
        "1, 2, 5, 6 show their labels this epoch: edges to and from the label.",
        "4, 7 are predicted this epoch: they supply the loss, and their edge to the label is left out (dotted).",
        "3, 8 have no label. They are predicted in the end, with every training label shown.",
    ]
    parts += [text(20, 305 + 19 * k, note, size=12.5, anchor="start") for k, note in enumerate(notes)]
    return svg(640, 360, "Labels are nodes of the graph, joined to the training nodes that show them", parts)


def epoch() -> str:
    """Returns one epoch: selection, label graph, model, and the two terms of the loss."""
    steps = [
        (20, 70, 130, "training nodes", "all that have a label"),
        (200, 20, 150, "shown", "1 − α of them: label edges"),
        (200, 120, 150, "predicted", "α of them: supervised loss"),
        (400, 20, 140, "label graph A'", "Y holds shown labels only"),
        (590, 20, 130, "model", "K layers, softmax"),
        (590, 120, 130, "loss", "both terms, one step"),
        (400, 210, 140, "pseudo labels", "unlabeled, p · TC > t"),
    ]
    arrows = [
        ((150, 92), (200, 56)), ((150, 104), (200, 146)), ((350, 46), (400, 46)), ((540, 46), (590, 46)),
        ((655, 72), (655, 120)), ((350, 146), (590, 146)), ((600, 72), (500, 210)), ((540, 232), (640, 172)),
    ]  # fmt: skip
    head = '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    parts = [head + f'<path d="M0 0L8 4L0 8z" fill="{GRAY}"/></marker></defs>']
    parts += [line(a, b).replace("/>", ' marker-end="url(#a)"/>') for a, b in arrows]
    for x, y, width, name, what in steps:
        shape = f'<rect x="{x}" y="{y}" width="{width}" height="52" rx="6" fill="#f4f6fa" stroke="{BLUE}"/>'
        middle = x + width / 2
        parts.append(shape + text(middle, y + 22, name) + text(middle, y + 40, what, size=11, fill="#555"))
    return svg(740, 280, "One epoch of training", parts)


def steps_in_tf32(page: str) -> dict[tuple[str, str], str]:
    """Returns the milliseconds of a training step, label-enhanced, by implementation and backbone."""
    section = page.split("## GPU, ogbn-arxiv's size")[1].split("\n## ")[0]
    rows = re.findall(r"^\| tf32 \| `?([\w ]+)`? \| (\w+) \| enhanced \| ([\d.]+) \|", section, re.MULTILINE)
    return {(who, backbone): step for who, backbone, step in rows}


def speed_bars() -> str:
    """Returns bars of a training step beside PyG's `HeteroConv` and the floor."""
    steps = steps_in_tf32((DOCS / "performance.md").read_text(encoding="utf-8"))
    who = {
        "legnn": ("legnn", BLUE),
        "HeteroConv": ("PyG HeteroConv", ORANGE),
        "floor": ("floor: what must be done", GRAY),
    }
    parts, y, scale = [], 46, 440 / max(map(float, steps.values()))
    parts.append(
        text(20, 24, "One training step, label-enhanced, ogbn-arxiv's size, milliseconds", size=14, anchor="start")
    )
    for backbone, title in BACKBONES.items():
        parts.append(text(20, y + 16, title, anchor="start"))
        for name, (words, color) in who.items():
            value = steps[name, backbone]
            width = float(value) * scale
            parts.append(f'<rect x="110" y="{y}" width="{width:.1f}" height="20" rx="2" fill="{color}"/>')
            parts.append(text(116 + width, y + 15, f"{value}  {words}", size=12, anchor="start"))
            y += 25
        y += 14
    return svg(760, y + 4, "A training step of legnn beside PyG's HeteroConv", parts)


FIGURES = {"label-graph.svg": label_graph, "epoch.svg": epoch, "speed-bars.svg": speed_bars}

if __name__ == "__main__":
    for file, draw in FIGURES.items():
        (DOCS / "images" / file).write_text(draw(), encoding="utf-8")
