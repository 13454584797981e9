"""What is audited: mechanisms that claim to be private, and the exact laws of what they release.

Here belong randomised response and its relatives, DP-SGD, voting among teachers and noisy sums. A
mechanism knows nothing of the attack that will meet it, and states no bound.
"""
