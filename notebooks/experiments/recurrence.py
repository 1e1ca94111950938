"""What does a recurrent network learn to carry to its last state: how far, how much, and after how many updates?

Two tasks, on sequences of random symbols out of eight. `first` asks the last state for the first symbol, at lengths
5, 10, 20 and 40. The arms have 32 units and differ in the cell and in how its weights start: a vanilla cell as PyTorch
starts it and with an orthogonal matrix, a GRU and an LSTM as they are and with the bias of the gate that keeps raised
by four. `copy` asks for all sixteen symbols. The arms are GRUs with states of 32, 64 and 128 numbers, and a model that
may look at all inputs when it is asked.

Each arm takes, for each task and length, one of four learning rates: that with the best accuracy on 1,000 sequences
for validation, on average over its accuracies after 300 and after 1,500 updates, in a trial with a seed of its own; of
rates with the same accuracy, that which needed the fewest updates. Where all trials guess, so does this choice.
Three seeds follow, each measured on 1,000 other sequences after 300, 1,500 and, for `copy`, 6,000 updates of 32 fresh
sequences. A run whose loss stays below a hundredth of a nat for ten updates has learned the task and stops.

The lecture *What recurrence costs* tells what came out.
"""

import time
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import course_lib.torch as in_torch
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

RECORD = Record.of(__file__)

N_SYMBOLS, BATCH, LEARNED = 8, 32, 0.01
RATES = (3e-3, 1e-2, 3e-2, 1e-1)  # to choose from
BUDGETS = {"first": (300, 1500), "copy": (300, 1500, 6000)}  # updates
TRIAL_SEED, VALIDATION, TEST = 100, 98, 99
CELLS = {  # kind, whether its matrix starts orthogonal, what is added to the bias of the gate that keeps
    "vanilla": ("rnn", False, 0),
    "vanilla-orthogonal": ("rnn", True, 0),
    "gru": ("gru", False, 0),
    "lstm": ("lstm", False, 0),
    "gru-keeping": ("gru", False, 4),
    "lstm-keeping": ("lstm", False, 4),
}


class Run(NamedTuple):
    """One training. A run with a `rate` is a trial of it."""

    task: str
    arm: str
    length: int
    d: int = 32
    seed: int = 0
    rate: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.rate is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        trial = f"trial-{self.rate}-" if self.is_trial else ""
        return f"{trial}{self.task}-{self.arm}-{self.d}-length-{self.length}-{self.seed}"

    @property
    def budgets(self) -> tuple[int, ...]:
        """After how many updates it is measured."""
        return BUDGETS[self.task][:2] if self.is_trial else BUDGETS[self.task]

    @property
    def seconds(self) -> float:
        """Of one processor core, if it does not stop early."""
        return round(self.budgets[-1] * (1 + self.length / 20) * (1 + self.d / 64) / 1000, 1)


ARMS = [Run("first", arm, length) for arm in CELLS for length in (5, 10, 20, 40)]
ARMS += [Run("copy", "gru", 16, d) for d in (32, 64, 128)] + [Run("copy", "looker", 16)]
TRIALS = [run._replace(rate=rate, seed=TRIAL_SEED) for run in ARMS for rate in RATES]
RUNS = table([*TRIALS, *(run._replace(seed=seed) for run in ARMS for seed in (0, 1, 2))])


class Reader(nn.Module):
    """A recurrent network, and a linear layer that answers all questions from its last state."""

    def __init__(self, n_answers: int, d: int, arm: str):
        super().__init__()
        kind, orthogonal, keep = CELLS[arm]
        self.embedding = nn.Embedding(N_SYMBOLS, 16)
        self.rnn = in_torch.RNN(16, d, cell=kind, run=in_torch.run_fused)
        self.answer = nn.Linear(d, n_answers * N_SYMBOLS)
        if orthogonal:
            nn.init.orthogonal_(self.rnn.forward_cell.weight_hh)
        if keep:
            with torch.no_grad():  # z of a GRU and f of an LSTM stand in the rows d to 2d
                self.rnn.forward_cell.bias_ih[d : 2 * d] += keep

    def forward(self, x):
        """Symbols (B, T) -> scores (B, n_answers, N_SYMBOLS)."""
        return self.answers(self.embedding(x))

    def answers(self, embedded):
        """The same from embedded symbols (B, T, 16)."""
        return self.answer(self.rnn(embedded).state[0]).unflatten(-1, (-1, N_SYMBOLS))


class Looker(nn.Module):
    """A query for each question, which looks at all inputs: their symbols and their positions."""

    def __init__(self, length: int, d: int):
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, d)
        self.position = nn.Parameter(torch.randn(length, d))
        self.query = nn.Parameter(torch.randn(length, d))
        self.answer = nn.Linear(d, N_SYMBOLS)

    def forward(self, x):
        """Symbols (B, T) -> scores (B, T, N_SYMBOLS)."""
        symbols = self.embedding(x)
        query = self.query.expand(len(x), -1, -1)
        return self.answer(in_torch.attention(query, symbols + self.position, symbols).output)


def sequences(rng, rows: int, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences (rows, length), and of each what is asked for."""
    x = torch.tensor(rng.integers(N_SYMBOLS, size=(rows, run.length)))
    return x, x if run.task == "copy" else x[:, :1]


def accuracy(model, run: Run, seed: int) -> np.ndarray:
    """Of each answer, the share of 1,000 sequences for which it is right."""
    x, y = sequences(np.random.default_rng(seed), 1000, run)
    with torch.no_grad():
        return (model(x).argmax(-1) == y).double().mean(0).numpy()


def start_gradient(model: Reader, run: Run) -> float:
    """The norm of the loss's gradient with respect to the first input, that of the last being one."""
    x, y = sequences(np.random.default_rng(TRIAL_SEED), 1000, run)
    embedded = model.embedding(x).detach().requires_grad_()
    F.cross_entropy(model.answers(embedded).flatten(0, 1), y.flatten()).backward()
    norms = embedded.grad.norm(dim=-1).mean(0)
    return float(norms[0] / norms[-1])


def chosen(run: Run, record: Record) -> float:
    """The rate of the best trial; Waiting as long as there are trials to be made."""
    trials = [run._replace(rate=rate, seed=TRIAL_SEED).name for rate in RATES]
    return max(of_trials(trials, record).values(), key=merit)["rate"]


def merit(figures: dict) -> tuple[float, int]:
    """Of two trials the better one has the larger: the accuracy first, then the fewer updates."""
    return float(np.mean(figures["accuracy"])), -figures["updates"]


def measure(run: Run, record: Record) -> dict:
    """Train, and return the accuracy after each budget."""
    began = time.process_time()
    rate = run.rate if run.is_trial else chosen(run, record)
    torch.manual_seed(run.seed)
    looks = run.arm == "looker"
    model = Looker(run.length, run.d) if looks else Reader(1 if run.task == "first" else run.length, run.d, run.arm)
    gradient = start_gradient(model, run) if run.task == "first" else None
    rng, optimiser = np.random.default_rng(run.seed), torch.optim.Adam(model.parameters(), lr=rate)
    found, learned, updates = [], 0, 0
    for update in range(1, run.budgets[-1] + 1):
        if learned < 10:
            x, y = sequences(rng, BATCH, run)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            learned, updates = learned + 1 if loss.item() < LEARNED else 0, update
        if update in run.budgets:
            found.append(accuracy(model, run, VALIDATION if run.is_trial else TEST))
    by_position = {} if run.task == "first" else {"by_position": [[round(float(a), 3) for a in row] for row in found]}
    return {
        "rate": rate,
        "updates": updates,
        "accuracy": [round(float(row.mean()), 4) for row in found],
        **by_position,
        "start_gradient": gradient,
        "seconds": round(time.process_time() - began, 1),
    }


EXPERIMENT = Experiment(__doc__, RUNS, measure, RECORD, "copy")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
