"""What the adversary does: from a mechanism's output to one score an example.

Here belong membership and label inference, canaries, poisons and generated non-members. An attack
ends with scores; how many guesses are made of them is said in `thresholds`, what they prove in
`bounds`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"propensity": ["propensity_bootstrap"]}
)
