"""The table of docs/results.md: every label usage and AS-Train, three backbones, several seeds.

    python -m benchmarks.results --data cora citeseer pubmed --seeds 5 --jobs 8 --out results.jsonl
    python -m benchmarks.results --data debian --batches full mini --methods LEGNN --out batches.jsonl

Each row is one `legnn train` command, which is printed beside it; rows run in parallel processes. A row that is in
`--out` already is not run again, so that a run cut short goes on.
"""

import argparse
import json
import multiprocessing
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

BACKBONES = ("gcn", "sage", "gat")
METHODS: dict[str, dict[str, Any]] = {
    "vanilla": {"labels": "vanilla"},
    "concat": {"labels": "concat"},
    "addition": {"labels": "addition"},
    "LEGNN": {"labels": "enhanced"},
    "LEGNN + AS-Train": {"labels": "enhanced", "as_train": True},
}
# the same for every method of a set; docs/results.md says how they were chosen
CHOSEN: dict[str, dict[str, Any]] = {
    "citeseer": {"lr": 0.001},
    "pubmed": {"input_dropout": 0.8, "dropout": 0.8, "lr": 0.01, "weight_decay": 0.02},
    "debian": {"epochs": 300},
    "debian-hetero": {"epochs": 300},
    "dblp": {
        "hidden": 64,
        "layers": 3,
        "norm": "none",
        "residual": "none",
        "dropout": 0.5,
        "input_dropout": 0.5,
        "lr": 0.003,
        "weight_decay": 0.001,
        "epochs": 300,
    },
    "ogbn-arxiv": {"epochs": 200},
}
# in mini-batches instead, where an epoch is several steps
MINI: dict[str, dict[str, Any]] = {"debian": {"epochs": 150, "batch": 4096, "fanout": "20"}}


def command(row: dict[str, Any]) -> str:
    """The row as a person would type it."""
    words = ["legnn train", row["data"]]
    for name, value in row["options"].items():
        flag = "--" + name.replace("_", "-")
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join([*words, f"--seeds {row['seeds']}"])


def run(row: dict[str, Any]) -> dict[str, Any]:
    import torch

    import legnn

    torch.set_num_threads(1)
    start = time.time()
    summary = legnn.train_seeds(row["data"], seeds=row["seeds"], **row["options"])
    return {**row, "summary": asdict(summary), "wall": round(time.time() - start, 1)}


def rows(
    data: list[str], backbones: list[str], methods: list[str], precisions: list[str], batches: list[str], seeds: int
) -> list[dict[str, Any]]:
    return [
        {
            "data": name,
            "method": method,
            "seeds": seeds,
            "options": {
                "backbone": backbone,
                **METHODS[method],
                **(MINI[name] if batch == "mini" else CHOSEN.get(name, {})),
                **_precision(precision),
            },
        }
        for name in data
        for backbone in backbones
        for method in methods
        for precision in precisions
        for batch in batches
    ]


def _precision(name: str) -> dict[str, Any]:
    # the default is left out of the command
    return {} if name == "auto" else {"precision": name}


def table(done: list[dict[str, Any]]) -> str:
    """Test and validation accuracy and macro-F1, mean ± unbiased deviation, in Markdown."""
    lines = []
    for name in dict.fromkeys(row["data"] for row in done):
        lines += [f"\n### {name}\n", "| backbone | method | test accuracy | test macro-F1 | validation accuracy |"]
        lines += ["|---|---|---|---|---|"]
        for row in (row for row in done if row["data"] == name):
            scores = row["summary"]
            cells = [scores["test"]["accuracy"], scores["test"]["macro_f1"], scores["val"]["accuracy"]]
            shown = " | ".join(f"{cell['mean']:.4f} ± {cell['std'] or 0:.4f}" for cell in cells)
            told = "".join(
                f", {name} {row['options'][name]}" for name in ("precision", "batch") if name in row["options"]
            )
            lines.append(f"| {row['options']['backbone']} | {row['method']}{told} | {shown} |")
        first = next(row for row in done if row["data"] == name)
        lines.append(f"\n`{command(first)}`, and so on for the other rows.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer", "pubmed", "debian"])
    parser.add_argument("--backbones", nargs="+", default=list(BACKBONES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--precisions", nargs="+", default=["auto"])
    parser.add_argument("--batches", nargs="+", choices=("full", "mini"), default=["full"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results.jsonl"))
    options = parser.parse_args()
    wanted = rows(options.data, options.backbones, options.methods, options.precisions, options.batches, options.seeds)
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.is_file() else []
    known = {command(row) for row in done}
    missing = [row for row in wanted if command(row) not in known]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool, options.out.open("a") as file:
        for row in pool.imap_unordered(run, missing, chunksize=1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            done.append(row)
            print(f"{row['wall']:7.1f} s  {row['summary']['test']['accuracy']['mean']:.4f}  {command(row)}", flush=True)
    place = {command(row): number for number, row in enumerate(wanted)}
    print(table(sorted((row for row in done if command(row) in place), key=lambda row: place[command(row)])))


if __name__ == "__main__":
    main()
