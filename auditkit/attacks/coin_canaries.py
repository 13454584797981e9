"""Canaries for an audit in one run: one for each coin, easy to remember and useless otherwise.

A canary is an example that a model learns only by heart. It is made for every coin, and trained on
where the coin says so: ``features[coins.members]``. What it is must not depend on the coin, so all
is drawn from the coins' salt, and the file of coins is enough to make the same canaries again.

Images and rows of a table keep their features and get a wrong label. The wrong label that a model
likes least is chosen by `canaries.mislabelled`, on a reference model that saw none of them. A text
is words that nobody would put side by side.
"""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from auditkit import _check, _keyed
from auditkit._types import Ints
from auditkit.coins import Coins


def wrong_labels(coins: Coins, labels: ArrayLike, *, classes: int) -> Ints:
    """Draw a wrong label for each example, of an image or of a row of a table.

    Parameters
    ----------
    coins : Coins
        One for each example. Which way they fell has no part in the draw.
    labels : array of int, shape (coins,)
        The true labels, 0 to classes - 1.
    classes : int
        How many labels there are.

    Returns
    -------
    ndarray of int, shape (coins,)
        Each of the others with the same chance; the same for the same coins.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), Section 6, mislabelled canaries for the black box.

    Examples
    --------
    >>> from auditkit import toss_coins
    >>> coins = toss_coins(range(6), method="one-run")
    >>> shown = wrong_labels(coins, [0, 1, 2, 0, 1, 2], classes=3)
    >>> bool((shown == [0, 1, 2, 0, 1, 2]).any())
    False

    Where a reference model is at hand, it chooses, one example at a time::

        from auditkit.attacks.canaries import mislabelled
        shown = [mislabelled(model, x, y) for x, y in zip(features, labels)]
    """
    count = _check.whole("classes", classes, least=2)
    own = _check.codes("labels", labels, tuple(range(count)))
    if len(own) != len(coins):
        raise ValueError(f"labels must hold one for each of {len(coins)} coins, got {len(own)}")
    rng = _keyed.generator(coins.salt, "wrong labels")
    return (own + rng.integers(1, count, size=len(own))) % count


def random_texts(coins: Coins, words: Sequence[str], *, length: int) -> list[str]:
    """Write a text of random words for each coin, which a language model learns only by heart.

    Parameters
    ----------
    coins : Coins
        One for each text. Which way they fell has no part in the draw.
    words : sequence of str
        What to draw from, such as the whole words of a tokenizer. Texts that are too short, or from
        too few words, repeat one another, which is refused.
    length : int
        How many words a text has.

    Returns
    -------
    list of str
        In the order of the coins; the same for the same coins.

    References
    ----------
    Carlini, Liu, Erlingsson, Kos and Song, "The secret sharer: evaluating and testing unintended
    memorization in neural networks", USENIX Security 2019, who plant random sequences.

    Examples
    --------
    >>> from auditkit import toss_coins
    >>> coins = toss_coins(range(3), method="one-run")
    >>> texts = random_texts(coins, ["lamp", "north", "seven", "violin"], length=12)
    >>> [len(text.split()) for text in texts]
    [12, 12, 12]
    """
    if isinstance(words, str) or len(set(words)) < 2:
        raise ValueError(f"words must be a list of at least 2 words, got {words!r:.60}")
    size = _check.whole("length", length, least=1)
    rng = _keyed.generator(coins.salt, "random texts")
    drawn = rng.integers(len(words), size=(len(coins), size))
    texts = [" ".join(words[place] for place in row) for row in drawn.tolist()]
    if twice := len(texts) - len(set(texts)):
        raise ValueError(
            f"length must be large enough for {len(texts)} texts of their own, got {size} words "
            f"out of {len(words)}: {twice} texts repeat another"
        )
    return texts
