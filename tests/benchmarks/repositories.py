"""Small repositories of predictions that were never trained."""

import json

import numpy as np

CLASSES, NODES = 3, 90
NAMES = (
    "legnn-gcn-wide", "legnn-gat-wide", "legnn-gcn-strong", "gcn-wide", "gcn-strong", "sage-wide", "gat-wide",
    "unimp-small", "gcnii-small", "appnp-small", "label-propagation", "boosted-trees",
)  # fmt: skip
GRAPHS = ("one", "two", "three")


def write_repository(root, graphs=GRAPHS, seeds=1, skill=lambda data, name: 0.5, names=NAMES):
    """Writes runs in which a candidate is right on a part `skill(data, name)` of the nodes."""
    for number, data in enumerate(graphs):
        for split in ("public", "few"):
            for seed in range(seeds):
                rng = np.random.default_rng([number, split == "few", seed])
                folder = root / data / f"{split}-{seed}"
                folder.mkdir(parents=True)
                y = {nodes: rng.integers(0, CLASSES, NODES) for nodes in ("val", "test")}
                train = 60 if split == "few" else 600
                facts = {
                    "num_train": train, "num_classes": CLASSES, "counts_features": True, "has_label_edges": False,
                }  # fmt: skip
                np.savez(folder / "labels.npz", facts=json.dumps(facts), classes=CLASSES, **y)
                for name in names:
                    write_run(folder, name, y, skill(data, name), rng)
    return root


def write_run(folder, name, y, skill, rng):
    found = {}
    for nodes, classes in y.items():
        right = rng.random(NODES) < skill
        said = np.where(right, classes, (classes + rng.integers(1, CLASSES, NODES)) % CLASSES)
        p = rng.dirichlet(np.ones(CLASSES), NODES) + 2 * np.eye(CLASSES)[said]
        p /= p.sum(1, keepdims=True)
        for suffix, strength in (("", 1.0), ("_smooth", 0.9)):
            q = strength * p + (1 - strength) / CLASSES
            found[nodes + suffix] = np.rint(255 * q).astype(np.uint8)
    np.savez(folder / f"{name}.npz", **found)
    scores = {key: float((q.argmax(1) == y[key.split("_")[0]]).mean()) for key, q in found.items()}
    (folder / f"{name}.json").write_text(json.dumps({**scores, "seconds": 1.0}))


def permute_test_labels(root):
    """Shuffles the classes of all test nodes."""
    for path in root.glob("*/*/labels.npz"):
        with np.load(path) as file:
            content = dict(file)
        content["test"] = np.random.default_rng(9).permutation(content["test"])
        np.savez(path, **content)
