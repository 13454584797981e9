"""All experiments of the chapter in the paper profile, in two processes side by side.

Run it in the folder `chapters`: `python -m experiments.panoramia`. The experiments of a module
share their networks, so each module is one process. What is interrupted goes on where it stopped.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

LONGEST_FIRST = ("pixels", "texts", "dp_images", "images", "tables", "comparison", "simulation")
ENVIRONMENT = {
    "AUDITKIT_PROFILE": "paper",
    # one thread a process: two cores have no room for more
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    # glibc keeps memory for the next step and does not hand it back: private texts take two thirds
    # of the time
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}


def run(module: str) -> tuple[int, float]:
    """Run one module, and return how it ended and how many seconds it took."""
    start = time.monotonic()
    command = [sys.executable, "-m", f"experiments.panoramia.{module}"]
    ended = subprocess.run(command, env=os.environ | ENVIRONMENT, check=False).returncode
    return ended, time.monotonic() - start


if __name__ == "__main__":
    with ThreadPoolExecutor(2) as both:
        found = dict(zip(LONGEST_FIRST, both.map(run, LONGEST_FIRST), strict=True))
    for module, (ended, seconds) in found.items():
        print(f"{module}: {seconds / 60:.1f} min" + (f", failed with {ended}" if ended else ""))
    sys.exit(any(ended for ended, _ in found.values()))
