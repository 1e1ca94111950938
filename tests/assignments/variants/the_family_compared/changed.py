"""How wrong solutions are put together: the reference with some of its lines replaced."""

HEAD = {
    "parameters": "def parameters(vocab, positions, segments, layers, d, f, e=None, shared=False, pooler=True):",
    "position-ids": "def position_ids(ids, pad_id):",
    "embed": "def embed(ids, positions, segments, weights):",
    "student-state": "def student_state(state, keep):",
    "distillation-loss": "def distillation_loss(student, teacher, labels, temperature, alpha):",
    "difference": "def difference(a, b):",
    "front": "def front(models):",
}
LINES = {
    "parameters": {
        "width": "width = d if e is None else e",
        "tables": "count = (vocab + positions + segments) * width",
        "norm": "count += 2 * width",
        "up": "count += 0 if e is None else e * d + d",
        "layer": "layer = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 4 * d",
        "layers": "count += layer if shared else layers * layer",
        "pooler": "count += d * d + d if pooler else 0",
        "end": "return count",
    },
    "position-ids": {
        "real": "real = (ids != pad_id).long()",
        "count": "count = real.cumsum(1)",
        "end": "return count * real + pad_id",
    },
    "embed": {
        "sum": 'x = weights["token"][ids] + weights["position"][positions]',
        "segments": 'x = x + weights["segment"][segments] if "segment" in weights else x',
        "mean": "centred = x - x.mean(-1, keepdim=True)",
        "deviation": "y = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-12)",
        "gain": 'y = y * weights["gain"] + weights["shift"]',
        "up": 'y = y @ weights["up"].T + weights["up_bias"] if "up" in weights else y',
        "end": "return y",
    },
    "student-state": {
        "begin": 'prefix, found = "encoder.layers.", {}',
        "for": "for name, value in state.items():",
        "drop": '    if name.startswith(("pooler.", "embeddings.segment.")): continue',
        "if": "    if name.startswith(prefix):",
        "number": '        number, rest = name.removeprefix(prefix).split(".", 1)',
        "keep": "        if int(number) not in keep: continue",
        "name": '        name = f"{prefix}{list(keep).index(int(number))}.{rest}"',
        "put": "    found[name] = value",
        "end": "return found",
    },
    "distillation-loss": {
        "p": "log_p = torch.log_softmax(teacher.detach() / temperature, dim=1)",
        "q": "log_q = torch.log_softmax(student / temperature, dim=1)",
        "divergence": "divergence = (log_p.exp() * (log_p - log_q)).sum(dim=1)",
        "said": "said = temperature**2 * divergence.mean()",
        "known": "known = labels >= 0",
        "label": "of_label = torch.log_softmax(student, dim=1).gather(1, labels.clamp(min=0)[:, None])[:, 0]",
        "hard": "hard = -(of_label * known).sum() / known.sum().clamp(min=1)",
        "end": "return alpha * said + (1 - alpha) * hard",
    },
    "difference": {
        "d": "d = a.mean(axis=0) - b.mean(axis=0)",
        "half": "half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))",
        "end": "return d.mean(), d.mean() - half, d.mean() + half",
    },
    "front": {
        "begin": "found = []",
        "for": "for name, (seconds, accuracy) in models.items():",
        "others": "    others = [other for other in models.values() if other != (seconds, accuracy)]",
        "beaten": "    beaten = any(s <= seconds and a >= accuracy for s, a in others)",
        "put": "    if not beaten: found.append(name)",
        "end": "return sorted(found, key=lambda name: models[name][0])",
    },
}


def changed(cell: str, **lines: str) -> dict[str, str]:
    """A solution cell with some lines replaced, by the names above; an empty one is left out."""
    known = LINES[cell]
    assert lines.keys() <= known.keys(), lines.keys() - known.keys()
    body = [line for text in (known | lines).values() if text for line in text.splitlines()]
    return {cell: "\n    ".join([HEAD[cell], *body])}


def body(cell: str, *lines: str) -> dict[str, str]:
    """A solution cell with these lines as its function."""
    return {cell: "\n    ".join([HEAD[cell], *lines])}
