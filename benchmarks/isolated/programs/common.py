"""What the torch programs share: the device, and the lines in and out.

ISOLATED_DEVICE=cpu makes them small and lets them run where there is no GPU, to try them out.
"""

import json
import os
import sys

DEVICE = os.environ.get("ISOLATED_DEVICE", "cuda")
TINY = DEVICE == "cpu"


def say(**answer):
    print(json.dumps(answer), flush=True)


def obey(commands):
    """Does what each line says until there are no more; the commands answer for themselves."""
    for line in sys.stdin:
        word, *arguments = line.split()
        commands[word](*arguments)
    # Threads and contexts go with the process; there is nothing to save.
    os._exit(0)
