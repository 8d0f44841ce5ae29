"""Trains on two CSV files and predicts a product that was added later."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import legnn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=100)
epochs = parser.parse_args().epochs

rng = np.random.default_rng(0)
kind = rng.integers(0, 3, 300)
labels = np.array(["book", "tool", "toy"], dtype=object)[kind]
products = pd.DataFrame({"id": np.arange(300), "price": rng.normal(20 + 10 * kind, 8), "label": labels})
products["country"] = rng.choice(["de", "fr", "us"], 300)
products.loc[rng.random(300) < 0.5, "label"] = None  # an empty label: to be predicted
source = rng.integers(0, 300, 900)
same_kind = [rng.choice(np.flatnonzero(kind == kind[product])) for product in source]
bought_together = pd.DataFrame({"source": source, "target": same_kind})

with TemporaryDirectory() as folder:
    products.to_csv(Path(folder) / "nodes.csv", index=False)
    bought_together.to_csv(Path(folder) / "edges.csv", index=False)
    run = legnn.train(folder, epochs=epochs)

    new = pd.DataFrame({"id": [300], "price": [41.5], "country": ["fr"]})
    pd.concat([products, new]).to_csv(Path(folder) / "nodes.csv", index=False)
    new_edge = pd.DataFrame({"source": [300], "target": [7]})
    pd.concat([bought_together, new_edge]).to_csv(Path(folder) / "edges.csv", index=False)
    print(run.predict(folder, top=2).tail(1).to_string())
