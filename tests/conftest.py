"""What all tests share: a second device; hypothesis without a clock, on CI always the same."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# two files of one name, which pytest's search for doctests takes for one module
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

settings.register_profile("calm", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "calm")


def pytest_collection_modifyitems(items):
    """Count lines in the tests of the package alone: counting slows a training by half."""
    chapters = Path(__file__).parent / "chapters"
    for item in items:
        if chapters in item.path.parents:
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture
def far():
    """A second device, "meta", on which nothing of the first may be met with by mistake."""
    from far_device import FarDevice

    with FarDevice() as device:
        yield device
