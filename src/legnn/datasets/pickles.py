"""A check of pickles before they are loaded: Planetoid is published as pickles, and loading one can run any code."""

import pickletools
from pathlib import Path

from legnn.errors import InputError

# all globals in the published Planetoid files: arrays, sparse matrices and a dict of lists
HARMLESS = frozenset(
    {
        "numpy ndarray",
        "numpy dtype",
        "numpy.core.multiarray _reconstruct",
        "scipy.sparse.csr csr_matrix",
        "collections defaultdict",
        "__builtin__ list",
    }
)
# opcodes that hide the name of a global; the published files use none of them
HIDDEN = frozenset({"STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"})


def refuse_harmful_pickle(path: Path) -> None:
    """Raises `InputError` if a pickle has globals other than arrays, sparse matrices and dicts of lists.

    The opcodes are read, never executed.
    """
    try:
        with path.open("rb") as file:
            for opcode, argument, _ in pickletools.genops(file):
                if opcode.name in HIDDEN or (opcode.name == "GLOBAL" and argument not in HARMLESS):
                    raise InputError(
                        f"{path} names {str(argument or 'a hidden global')!r}, which the published file does not; it "
                        f"may run code and was not opened, so get the file from its publisher again"
                    )
    except InputError:
        raise
    except Exception as error:  # genops raises errors of any type for a damaged pickle
        raise InputError(f"{path} is damaged: it is not a whole pickle; delete it and get it again") from error
