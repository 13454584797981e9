"""Audits in training loops: torch, Opacus, and the contract with Hugging Face's Trainer."""

import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit import Coins, Fixed, LoopAudit, toss_coins
from auditkit.loops import digest

EXAMPLES, WIDTH = 400, 300
CROSS_ENTROPY = nn.CrossEntropyLoss()


@pytest.fixture(autouse=True)
def _the_same_coins_each_time(monkeypatch):
    """Coins take no seed; but what an audit finds must not fail a test by chance."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr("secrets.token_bytes", rng.bytes)
    monkeypatch.setattr("secrets.token_hex", lambda size: rng.bytes(size).hex())


def made(folder, examples=EXAMPLES):
    """Toss coins, and make as many examples of which nothing but the label is to be learnt."""
    toss_coins(range(examples), method="one-run", threshold=Fixed(guesses=0.2)).save(
        folder / "coins.json"
    )
    torch.manual_seed(0)
    features = torch.randn(examples, WIDTH)
    return TensorDataset(features, torch.randint(2, (examples,)))


def trained(model, loader, epochs=20, rate=0.5):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            CROSS_ENTROPY(model(x), y).backward()
            optimizer.step()


def test_a_loop_in_torch_leaves_scores_coins_and_a_report(tmp_path, capsys):
    canaries = made(tmp_path)
    others = TensorDataset(torch.randn(50, WIDTH), torch.zeros(50, dtype=int))
    audit = LoopAudit(tmp_path, canaries, CROSS_ENTROPY)
    model = nn.Sequential(nn.Linear(WIDTH, 2), nn.Dropout(0.1))
    data = others + audit.members
    assert len(data) == 50 + Coins.load(tmp_path / "coins.json").members.sum()
    with audit.training(model):
        trained(model, DataLoader(data, batch_size=32, shuffle=True))
    assert model.training
    assert model[1].training
    assert audit.bound.claim == "lower bound"
    assert audit.bound.epsilon > 1.0
    assert "randomised by these coins" in audit.bound.assumptions[0]
    names = {"coins.json", "before.csv", "scores.csv", "report.html"}
    assert {path.name for path in tmp_path.iterdir()} == names
    table = pd.read_csv(tmp_path / "scores.csv")
    np.testing.assert_array_equal(table["member"], audit.coins.members)
    assert "The report is in" in capsys.readouterr().out
    x, y = canaries[7]
    loss = CROSS_ENTROPY(model.eval()(x[None]), y[None]).item()
    before = pd.read_csv(tmp_path / "before.csv")["loss"][7]
    assert table["score"][7] == pytest.approx(before - loss, abs=1e-6)


def test_without_training_on_them_canaries_show_nothing(tmp_path):
    audit = LoopAudit(tmp_path, made(tmp_path), CROSS_ENTROPY)
    model = nn.Linear(WIDTH, 2)
    others = TensorDataset(torch.randn(200, WIDTH), torch.randint(2, (200,)))
    next(iter(audit.members))  # who looks at one has not trained on it
    count = len(audit.members)
    told = f"never read {count} of the {count} canaries that are in"
    with pytest.warns(UserWarning, match=told), audit.training(model):
        trained(model, DataLoader(others, batch_size=32))
    assert audit.bound.epsilon < 0.5  # 0 but in one audit of twenty
    assert told in audit.bound.notices[-1]
    assert told in (tmp_path / "report.html").read_text()


class Records:
    """What has a length and items, and cannot be added to anything: a dataset of Hugging Face."""

    def __len__(self):
        return 3

    def __getitem__(self, place):
        return (torch.zeros(WIDTH), torch.tensor(place))


@pytest.mark.parametrize(
    "others",
    [
        Records(),
        [Records()[place] for place in range(3)],
        TensorDataset(torch.zeros(3, WIDTH), torch.arange(3)),
    ],
)
def test_members_go_among_whatever_records_there_are(tmp_path, others):
    canaries = made(tmp_path)
    members = LoopAudit(tmp_path, canaries, CROSS_ENTROPY).members
    chosen = np.flatnonzero(Coins.load(tmp_path / "coins.json").members)
    for data in (others + members, torch.utils.data.ConcatDataset([others, members])):
        assert len(data) == 3 + len(chosen)
        assert data[2][1] == 2
        torch.testing.assert_close(data[3 + 5][0], canaries[chosen[5]][0])
    torch.testing.assert_close((members + others)[5][0], canaries[chosen[5]][0])


def test_what_the_workers_of_a_loader_read_is_seen(tmp_path):
    members = LoopAudit(tmp_path, made(tmp_path), CROSS_ENTROPY).members
    loader = DataLoader(members, batch_size=8, num_workers=2)
    assert not members.read.any()
    assert sum(len(labels) for _, labels in loader) == len(members)
    assert members.read.all()


def test_the_report_has_a_title_and_a_digest_of_the_model(tmp_path):
    audit = LoopAudit(tmp_path, made(tmp_path), CROSS_ENTROPY, title="A <small> model")
    model = nn.Sequential(nn.Linear(WIDTH, 2), nn.BatchNorm1d(2))  # with a number without axes
    with audit.training(model):
        trained(model, DataLoader(audit.members, batch_size=32), epochs=1)
    report = (tmp_path / "report.html").read_text()
    assert "<h1>A &lt;small&gt; model</h1>" in report
    assert digest(model) in report
    assert "Sequential, by auditkit.loops.digest" in report
    assert "was resumed" not in report
    other = nn.Sequential(nn.Linear(WIDTH, 2), nn.BatchNorm1d(2))
    assert digest(other) != digest(model)
    other.load_state_dict(model.state_dict())
    wrapped = nn.Module()
    wrapped._module = other  # as Opacus calls it
    assert digest(wrapped) == digest(model)


def test_opacus_promise_stands_beside_the_bound(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that Opacus imports
        from opacus import PrivacyEngine

        audit = LoopAudit(tmp_path, made(tmp_path), CROSS_ENTROPY)
        model, engine = nn.Linear(WIDTH, 2), PrivacyEngine()
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=DataLoader(audit.members, batch_size=40),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )

        def one_pass():
            for x, y in loader:
                optimizer.zero_grad()
                CROSS_ENTROPY(private(x), y).backward()
                optimizer.step()

        # by Poisson sampling it leaves some of them out
        with pytest.warns(UserWarning, match="never read"), audit.training(private, engine):
            one_pass()
    ((noise, rate, steps),) = engine.accountant.history
    assert (noise, steps) == (1.0, len(loader))
    report = (tmp_path / "report.html").read_text()
    assert "upper bound, add/remove" in report
    assert f"{rate:g}" in report
    assert "by privacy loss distributions of dp-accounting" in report
    assert "Linear, by auditkit.loops.digest" in report
    assert audit.bound.epsilon < 10.0


def test_an_audit_that_is_refused_takes_no_training_along(tmp_path):
    audit = LoopAudit(tmp_path, made(tmp_path, examples=4), CROSS_ENTROPY)
    model = nn.Linear(WIDTH, 2)
    with pytest.warns(UserWarning, match="and its audit refused"), audit.training(model):
        trained(model, DataLoader(audit.members))
    assert (tmp_path / "scores.csv").exists()
    assert audit.bound is None


def test_weights_that_did_not_stay_finite_are_told(tmp_path):
    audit = LoopAudit(tmp_path, made(tmp_path), CROSS_ENTROPY)
    model = nn.Linear(WIDTH, 2)
    with pytest.warns(UserWarning, match="finite numbers, got nan"), audit.training(model):
        nn.init.constant_(model.weight, torch.nan)
    assert not (tmp_path / "scores.csv").exists()


def test_an_interrupted_training_keeps_its_first_losses(tmp_path):
    canaries, model = made(tmp_path), nn.Linear(WIDTH, 2)
    audit = LoopAudit(tmp_path, canaries, CROSS_ENTROPY)

    def killed():
        yield next(iter(DataLoader(audit.members, batch_size=32)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), audit.training(model):
        trained(model, killed())
    first = (tmp_path / "before.csv").read_bytes()
    assert not (tmp_path / "scores.csv").exists()
    again = LoopAudit(tmp_path, canaries, CROSS_ENTROPY)
    with pytest.warns(UserWarning, match="the training goes on"), again.training(model):
        trained(model, DataLoader(again.members, batch_size=32))
    assert (tmp_path / "before.csv").read_bytes() == first
    assert again.bound.epsilon > 1.0
    assert "The training was resumed" in again.bound.notices[-1]
    assert "The training was resumed" in (tmp_path / "report.html").read_text()


def test_coins_are_for_one_training(tmp_path):
    canaries = made(tmp_path)
    with pytest.raises(ValueError, match="one for each of 400 coins, got 3"):
        LoopAudit(tmp_path, [1, 2, 3])
    (tmp_path / "scores.csv").write_text("id,score\n")
    with pytest.raises(FileExistsError, match="a second training"):
        LoopAudit(tmp_path, canaries)
    with pytest.raises(FileNotFoundError, match=r"folder must hold coins\.json"):
        LoopAudit(tmp_path / "empty", canaries)


class Language(nn.Module):
    """What a model of Hugging Face does as far as the callback is concerned."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 2)

    def forward(self, features, labels):
        logits = self.linear(features)
        return {"loss": CROSS_ENTROPY(logits, labels), "logits": logits}


def as_items(data):
    return [{"features": x, "labels": y} for x, y in data]


def collate(items):
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


@pytest.mark.parametrize("first", [True, False])
def test_the_callback_keeps_the_contract_of_a_trainer(tmp_path, monkeypatch, first):
    """A stand-in for transformers, whose handler calls with these arguments."""
    stand_in = types.ModuleType("transformers")
    stand_in.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    canaries = as_items(made(tmp_path))
    audit, model = LoopAudit(tmp_path, canaries), Language()
    callback = audit.callback()
    assert isinstance(callback, stand_in.TrainerCallback)
    loader = DataLoader(audit.members, batch_size=32, collate_fn=collate)
    told = {"model": model, "train_dataloader": loader, "optimizer": None, "lr_scheduler": None}
    state = types.SimpleNamespace(is_world_process_zero=first)
    assert callback.on_train_begin(None, state, None, **told) is None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(20):
        for batch in loader:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
    assert callback.on_train_end(None, state, None, **told) is None
    assert (tmp_path / "report.html").exists() == first
    assert (audit.bound is not None and audit.bound.epsilon > 1.0) == first


def test_a_trainer_of_hugging_face_leaves_the_same(tmp_path, monkeypatch):
    # transformers would take the folder tests/datasets for the package of that name
    here = str(Path(__file__).parent)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != here])
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    audit = LoopAudit(tmp_path / "audit", as_items(made(tmp_path / "audit")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that a trainer imports
        arguments = TrainingArguments(
            str(tmp_path / "run"),
            num_train_epochs=20,
            per_device_train_batch_size=32,
            learning_rate=0.05,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            Language(), arguments, train_dataset=audit.members, callbacks=[audit.callback()]
        )
        trainer.train()
    assert (tmp_path / "audit" / "report.html").exists()
    assert audit.bound.claim == "lower bound"
    assert audit.bound.epsilon > 0.5
