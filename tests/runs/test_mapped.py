"""A graph whose features would not fit in memory still trains: what is mapped is never copied whole."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import legnn

NODES, CHANNELS = 40_000, 1024
MIB = 2**20

SCRIPT = """
import re, sys, threading, time
from functools import partial
from pathlib import Path
import legnn
from legnn.runs import device

# a machine on which the graph does not fit would compute layer by layer, in parts that are small beside the graph
device.DevicePlan = partial(device.DevicePlan, chunk_bytes=2**23)
device.AT_ONCE = 0
peak = [0]

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def watch():
    while True:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.005)

options = {"hidden": 8, "layers": 2, "batch": 128, "epochs": 1}
options["settings"] = {"train.fanout": "5", "train.own_label_folds": 2, "model.norm": "none"}
# imports and compiled kernels are no part of what is measured
legnn.train("digits", **options)
before = anonymous()
threading.Thread(target=watch, daemon=True).start()
legnn.train(sys.argv[1], **options)
print(peak[0] - before)
"""


def tables(folder: Path) -> Path:
    """A folder of tables with 156 MiB of features."""
    folder.mkdir()
    random = np.random.default_rng(0)
    split = random.choice(["train", "val", "test", ""], NODES, p=[0.05, 0.01, 0.01, 0.93])
    label = np.where(split == "", None, np.arange(NODES) % 3)
    pd.DataFrame({"id": np.arange(NODES), "label": label, "split": split}).to_parquet(folder / "nodes.parquet")
    ends = random.integers(0, NODES, (2, 2 * NODES))
    pd.DataFrame({"source": ends[0], "target": ends[1]}).to_parquet(folder / "edges.parquet")
    shape = (NODES, CHANNELS)
    features = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=shape)
    for begin in range(0, NODES, 10_000):
        features[begin : begin + 10_000] = random.standard_normal((10_000, CHANNELS), np.float32)
    return folder


@pytest.mark.slow
def test_training_in_mini_batches_keeps_no_copy_of_mapped_features(tmp_path):
    legnn.prepare_folder(tables(tmp_path / "tables"), tmp_path / "graph")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "graph")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    grown, whole = int(done.stdout), NODES * CHANNELS * 4
    assert grown < 0.5 * whole, f"{grown / MIB:.0f} MiB for {whole / MIB:.0f} MiB of features"
