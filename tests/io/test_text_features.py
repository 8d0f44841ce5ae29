"""Features of texts are the same for the nodes of today and of tomorrow."""

import numpy as np
import pytest
import torch

from legnn.datasets import load
from legnn.errors import InputError
from legnn.io import TableFeatures
from legnn.io.column_features import Column
from legnn.io.table_features import ColumnFeatures
from legnn.io.text_features import TextFeatures

TEXTS = ["a red apple", "a green apple and a red pear", "blue sky", "the sky is blue and green", "", "pear"]


def test_saved_features_transform_new_texts_bit_for_bit(tmp_path):
    fitted = TextFeatures.fit(TEXTS, channels=4)
    columns = ColumnFeatures([Column(name="about", kind="text")], fitted)
    TableFeatures({"nodes": columns}).save(tmp_path / "columns.safetensors")
    again = TableFeatures.load(tmp_path / "columns.safetensors").tables["nodes"].text
    for texts in (TEXTS, ["an apple nobody saw", "sky"], []):
        assert np.array_equal(fitted.transform(texts), again.transform(texts))
        assert again.transform(texts).dtype == np.float32
        assert again.transform(texts).shape == (len(texts), 4)


def test_fitting_again_gives_the_same():
    assert np.array_equal(TextFeatures.fit(TEXTS, 3).components, TextFeatures.fit(TEXTS, 3).components)


def test_channels_are_as_many_as_the_texts_allow():
    assert TextFeatures.fit(TEXTS, channels=1000).channels <= len(TEXTS)


def test_texts_without_a_common_word_still_have_features():
    assert TextFeatures.fit(["one two", "three four"], channels=2).channels == 2


@pytest.mark.parametrize("texts", [["", ""], ["word", "word"], []])
def test_texts_without_words_are_refused(texts):
    with pytest.raises(InputError, match="the text column holds"):
        TextFeatures.fit(texts, channels=2)


@pytest.mark.parametrize("content", [b"", b"not safetensors at all"])
def test_a_damaged_file_is_named(content, tmp_path):
    path = tmp_path / "columns.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match="does not hold the features of tables"):
        TableFeatures.load(path)
    with pytest.raises(InputError, match="does not hold the features of tables"):
        TableFeatures.load(tmp_path / "nowhere")


def test_a_text_column_becomes_the_features_and_fitted_ones_are_used_again(tmp_path):
    rows = [f"{i},{'xy'[i % 2]},{('train', 'train', 'val', 'test')[i % 4]},{TEXTS[i]}" for i in range(4)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,split,about", *rows, "4,,,"]) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,4\n")
    first = load(tmp_path, text="about", text_channels=3)
    assert first.x.shape == (5, 3)
    assert first.x[4].tolist() == [0, 0, 0]
    assert first.table_features.tables["nodes"].text.channels == 3
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,split,about", *rows, "4,,,red sky"]) + "\n")
    later = load(tmp_path, text="about", table_features=first.table_features)
    assert later.table_features.tables["nodes"] is first.table_features.tables["nodes"]
    assert torch.equal(later.x[:4], first.x[:4])
    assert bool(later.x[4].any())


def test_the_debian_descriptions_become_features(real_data):
    data = load(real_data / "debian", text="description", text_channels=16)
    assert data.x.shape == (63436, 16)
    assert "features.npy" in data.notes[0].text
