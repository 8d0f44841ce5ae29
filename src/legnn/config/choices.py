"""Names that settings may have and that a registry may add to, known without importing PyTorch."""

BACKBONES = ["gcn", "sage", "gat", "gatv2", "transformer", "gin"]
ARCHITECTURES = ["legnn", "pyg_gcn", "label_propagation"]
POSTPROCESSES = ["none", "correct_and_smooth"]


def register_choice(choices: list[str], name: str) -> None:
    """Adds a name to one of the lists above, unless it is there."""
    if name not in choices:
        choices.append(name)
