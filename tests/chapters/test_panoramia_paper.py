"""One command runs all of the chapter's experiments in the paper profile."""

from experiments import EXPERIMENTS
from experiments.panoramia import __main__ as paper


def test_every_module_with_an_experiment_is_run_once():
    modules = {name.split(":")[0].rpartition(".") for name in EXPERIMENTS.values()}
    own = [module for room, _, module in modules if room == "experiments.panoramia"]
    assert sorted(paper.LONGEST_FIRST) == sorted(own)


def test_a_module_that_fails_is_told():
    ended, _ = paper.run("no_such_module")
    assert ended != 0
