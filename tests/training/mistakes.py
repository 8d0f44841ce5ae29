"""Run under torchrun: gives `legnn` one list of arguments after the other, each of which is a mistake.

The first process prints all of them; the others wait for it in the first, and torchrun ends them.
"""

import json
import sys

from legnn.cli import main, processes


def code_of(arguments: list[str]) -> int | str | None:
    sys.argv = ["legnn", *arguments]
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return 0


if __name__ == "__main__":
    # the first process has several to print, perhaps on a busy machine
    processes.SECONDS_FOR_RANK_ZERO = 200.0
    codes = {code_of(arguments) for arguments in json.loads(sys.argv[1])}
    sys.exit(2 if codes == {2} else f"exit codes {codes}")
