"""What is in a picture."""

from pathlib import Path

import numpy as np
from matplotlib import image


def holds_color(path: Path, color: str) -> bool:
    """Whether a pixel of the picture has the color `#rrggbb`."""
    wanted = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return bool((np.abs(image.imread(path)[..., :3] - wanted).max(-1) < 0.01).any())
