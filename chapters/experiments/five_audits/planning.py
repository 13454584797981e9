"""How many coins, runs or pairs an audit takes to show an ε in four audits of five.

`auditkit plan` says the same for one audit at a time. The attack is the best one on a Gaussian
mechanism with a true ε: its strength. Columns with `least` are what an attack without an error
takes. A law of votes has no plan: its ε is computed.
"""

from auditkit.bounds.power import Setting, least_without_error, mu_of, plan
from auditkit.experiment import study

PLAN = "three-plan"
DELTA, POWER = 1e-5, 0.8
# what is counted, by theorem and family; a label audit takes a placebo of as many again, and a zero
# run of a larger shift shows nothing, since it drops guesses
AUDITS = {
    "one run": ("one-run-fdp", None, "coins"),
    "one run, no family": ("one-run", None, "coins"),
    "labels": ("observational-label", None, "members"),
    "zero run, shift 0.1": ("zero-run", None, "members and others"),
    "zero run, shift 0.3": ("zero-run", None, "members and others"),
    "generated examples": ("panoramia", None, "pairs"),
    "many runs": ("two-worlds", "gaussian", "runs"),
    "many runs, no family": ("two-worlds", "approx", "runs"),
}
SHIFTS = {"zero run, shift 0.1": 0.1, "zero run, shift 0.3": 0.3}
TARGETS = (0.5, 1.0, 2.0, 4.0)
TIMES = (1.25, 1.5, 2.0, 4.0)  # the true ε over the one to be shown


@study(
    PLAN,
    paper={"audit": list(AUDITS), "target": list(TARGETS), "times": list(TIMES)},
    live={"audit": ["one run", "many runs"], "target": [1.0], "times": [2.0]},
)
def planned(audit: str, target: float, times: float) -> dict:
    """Return how many examples it takes; None where ten million fall short."""
    method, family, unit = AUDITS[audit]
    setting = Setting(
        method,
        target,
        family,
        delta=0.0 if method == "panoramia" else DELTA,
        shift=SHIFTS.get(audit, 0.0),
    )
    needed = plan(setting, mu=mu_of(times * target, DELTA), power=POWER)
    return {
        "true": times * target,
        "unit": unit,
        "least": least_without_error(setting),
        "examples": None if needed is None else needed.examples,
        "share": None if needed is None else needed.share,
    }
