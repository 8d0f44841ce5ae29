"""`python -m legnn` is the command `legnn`."""

from legnn.cli import main

main()
