"""The figures that the paper prints, to be shown beside ours where the data are the same."""

from __future__ import annotations

from typing import NamedTuple

FEATURES = {"ogbn-arxiv": 128, "ogbn-mag": 128, "oag-venue": 768}
"""Columns of the features in the paper's data; other features make other figures."""


SCORES = ("accuracy", "macro_f1")
"""The metrics that the paper prints, in this order."""


class Score(NamedTuple):
    """Mean and deviation."""

    mean: float
    std: float


class DataSet(NamedTuple):
    """A row of the table of data sets."""

    nodes: int
    edges: int
    classes: int
    split: str
    homophily: float


DATA_SETS = {
    "ogbn-arxiv": DataSet(169_343, 1_166_243, 40, "54 / 18 / 28", 0.6551),
    "ogbn-mag": DataSet(1_939_743, 21_111_007, 349, "85 / 9 / 6", 0.3040),
    "oag-venue": DataSet(731_050, 3_642_689, 241, "64 / 15 / 21", 0.2324),
}

_METHODS = ("vanilla", "concat", "addition", "LEGNN")


def _rows(*rows: tuple[float, float, float, float]) -> dict[str, tuple[Score, Score]]:
    pairs = [(Score(a, b), Score(c, d)) for a, b, c, d in rows]
    return dict(zip(_METHODS, pairs, strict=True))


LABEL_USAGE = {
    "ogbn-arxiv": {
        "gcn": _rows(
            (0.7267, 0.0024, 0.5327, 0.0040),
            (0.7305, 0.0009, 0.5334, 0.0009),
            (0.7294, 0.0033, 0.5354, 0.0027),
            (0.7329, 0.0026, 0.5361, 0.0029),
        ),
        "sage": _rows(
            (0.7254, 0.0021, 0.5293, 0.0028),
            (0.7279, 0.0014, 0.5346, 0.0020),
            (0.7284, 0.0005, 0.5333, 0.0021),
            (0.7316, 0.0019, 0.5354, 0.0011),
        ),
        "gat": _rows(
            (0.7287, 0.0008, 0.5274, 0.0027),
            (0.7313, 0.0019, 0.5354, 0.0017),
            (0.7318, 0.0024, 0.5372, 0.0012),
            (0.7337, 0.0007, 0.5397, 0.0009),
        ),
    },
    "ogbn-mag": {
        "gcn": _rows(
            (0.4189, 0.0037, 0.2284, 0.0019),
            (0.4309, 0.0043, 0.2627, 0.0015),
            (0.4342, 0.0023, 0.2631, 0.0054),
            (0.4710, 0.0042, 0.2837, 0.0043),
        ),
        "sage": _rows(
            (0.4503, 0.0014, 0.2492, 0.0030),
            (0.4694, 0.0045, 0.2885, 0.0038),
            (0.4709, 0.0021, 0.2870, 0.0061),
            (0.5019, 0.0048, 0.3098, 0.0042),
        ),
        "gat": _rows(
            (0.4898, 0.0047, 0.2938, 0.0030),
            (0.5062, 0.0047, 0.3235, 0.0030),
            (0.5093, 0.0033, 0.3257, 0.0016),
            (0.5276, 0.0014, 0.3302, 0.0032),
        ),
    },
    "oag-venue": {
        "gcn": _rows(
            (0.2110, 0.0013, 0.1636, 0.0034),
            (0.2290, 0.0012, 0.1764, 0.0013),
            (0.2289, 0.0013, 0.1817, 0.0033),
            (0.2414, 0.0018, 0.1981, 0.0014),
        ),
        "sage": _rows(
            (0.2412, 0.0025, 0.1869, 0.0102),
            (0.2559, 0.0035, 0.1986, 0.0002),
            (0.2588, 0.0018, 0.2031, 0.0064),
            (0.2857, 0.0031, 0.2306, 0.0009),
        ),
        "gat": _rows(
            (0.2764, 0.0030, 0.2165, 0.0013),
            (0.2824, 0.0046, 0.2314, 0.0023),
            (0.2899, 0.0035, 0.2447, 0.0021),
            (0.3040, 0.0015, 0.2551, 0.0011),
        ),
    },
}
"""By data set, backbone and method: accuracy and macro-F1 on the test set."""

DESIGNS = {
    "ogbn-arxiv": {
        "DeeperGCN": Score(0.7192, 0.0016),
        "GaAN": Score(0.7197, 0.0024),
        "DAGNN": Score(0.7209, 0.0025),
        "JKNet": Score(0.7219, 0.0021),
        "GCNII": Score(0.7274, 0.0016),
        "UniMP": Score(0.7311, 0.0020),
        "MLP + C&S": Score(0.7312, 0.0012),
        "LEGNN": Score(0.7337, 0.0007),
        "LEGNN + AS-Train": Score(0.7371, 0.0011),
    },
    "ogbn-mag": {
        "MetaPath2vec": Score(0.3544, 0.0036),
        "SIGN": Score(0.4046, 0.0012),
        "RGCN": Score(0.4678, 0.0067),
        "HGT": Score(0.4927, 0.0061),
        "R-GSN": Score(0.5032, 0.0037),
        "HGConv": Score(0.5045, 0.0017),
        "LEGNN": Score(0.5276, 0.0014),
        "LEGNN + AS-Train": Score(0.5378, 0.0016),
    },
    "oag-venue": {
        "RSHN": Score(0.2159, 0.0023),
        "RGCN": Score(0.2397, 0.0013),
        "HGT": Score(0.2447, 0.0019),
        "HetSANN": Score(0.2581, 0.0021),
        "R-HGNN": Score(0.2887, 0.0012),
        "LEGNN": Score(0.3040, 0.0015),
        "LEGNN + AS-Train": Score(0.3086, 0.0018),
    },
}
"""By data set and method: accuracy on the test set. Those of other designs are their authors' own."""

PUBLISHED_DESIGNS = {
    "cora": {"GCN": 0.815, "APPNP": 0.833, "DAGNN": 0.844, "GCNII": 0.855},
    "citeseer": {"GCN": 0.703, "APPNP": 0.718, "DAGNN": 0.733, "GCNII": 0.734},
    "pubmed": {"GCN": 0.790, "APPNP": 0.801, "DAGNN": 0.805, "GCNII": 0.802},
}
"""Not in the paper: by data set and design, the accuracy that papers of the designs report on the public splits."""

SMOOTHNESS = {
    "vanilla": (12.4364, 0.7058, 0.6631),
    "concat": (11.6597, 0.7092, 0.6626),
    "addition": (11.5814, 0.7168, 0.6752),
    "LEGNN": (8.8851, 0.7324, 0.7031),
}
"""GD, NMI and ARI on ogbn-arxiv."""

NODE_SELECTION = {
    "vanilla": ((0.8479, 0.7427, 0.7287), (0.7542, 0.5507, 0.5274)),
    "without selection": ((0.9607, 0.6824, 0.6752), (0.8821, 0.4040, 0.3839)),
    "with selection": ((0.8466, 0.7484, 0.7337), (0.7527, 0.5637, 0.5397)),
}
"""GAT on ogbn-arxiv: accuracy of train, validation and test, and macro-F1."""

LABEL_FEATURES = {"gcn": (0.7329, 0.7315), "sage": (0.7316, 0.7292), "gat": (0.7337, 0.7325)}
"""Accuracy on ogbn-arxiv with one-hot label features, and with the mean features of each class."""

CROSS_LABEL_EDGES = range(150_000, 1_500_001, 150_000)
HOMOPHILY = dict(
    zip(
        CROSS_LABEL_EDGES,
        (0.5804, 0.5211, 0.4727, 0.4325, 0.3987, 0.3697, 0.3447, 0.3229, 0.3036, 0.2865),
        strict=True,
    )
)
"""Of ogbn-arxiv with `S` cross-label edges."""
