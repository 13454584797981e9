"""The methods by name, and the columns that each needs besides the score."""

from collections.abc import Mapping

METHODS = (
    "one-run",
    "one-run-fdp",
    "two-worlds",
    "observational-label",
    "zero-run",
    "panoramia",
)
GAUSSIAN = ("one-run-fdp", "observational-label", "zero-run")  # two-worlds only on request
FAMILIES = ("approx", "gaussian")
NEEDS: Mapping[str, tuple[str, ...]] = {
    "one-run": ("member",),
    "one-run-fdp": ("member",),
    "two-worlds": ("member",),
    "observational-label": ("chosen",),
    "zero-run": ("member",),
    "panoramia": ("member", "baseline"),
}
