"""The experiments of the chapters, one module a chapter.

Each module holds functions of one cell of a grid, and makes its stored results when it is run:
`AUDITKIT_PROFILE=paper python -m experiments.validity`, in the folder `chapters`.
"""

# Where the function of every stored experiment is, by id. Names, not functions: nothing is imported
# before it is needed, and a module can be run by itself.
EXPERIMENTS = {
    "obs-images": "experiments.observational.images:cell",
    "obs-images-pate": "experiments.observational.pate_fixmatch:cell",
    "obs-randomized-response": "experiments.observational.randomized_response:cell",
    "obs-reference": "experiments.observational.reference_quality:cell",
    "obs-shift": "experiments.observational.randomized_response:shift_cell",
    "obs-tables": "experiments.observational.tables:cell",
    "obs-texts": "experiments.observational.texts:cell",
    "obs-theorem-5": "experiments.observational.validity:one_direction",
    "obs-theorem-5-shift": "experiments.observational.validity:one_shift",
    "obs-validity": "experiments.observational.validity:cell",
    "pred-exact": "experiments.private_prediction.exact:cell",
    "pred-failure-rates": "experiments.private_prediction.failure_rates:cell",
    "pred-group": "experiments.private_prediction.exact:group_cell",
    "pred-knn": "experiments.private_prediction.neighbours:cell",
    "pred-prompt-adversarial": "experiments.private_prediction.prompt_audits:adversarial_cell",
    "pred-prompt-natural": "experiments.private_prediction.prompt_audits:natural_cell",
    "pred-prompt-poisons-film": "experiments.private_prediction.prompts:poisons_cell",
    "pred-prompt-poisons-film-arrow": "experiments.private_prediction.prompts:poisons_cell",
    "pred-prompt-poisons-newsgroups": "experiments.private_prediction.prompts:poisons_cell",
    "pred-prompt-votes-film": "experiments.private_prediction.prompts:votes_cell",
    "pred-prompt-votes-film-arrow": "experiments.private_prediction.prompts:votes_cell",
    "pred-prompt-votes-newsgroups": "experiments.private_prediction.prompts:votes_cell",
    "pred-repeated": "experiments.private_prediction.joint:repeated_cell",
    "pred-session": "experiments.private_prediction.joint:session_cell",
    "pred-teachers": "experiments.private_prediction.teachers:adversarial_cell",
    "pred-teachers-group": "experiments.private_prediction.teachers:group_cell",
    "pred-teachers-mnist": "experiments.private_prediction.teachers:adversarial_cell",
    "pred-teachers-natural": "experiments.private_prediction.teachers:natural_cell",
    "pred-trials": "experiments.private_prediction.exact:trials_cell",
    "sub-accountants": "experiments.substitute.worst_case:accountants_cell",
    "sub-gaussian-step": "experiments.substitute.worst_case:gaussian_step_cell",
    "sub-heads": "experiments.substitute.heads:cell",
    "sub-heads-coverage": "experiments.substitute.heads:coverage_cell",
    "sub-heads-null": "experiments.substitute.heads:null_cell",
    "sub-heads-runs": "experiments.substitute.heads:runs_cell",
    "sub-networks": "experiments.substitute.networks:cell",
    "sub-networks-null": "experiments.substitute.networks:null_cell",
    "sub-texts": "experiments.substitute.texts:cell",
    "sub-worst-case": "experiments.substitute.worst_case:cell",
    "validity": "experiments.validity:cell",
    "zero-betrayal": "experiments.zero_run.tables:betrayal",
    "zero-channel": "experiments.zero_run.tables:channel",
    "zero-patients": "experiments.zero_run.real:cell",
    "zero-real": "experiments.zero_run.real:cell",
    "zero-rejection": "experiments.zero_run.tables:rejection",
    "zero-response": "experiments.zero_run.tables:response",
    "zero-synthetic": "experiments.zero_run.synthetic:cell",
    "zero-validity": "experiments.zero_run.validity:cell",
}

# Those whose data or models are not shipped, though their cells are quick. Whoever has them can run
# them again: `data/README.md` says what they take.
NOT_SHIPPED = {
    "pred-prompt-poisons-film",
    "pred-prompt-poisons-film-arrow",
    "pred-prompt-poisons-newsgroups",
    "pred-prompt-votes-film",
    "pred-prompt-votes-film-arrow",
    "pred-prompt-votes-newsgroups",
    "pred-teachers-mnist",
    "zero-patients",
}
