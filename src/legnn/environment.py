"""Environment variables that libraries read once, when they are loaded; set before PyTorch is imported."""

import os

CHOSEN_BY_USER = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}


def thread_waiting() -> dict[str, str]:
    """Returns variables by which OpenMP threads wait actively for some 0.1 ms before they sleep.

    None if the user has chosen how threads wait. Threads that always wait actively take the time from each other on a
    busy machine. Threads that sleep at once wake up so slowly that a small training takes a fifth longer.
    """
    return {} if CHOSEN_BY_USER & os.environ.keys() else {"GOMP_SPINCOUNT": "20000"}
