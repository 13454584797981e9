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
}
