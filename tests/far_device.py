"""A second device for machines that have one: what lies there is refused wherever a GPU refuses it.

Tensors there say that they are on "meta", which torch has everywhere, and compute on the CPU.
"""

from collections import Counter

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "convolution", "matmul", "linear", "conv2d")
MOVES = ("copy_", "_has_compatible_shallow_copy_type")  # may be given tensors of both devices


class FarTensor(Tensor):
    """A tensor on the second device; `numpy` refuses it, as it does any subclass."""

    @staticmethod
    def __new__(cls, near):
        return Tensor._make_wrapper_subclass(
            cls,
            near.shape,
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device="meta",
        )

    def __init__(self, near):
        self.near = near

    @classmethod
    def __torch_dispatch__(cls, function, *_):
        raise RuntimeError(f"{function} outside of the fixture")


class FarDevice(TorchDispatchMode):
    """While it is on, the device "meta" holds numbers.

    Refused is an operation on tensors of both devices, a number in a tensor included, and a draw
    there. A tensor is moved by `to`, `cpu` and `copy_`.
    """

    def __init__(self):
        super().__init__()
        self.made = Counter()  # numbers that products have made, by device

    @property
    def share(self):
        """Which part of the products' numbers were made there."""
        return self.made["meta"] / max(1, self.made.total())

    def __enter__(self):
        # a module that is moved or cast takes other tensors; into its own, numbers would not go
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        return super().__enter__()

    def __exit__(self, *error):
        torch.__future__.set_overwrite_module_params_on_conversion(False)
        return super().__exit__(*error)

    def __torch_dispatch__(self, function, _, args=(), kwargs=None):
        called = (args, kwargs or {})
        given = [leaf for leaf in tree_leaves(called) if isinstance(leaf, Tensor)]
        there = any(isinstance(tensor, FarTensor) for tensor in given)
        name = function.overloadpacket.__name__
        if there and name not in MOVES and not all(isinstance(own, FarTensor) for own in given):
            on = ", ".join(f"{tuple(tensor.shape)} on {tensor.device}" for tensor in given)
            raise RuntimeError(f"{function} of tensors on two devices: {on}")
        for leaf in tree_leaves(called):
            if isinstance(leaf, torch.device):  # to which something is moved, or where it is made
                there = leaf.type == "meta"
        if there and torch.Tag.nondeterministic_seeded in function.tags:
            raise RuntimeError(f"{function} draws on another device than the CPU")
        near = tree_map_only(FarTensor, lambda tensor: tensor.near, called)
        near = tree_map_only(torch.device, lambda _: torch.device("cpu"), near)
        result = function(*near[0], **near[1])
        if name in PRODUCTS:
            self.made["meta" if there else "cpu"] += result.numel()
        if not there:
            return result
        far = tree_map_only(Tensor, FarTensor, result)
        if not given or not isinstance(given[0], FarTensor):
            return far
        return return_and_correct_aliasing(function, *called, far)
