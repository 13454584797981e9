"""What all tests share: hypothesis without a clock, and on CI with the same examples every time."""

import os

from hypothesis import settings

# two files of one name, which pytest's search for doctests takes for one module
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

settings.register_profile("calm", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "calm")
