"""Precision: what a name means on a device, and that the caller's own choice comes back."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments, named
from torch.nn.modules.module import register_module_forward_pre_hook

import legnn
from legnn.errors import InputError, Interrupted
from legnn.files import digest_bytes
from legnn.nn.block import Block
from legnn.notes import Note
from legnn.runs import RunFolder, device, session
from legnn.runs.device import Cpu, hardware
from legnn.runs.digests import write_digests
from legnn.runs.precision import matrix_products
from legnn.runs.tensors import load_tensors, save_tensors

FP32, BF16 = torch.float32, torch.bfloat16
CPU = Cpu(torch.device("cpu"))
QUICK = {"epochs": 4, "hidden": 8, "device": "cpu"}


@pytest.mark.parametrize(
    ("name", "kind", "dtype", "products"),
    [
        ("fp32", "cpu", FP32, "highest"),
        ("fp32", "cuda", FP32, "highest"),
        ("tf32", "cuda", FP32, "high"),
        ("bf16", "cpu", BF16, "highest"),
        ("bf16", "cuda", BF16, "high"),
        ("auto", "cpu", FP32, "highest"),
        ("auto", "cuda", FP32, "high"),
    ],
)
def test_what_a_name_means_on_a_device(name, kind, dtype, products, monkeypatch):
    monkeypatch.setattr(device, "cpu_multiplies_bf16", lambda: True)
    assert hardware(torch.device(kind)).precision(name) == (dtype, products)


def test_bf16_is_fp32_on_a_cpu_that_does_not_multiply_in_it(monkeypatch):
    monkeypatch.setattr(device, "cpu_multiplies_bf16", lambda: False)
    assert CPU.precision("bf16") == CPU.precision("fp32")


def test_tf32_needs_a_gpu_to_train():
    with pytest.raises(InputError, match=r"`train\.precision=tf32` needs a GPU.*; give fp32 or auto"):
        CPU.precision("tf32")


@pytest.fixture
def flags():
    """Puts PyTorch's own back after a test."""
    matrices, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(matrices)
    torch.backends.cudnn.allow_tf32 = cudnn


def allowed() -> tuple[bool, bool]:
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("inside", ["highest", "high", "medium"])
@pytest.mark.parametrize("cudnn", [False, True])
@pytest.mark.parametrize("matrices", ["highest", "high", "medium"])
def test_tf32_is_as_asked_for_within_and_as_it_was_after(matrices, cudnn, inside):
    torch.set_float32_matmul_precision(matrices)
    torch.backends.cudnn.allow_tf32 = cudnn
    with matrix_products(inside):
        assert torch.get_float32_matmul_precision() == inside
        assert allowed() == (inside != "highest",) * 2
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == (matrices, cudnn)
    with pytest.raises(ZeroDivisionError), matrix_products(inside):
        _ = 1 / 0
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == (matrices, cudnn)


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="PyTorch has these names since 2.9")
@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("inside", ["highest", "high", "medium"])
def test_what_was_set_by_pytorchs_newer_names_comes_back_too(inside):
    places = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    for place, value in zip(places, ("tf32", "ieee"), strict=True):
        place.fp32_precision = value
    with matrix_products(inside):
        assert torch.get_float32_matmul_precision() == inside
        assert allowed() == (inside != "highest",) * 2
    assert [place.fp32_precision for place in places] == ["tf32", "ieee"]


@pytest.mark.usefixtures("flags")
def test_a_run_computes_in_its_precision_and_leaves_the_callers(tmp_path):
    torch.set_float32_matmul_precision("high")
    seen = []
    run = legnn.train(
        small_data(),
        **arguments(**QUICK, precision="fp32"),
        out=tmp_path / "run",
        on_epoch=lambda log: seen.append(allowed()),
    )
    assert seen == [(False, False)] * 4
    assert torch.get_float32_matmul_precision() == "high"
    legnn.Run.open(run.folder).predict(small_data())
    assert torch.get_float32_matmul_precision() == "high"


def test_the_precision_asked_for_is_kept_with_the_run(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK, precision="fp32"), out=tmp_path / "run")
    assert run.result.precision == "fp32"
    assert RunFolder.open(run.folder).settings.train.precision == "fp32"
    assert legnn.train(small_data(), **arguments(**QUICK)).result.precision == "auto"


def test_auto_is_fp32_on_the_cpu():
    runs = [legnn.train(small_data(), **arguments(**QUICK, precision=name)) for name in ("auto", "fp32")]
    pd.testing.assert_frame_equal(runs[0].predictions, runs[1].predictions, check_exact=True)


def test_a_run_trained_in_tf32_predicts_on_the_cpu(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    # as if it had been trained on a GPU
    settings = replace(run.settings, train=replace(run.settings.train, precision="tf32", device="auto"))
    (run.folder / "settings.yaml").write_text(settings.to_yaml())
    path = run.folder / "weights.safetensors"
    save_tensors(path, load_tensors(path)[0], {"settings": settings.digest})
    write_digests(run.folder, {"settings.yaml": settings.digest, path.name: digest_bytes(path.read_bytes())})
    again = legnn.Run.open(run.folder).predict(small_data(), device="cpu")
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)


def test_what_auto_chose_is_kept_with_the_run_and_what_an_earlier_run_says_is_not_chosen_again(tmp_path, monkeypatch):
    def as_chosen(settings, *_):
        return settings.override(named(precision="bf16")), Note("precision-chosen", "precision bf16 (auto)")

    stop = {"on_epoch": lambda log: None, "should_stop": lambda: True}
    with pytest.raises(Interrupted):
        legnn.train(small_data(), **arguments(**stop, **QUICK), out=tmp_path / "earlier")
    monkeypatch.setattr(session, "choose_precision", as_chosen)
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    assert RunFolder.open(run.folder).settings.train.precision == run.result.precision == "bf16"
    assert "precision-chosen" in [note.code for note in run.result.notes]
    # as it was trained, on the CPU too
    again = legnn.Run.open(run.folder).predict(small_data(), device="cpu")
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)
    earlier = legnn.resume(tmp_path / "earlier", small_data())
    assert earlier.result.precision == "auto"
    assert earlier.settings.train.precision == "auto"


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_bf16_trains_and_predicts_close_to_fp32(tmp_path, backbone, monkeypatch):
    monkeypatch.setattr(device, "cpu_multiplies_bf16", lambda: True)
    options = {"epochs": 60, "hidden": 16, "lr": 0.02, "device": "cpu", "backbone": backbone}
    data = small_data(nodes=120)
    seen = set()
    hook = register_module_forward_pre_hook(
        lambda module, inputs: seen.add(inputs[0].dtype) if isinstance(module, Block) else None
    )
    try:
        run = legnn.train(data, **arguments(**options, precision="bf16"), out=tmp_path / "run")
    finally:
        hook.remove()
    assert seen == {BF16}
    plain = legnn.train(data, **arguments(**options, precision="fp32"))
    assert {value.dtype for value in run.model.parameters()} == {FP32}
    assert abs(run.result.test["accuracy"] - plain.result.test["accuracy"]) < 0.1
    pd.testing.assert_frame_equal(
        legnn.Run.open(run.folder).predict(data, device="cpu"), run.predictions, check_exact=True
    )
