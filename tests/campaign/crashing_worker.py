"""A worker whose second mutation crashes and whose third never ends."""

import argparse
import faulthandler
import json
import os
import signal


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("specimens")
    parser.add_argument("--place")
    parser.add_argument("--seed")
    parser.add_argument("--numbers", default="")
    numbers = [int(part) for part in parser.parse_args().numbers.split(",") if part]
    faulthandler.enable()
    for number in numbers:
        begun = {"number": number, "kind": "runs", "about": ""}
        print(json.dumps(begun), flush=True)
        if number == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        while number == 3:
            pass
        print(json.dumps({**begun, "verdict": "same", "message": "", "seconds": 0}), flush=True)


if __name__ == "__main__":
    main()
