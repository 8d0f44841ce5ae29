"""The estimators follow scikit-learn's conventions, over runs and a graph of the rows."""

import io
import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.graphs import small_data
from tests.named import arguments
from torch_geometric.data import Data

import legnn
from legnn import AutoLEGNNClassifier, LEGNNClassifier, estimator
from legnn.config import COMMON
from legnn.errors import InputError
from legnn.runs import Member, Result, write_ensemble
from legnn.runs.fitted import FittedGraph

QUICK = {
    "preset": "simple", "hidden": 8, "layers": 2, "epochs": 12, "lr": 0.05,
    "own_label_folds": 2, "norm": "none", "dropout": 0.0,
    "input_dropout": 0.0,
}  # fmt: skip

EXPECTED_FAILED_CHECKS = {
    "check_classifiers_classes": "it has the classes -1 and 1, and here -1 is unlabeled, as in LabelSpreading",
}


@parametrize_with_checks(
    [LEGNNClassifier(**arguments(**QUICK))], expected_failed_checks=lambda estimator: EXPECTED_FAILED_CHECKS
)
def test_the_conventions_of_scikit_learn_hold(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris) -> LEGNNClassifier:
    return LEGNNClassifier(**arguments(**QUICK)).fit(*iris)


def graph_data() -> tuple[Data, np.ndarray]:
    """A graph and its labels, those of test nodes hidden."""
    data = small_data(nodes=80)
    return data, torch.where(data.test_mask, -1, data.y).numpy()


def test_it_learns_and_predicts_new_rows(iris):
    X, y = iris
    scores = cross_val_score(make_pipeline(StandardScaler(), LEGNNClassifier(**arguments(**QUICK))), X, y, cv=3)
    assert scores.mean() > 0.85


def test_settings_are_parameters_that_a_grid_searches(iris):
    found = GridSearchCV(LEGNNClassifier(**arguments(**QUICK)), {"hidden": [4, 8], "n_neighbors": [5]}, cv=2).fit(*iris)
    assert found.best_params_["hidden"] in (4, 8)
    assert found.best_estimator_.result_.parameters > 0


def test_parameters_are_the_settings_by_name_and_none_leaves_one_open():
    parameters = LEGNNClassifier(hidden=32).get_params()
    assert parameters["hidden"] == 32
    assert set(COMMON) - set(parameters) == {"text", "split", "seed"}
    assert parameters["lr"] is None
    assert clone(LEGNNClassifier(hidden=32)).get_params() == parameters
    with pytest.raises(TypeError, match="hiden"):
        LEGNNClassifier(hiden=32)


def test_values_are_checked_by_the_settings_when_it_is_fitted(iris):
    for wrong, words in (
        ({"hidden": 0}, "hidden must be at least 1"),
        ({"backbone": "gcnn"}, "did you mean 'gcn'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number above 0"),
        ({"validation_fraction": 1}, "validation_fraction must be above 0 and below 1"),
    ):
        with pytest.raises(InputError, match=words):
            LEGNNClassifier(**arguments(**{**QUICK, **wrong})).fit(*iris)


@pytest.mark.parametrize("hidden_by", [-1, np.nan, None])
def test_rows_may_be_unlabeled_and_get_their_class_by_transduction(iris, hidden_by):
    X, y = iris
    labels = y.astype(object if hidden_by is None else float)
    hidden = np.arange(len(y)) % 3 != 0
    labels[hidden] = hidden_by
    found = LEGNNClassifier(**arguments(**QUICK)).fit(X, labels)
    assert found.classes_.tolist() == [0, 1, 2]
    assert (found.transduction_[~hidden] == y[~hidden]).all(), "given labels stay"
    assert (found.transduction_[hidden] == y[hidden]).mean() > 0.8


def test_classes_keep_their_names(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    names[::5] = None
    found = LEGNNClassifier(**arguments(**QUICK)).fit(X, names)
    assert found.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(found.predict(X[:7])) <= set(found.classes_)


def test_probabilities_are_those_of_the_classes_and_of_each_row_alone(fitted, iris):
    p = fitted.predict_proba(iris[0])
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(iris[0][40:43]), p[40:43], atol=1e-5)
    assert (fitted.classes_[p.argmax(1)] == fitted.predict(iris[0])).all()


def as_networkx(data: Data) -> nx.Graph:
    graph = nx.Graph()
    graph.add_edges_from(data.edge_index.T.tolist())
    return graph


GRAPHS = {
    "two rows": lambda data: data.edge_index.numpy(),
    "two columns": lambda data: data.edge_index.T.tolist(),
    "a matrix": lambda data: sparse.csr_matrix(
        (np.ones(data.num_edges), data.edge_index.numpy()), shape=(data.num_nodes, data.num_nodes)
    ).minimum(1),
    "a Data": lambda data: data,
    "NetworkX": as_networkx,
}


def test_a_graph_may_be_given_in_many_forms():
    data, y = graph_data()
    found = [
        LEGNNClassifier(**arguments(**QUICK)).fit(data.x.numpy(), y, graph=form(data)).predict_proba(data.x.numpy())
        for form in GRAPHS.values()
    ]
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], atol=1e-5)


def test_a_fit_with_a_graph_predicts_its_own_rows_as_a_run_does():
    data, y = graph_data()
    classifier = LEGNNClassifier(**arguments(**QUICK), validation_fraction=0.3).fit(data.x.numpy(), y, graph=data)
    run = classifier._fitted.runs[0]
    np.testing.assert_allclose(classifier.predict_proba(data.x), run.predict_proba().to_numpy(), atol=1e-6)
    hidden = y < 0
    assert (classifier.transduction_[hidden] == classifier.predict(data.x)[hidden]).all()
    assert classifier.result_ == run.result
    assert isinstance(classifier.result_, Result)


def test_a_fit_with_a_graph_predicts_other_rows_by_their_edges():
    data, y = graph_data()
    x = data.x.numpy()
    classifier = LEGNNClassifier(**arguments(**QUICK)).fit(x, y, graph=data)
    with pytest.raises(InputError, match="give their edges as graph, in which the 80 rows of fit come first"):
        classifier.predict(x[:3])
    # a new row, with the edges of a node of the class 1
    like = int(np.flatnonzero(y == 1)[0])
    neighbors = data.edge_index[0][data.edge_index[1] == like].numpy()
    edges = np.stack([neighbors, np.full(len(neighbors), 80)])
    p = classifier.predict_proba(x[[like]], graph=edges)
    assert p.shape == (1, 3)
    assert not np.allclose(p, classifier.predict_proba(x[[like]], graph=np.array([[80], [80]]))), "edges matter"


class Named(pickle.Unpickler):
    """Notes the modules that a pickle names."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> object:
        self.modules.add(module)
        return super().find_class(module, name)


@pytest.mark.parametrize("with_graph", [False, True])
def test_a_pickle_predicts_alike_and_holds_no_module(fitted, iris, with_graph):
    X = iris[0]
    if with_graph:
        data, y = graph_data()
        X = data.x.numpy()
        fitted = LEGNNClassifier(**arguments(**QUICK)).fit(X, y, graph=data)
    content = pickle.dumps(fitted)
    again = pickle.loads(content)
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert np.array_equal(again.transduction_, fitted.transduction_)
    assert pickle.dumps(again) == pickle.dumps(pickle.loads(content)), "a pickle of a pickle is the same"
    modules = Named(io.BytesIO(content))
    modules.load()
    assert {module.split(".")[0] for module in modules.modules} == {"legnn", "numpy"}
    assert not [module for module in modules.modules if module.startswith(("legnn.nn", "legnn.baselines"))]


def test_every_setting_of_a_fit_reaches_its_run(iris):
    found = LEGNNClassifier(**arguments(**QUICK, backbone="sage", choose_by="macro_f1"), random_state=7).fit(*iris)
    settings = found._fitted.runs[0].settings
    assert (settings.model.backbone, settings.train.choose_by, settings.train.seed) == ("sage", "macro_f1", 7)


def test_a_fraction_of_the_labeled_rows_of_every_class_chooses_the_epoch(iris):
    graph = LEGNNClassifier(**arguments(**QUICK), validation_fraction=0.4).fit(*iris)._fitted.graph
    assert torch.bincount(graph.y[graph.val_mask]).tolist() == [20, 20, 20]
    assert torch.bincount(graph.y[graph.train_mask]).tolist() == [30, 30, 30]
    with pytest.raises(InputError, match="every class has one labeled row"):
        LEGNNClassifier(**arguments(**QUICK)).fit(iris[0][[0, 60]], iris[1][[0, 60]])


def quick_search(data, *, out, settings, **options):
    """In the place of `auto`: two runs, weighted and tempered."""
    members = []
    for name, weight in (("gcn", 0.75), ("mlp", 0.25)):
        kind = {"architecture": "mlp"} if name == "mlp" else {}
        legnn.train(data, **arguments(**QUICK, **kind, seed=settings.values["train.seed"]), out=out / name)
        members.append(Member(folder=name, weight=weight, propagation_steps=5, propagation_alpha=0.9))
    return write_ensemble(out, members, 1.5, seconds=1.0, data=data)


def test_the_automatic_classifier_mixes_the_members_for_new_rows_and_is_pickled(iris, monkeypatch):
    monkeypatch.setattr(estimator, "auto", quick_search)
    X, y = iris
    found = AutoLEGNNClassifier().fit(X, np.where(np.arange(len(y)) % 2, y, -1))
    gcn, mlp = (FittedGraph(found._fitted.data, [run], [1.0]) for run in found._fitted.runs)
    neighbors = found._nearest(found._fitted.data.x, torch.from_numpy(X).float())
    parts = [one.predict_joined(torch.from_numpy(X).float(), neighbors, "cpu").numpy() for one in (gcn, mlp)]
    expected = (0.75 * parts[0] + 0.25 * parts[1]) ** (1 / 1.5)
    np.testing.assert_allclose(found.predict_proba(X), expected / expected.sum(1, keepdims=True), atol=1e-6)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).predict_proba(X), found.predict_proba(X))
    assert found.score(X, y) > 0.8
    assert "budget" in found.get_params()
    assert "preset" not in found.get_params()


@pytest.mark.slow
def test_the_automatic_classifier_searches_within_its_budget():
    X, y = make_blobs(90, random_state=0)
    found = AutoLEGNNClassifier(budget=15, jobs=1, only=["label-propagation"]).fit(X, y)
    assert found.score(X, y) > 0.8
