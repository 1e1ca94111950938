"""Wrong solutions of parts 5 to 7."""

from tests.assignments.variants.the_family_compared.changed import body, changed
from tests.assignments.variants.the_family_compared.wrong_parts import of


def loss(**changes: str) -> dict[str, str]:
    return changed("distillation-loss", **changes)


LOSS = of(
    "distillation-loss",
    ("the square of the temperature forgotten", 1, loss(said="said = divergence.mean()"), "the temperature"),
    ("the temperature, not its square", 1, loss(said="said = temperature * divergence.mean()"), "the temperature"),
    ("divided by the square of the temperature", 1, loss(said="said = divergence.mean() / temperature**2"),
     "the temperature"),
    ("no temperature on the teacher", 1, loss(p="log_p = torch.log_softmax(teacher.detach(), dim=1)"),
     "the temperature"),
    ("no temperature on the student", 1, loss(q="log_q = torch.log_softmax(student, dim=1)"), "the temperature"),
    ("multiplied by the temperature", 1,
     loss(p="log_p = torch.log_softmax(teacher.detach() * temperature, dim=1)",
          q="log_q = torch.log_softmax(student * temperature, dim=1)"), "the temperature"),
    ("the divergence the other way round", 1.5,
     loss(divergence="divergence = (log_q.exp() * (log_q - log_p)).sum(dim=1)"), "the teacher's part"),
    ("the cross-entropy of the teacher's words", 1.5, loss(divergence="divergence = -(log_p.exp() * log_q).sum(dim=1)"),
     "the teacher's part"),
    ("the squared difference of the logits", 2.5,
     loss(divergence="divergence = ((student - teacher.detach()) ** 2).sum(dim=1)"),
     "the teacher's part and its temperature"),
    ("the divergence negative", 1.5, loss(divergence="divergence = (log_p.exp() * (log_q - log_p)).sum(dim=1)"),
     "the teacher's part"),
    ("the mean over the classes", 1.5, loss(divergence="divergence = (log_p.exp() * (log_p - log_q)).mean(dim=1)"),
     "the teacher's part"),
    ("the sum over the sentences", 1.5, loss(said="said = temperature**2 * divergence.sum()"), "the teacher's part"),
    ("the softmax over the batch", 1.5,
     loss(p="log_p = torch.log_softmax(teacher.detach() / temperature, dim=0)",
          q="log_q = torch.log_softmax(student / temperature, dim=0)"), "the teacher's part"),
    ("the labels at the temperature", 1,
     loss(label="of_label = log_q.gather(1, labels.clamp(min=0)[:, None])[:, 0]"), "the labels' part"),
    ("the labels times its square", 1,
     loss(hard="hard = -temperature**2 * (of_label * known).sum() / known.sum().clamp(min=1)"), "the labels' part"),
    ("the labels' sum", 1.5, loss(hard="hard = -(of_label * known).sum()"), "the labels' part, and that of one label"),
    ("the labels' sign", 1, loss(hard="hard = (of_label * known).sum() / known.sum().clamp(min=1)"),
     "the labels' part"),
    ("the probability, not its logarithm", 1,
     loss(label="of_label = torch.softmax(student, dim=1).gather(1, labels.clamp(min=0)[:, None])[:, 0]"),
     "the labels' part"),
    ("the mean over all sentences", 0.5, loss(hard="hard = -(of_label * known).sum() / len(labels)"), "missing labels"),
    ("a missing label is the label 0", 0.5, loss(known="known = labels == labels"), "missing labels"),
    ("missing labels not thought of", 0.5,
     loss(known="", label="of_label = torch.log_softmax(student, dim=1)[torch.arange(len(labels)), labels]",
          hard="hard = -of_label.mean()"), "missing labels"),
    ("probabilities cut off below", 0.5,
     loss(q="log_q = torch.log_softmax(student / temperature, dim=1).clamp(min=-20)"), "large logits"),
    ("a little added to each probability", 0.5,
     loss(q="log_q = torch.log(torch.softmax(student / temperature, dim=1) + 1e-12)"), "large logits"),
    ("0 / 0 without labels", 0.5, loss(hard="hard = -(of_label * known).sum() / known.sum()"), "missing labels"),
    ("the teacher is not heard where a label is missing", 0.5,
     loss(known="known = labels >= 0\nsaid = temperature**2 * divergence[known].sum() / known.sum().clamp(min=1)"),
     "missing labels"),
    ("alpha is the labels' share", 1, loss(end="return (1 - alpha) * said + alpha * hard"), "a slip of its own"),
    ("alpha for both", 2, loss(end="return alpha * said + alpha * hard"),
     "the labels alone, what is missing, their share, their gradient"),
    ("the parts added up", 1, loss(end="return said + hard"), "the share, and what is missing"),
    ("half of each, whatever alpha is", 3.5, loss(end="return 0.5 * said + 0.5 * hard"), "no part is whole"),
    ("the labels whole beside the teacher's share", 0.5, loss(end="return alpha * said + hard"),
     "the share, and what is missing"),
    ("logarithms of a softmax, too small", 0.5,
     loss(p="log_p = torch.log(torch.softmax(teacher.detach() / temperature, dim=1))",
          q="log_q = torch.log(torch.softmax(student / temperature, dim=1))"), "large logits"),
    ("the teacher is taught", 0.5, loss(p="log_p = torch.log_softmax(teacher / temperature, dim=1)"), "gradients"),
    ("the student is detached in the teacher's part", 0.5,
     loss(q="log_q = torch.log_softmax(student.detach() / temperature, dim=1)"), "gradients"),
    ("words detached", 0.5,
     loss(label="of_label = torch.log_softmax(student.detach(), dim=1).gather(1, labels.clamp(min=0)[:, None])[:, 0]"),
     "gradients"),
    ("a number, no tensor", 0.5, loss(end="return torch.tensor(float(alpha * said + (1 - alpha) * hard))"),
     "gradients"),
    ("a loss for each sentence", 5, loss(said="said = temperature**2 * divergence"),
     "the shape, in all tests of values"),
    ("labels are filled in place", 0.5, loss(known="known = labels >= 0\nlabels.clamp_(min=0)"), "the arguments"),
)  # fmt: skip


def gap(**changes: str) -> dict[str, str]:
    return changed("difference", **changes)


GAP = of(
    "difference",
    ("the models swapped", 1, gap(d="d = b.mean(axis=0) - a.mean(axis=0)"), "the sign"),
    ("low and high swapped", 0.5, gap(end="return d.mean(), d.mean() + half, d.mean() - half"), "their order"),
    ("the standard error alone", 1, gap(half="half = d.std(ddof=1) / np.sqrt(len(d))"), "the width of single runs"),
    ("the deviation, not of the mean", 1, gap(half="half = 1.96 * d.std(ddof=1)"), "the width of single runs"),
    ("divided by N, not by its root", 1, gap(half="half = 1.96 * d.std(ddof=1) / len(d)"), "the width of single runs"),
    ("two variances added, as of different sentences", 1.5,
     gap(half="half = 1.96 * np.sqrt(a.mean(0).var(ddof=1) + b.mean(0).var(ddof=1)) / np.sqrt(len(d))"),
     "the width of single runs, and of a model and itself"),
    ("90 per cent", 1, gap(half="half = 1.645 * d.std(ddof=1) / np.sqrt(len(d))"), "the width of single runs"),
    ("each run is a sentence of its own", 1, gap(half="half = 1.96 * d.std(ddof=1) / np.sqrt(len(d) * len(a))"),
     "the width of several runs"),
    ("low, value, high", 0.5, gap(end="return d.mean() - half, d.mean(), d.mean() + half"), "their order"),
    ("the sign of the value lost", 1,
     gap(end="m = abs(d.mean())\nreturn m, m - half, m + half"), "the value where the second is better"),
    ("the width of the first runs alone", 1,
     gap(half="half = 1.96 * (a[0] * 1.0 - b[0]).std(ddof=1) / np.sqrt(len(d))"), "the width of several runs"),
    ("the runs laid end to end", 1.5,
     body("difference", "n = min(len(a), len(b))", "d = (a[:n].astype(float) - b[:n]).ravel()",
          "half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))", "return d.mean(), d.mean() - half, d.mean() + half"),
     "the value of different numbers of runs, the width"),
    ("the first run alone", 1, gap(d="d = a[0].astype(float) - b[0]"), "the value of several runs"),
    ("the width, not the ends", 0.5, gap(end="return d.mean(), -half, half"), "the middle; its width is right"),
    ("the ends from 0 to 1", 1,
     gap(end="return d.mean(), max(0.0, d.mean() - half), d.mean() + half"), "a difference may be below 0"),
    ("the ratio of the two", 2, gap(end="return a.mean() / b.mean(), d.mean() - half, d.mean() + half"),
     "the value, where it stands, and of a model and itself"),
    ("percentage points", 2, gap(d="d = 100 * (a.mean(axis=0) - b.mean(axis=0))"),
     "a hundred times as much, in the value and one width"),
    ("the value alone", 4, gap(end="return d.mean()"), "two numbers are missing"),
    ("the runs are changed", 0.5, gap(d="d = a.mean(axis=0) - b.mean(axis=0)\na[:] = False"), "the arguments"),
)  # fmt: skip


def ends(**changes: str) -> dict[str, str]:
    return changed("front", **changes)


FRONT = of(
    "front",
    ("the beaten ones", 2, ends(put="    if beaten: found.append(name)"), "none is right, and of one there is none"),
    ("strictly better in both", 0.5,
     ends(beaten="    beaten = any(s < seconds and a > accuracy for s, a in others)"), "as fast, or as accurate"),
    ("as good counts, its own copy too", 0.5,
     ends(others="    others = [models[other] for other in models if other != name]"), "two that are alike"),
    ("the slowest first", 0.5, ends(end="return sorted(found, key=lambda name: -models[name][0])"), "the order"),
    ("in the order of the table", 0.5, ends(end="return found"), "the order"),
    ("time is not looked at", 1.5, ends(beaten="    beaten = any(a > accuracy for s, a in others)"),
     "the most accurate are left"),
    ("accuracy is not looked at", 1.5, ends(beaten="    beaten = any(s < seconds for s, a in others)"),
     "the fastest are left"),
    ("slower and more accurate is beaten", 1.5,
     ends(beaten="    beaten = any(s >= seconds and a >= accuracy for s, a in others)"), "the wrong end of time"),
    ("either is enough", 2, ends(beaten="    beaten = any(s <= seconds or a >= accuracy for s, a in others)"),
     "often none is left"),
    ("all models", 1.5, ends(put="    found.append(name)"), "none is beaten"),
    ("sorted by seconds and names", 0.5,
     ends(end="return sorted(found, key=lambda name: (models[name][0], name))"), "two that are alike"),
    ("the models are taken out", 0.5, ends(end="found.sort(key=lambda name: models[name][0])\n"
     "for name in list(models): models.pop(name)\nreturn found"), "the argument"),
    ("a set", 2, ends(end="return set(found)"), "no order"),
    ("pairs, not names", 2, ends(put="    if not beaten: found.append((name, accuracy))", end="return found"),
     "names are asked for"),
    ("fails on an empty table", 0.5, ends(begin="found, best = [], max(models.values())"), "none"),
)  # fmt: skip

VARIANTS = LOSS + GAP + FRONT
