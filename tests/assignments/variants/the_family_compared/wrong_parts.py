"""Wrong solutions of parts 1 to 4."""

from tests.assignments.variants import Variant
from tests.assignments.variants.the_family_compared.changed import body, changed
from tests.assignments.variants.the_family_compared.right import in_tensorflow


def of(cell: str, *entries: tuple) -> list[Variant]:
    """Variants of one part: each a name, a price, its changed lines, and why."""
    return [Variant(name, cells, {f"test-{cell}": price}, why) for name, price, cells, why in entries]


def count(**changes: str) -> dict[str, str]:
    return changed("parameters", **changes)


LAYER = "layer = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 4 * d"
PARAMETERS = of(
    "parameters",
    ("no biases in the attention", 1, count(layer="layer = 4 * d * d + 2 * d * f + f + d + 4 * d"), "a layer"),
    ("three matrices in the attention", 1, count(layer=LAYER.replace("4 * (d", "3 * (d")), "a layer"),
    ("no biases in the feed-forward network", 1, count(layer="layer = 4 * (d * d + d) + 2 * d * f + 4 * d"), "a layer"),
    ("half of the feed-forward network", 1, count(layer="layer = 4 * (d * d + d) + d * f + f + 4 * d"), "a layer"),
    ("one norm in a layer", 1, count(layer=LAYER.replace("+ 4 * d", "+ 2 * d")), "a layer"),
    ("no norm in a layer", 1, count(layer=LAYER.replace(" + 4 * d", "")), "a layer"),
    ("norms without a shift", 1, count(layer=LAYER.replace("+ 4 * d", "+ 2 * d")), "a layer"),
    ("f and d swapped in the biases", 1, count(layer="layer = 4 * (d * d + d) + 2 * d * f + 2 * f + 4 * d"), "a layer"),
    ("four times wider than d, whatever f is", 1, count(layer="f = 4 * d\n" + LAYER), "a layer"),
    ("one layer, however many there are", 1, count(layers="count += layer"), "what a layer adds"),
    ("no norm behind the tables", 0.5, count(norm=""), "the norm"),
    ("the norm behind the tables has no shift", 1, count(norm="count += width"), "that of wide and of narrow tables"),
    ("no segments", 0.5, count(tables="count = (vocab + positions) * width"), "a row of a table"),
    ("two segments always", 1, count(tables="count = (vocab + positions + 2) * width"),
     "a row of a table, and what is there besides"),
    ("no pooler ever", 0.5, count(pooler=""), "the pooler"),
    ("always a pooler", 1.5, count(pooler="count += d * d + d"), "the pooler, and what is there besides"),
    ("a pooler without biases", 0.5, count(pooler="count += d * d if pooler else 0"), "the pooler"),
    ("a pooler of e by e", 0.5, count(pooler="count += width * width + width if pooler else 0"), "of narrow tables"),
    ("sharing is not looked at", 0.5, count(layers="count += layers * layer"), "shared layers"),
    ("shared layers count half", 0.5, count(layers="count += layers * layer // (2 if shared else 1)"), "shared layers"),
    ("narrow tables are not looked at", 0.5, count(width="width = d", up=""), "narrow tables"),
    ("nothing widens", 0.5, count(up=""), "narrow tables"),
    ("what widens has no bias", 0.5, count(up="count += 0 if e is None else e * d"), "narrow tables"),
    ("what widens has e biases", 0.5, count(up="count += 0 if e is None else e * d + e"), "narrow tables"),
    ("the norm of narrow tables is wide", 0.5, count(norm="count += 2 * d"), "narrow tables"),
    ("only the tokens' table is narrow", 0.5, count(tables="count = vocab * width + (positions + segments) * d"),
     "narrow tables"),
    ("a pooler only beside segments", 0.5, count(pooler="count += d * d + d if pooler and segments else 0"),
     "no segments"),
    ("one segment at least", 0.5, count(tables="count = (vocab + positions + max(segments, 1)) * width"),
     "no segments"),
    ("tables are widened in each layer", 0.5, count(up="count += 0 if e is None else layers * (e * d + d)"), "a layer"),
    ("a head of the vocabulary on top", 0.5, count(end="return count + vocab"), "what a row adds"),
    ("no widening where layers are shared", 0.5,
     count(up="count += 0 if e is None or shared else e * d + d"), "narrow tables"),
    ("no narrow tables where layers are shared", 0.5, count(width="e = None if shared else e\nwidth = e or d"),
     "narrow tables"),
    ("widened in each layer that is shared", 0.5,
     count(up="count += 0 if e is None else (e * d + d) * (layers if shared else 1)"), "narrow tables"),
    ("the segments' table is wide", 0.5, count(tables="count = (vocab + positions) * width + segments * d"),
     "narrow tables"),
    ("no biases anywhere", 1,
     count(layer="layer = 4 * d * d + 2 * d * f + 4 * d", up="count += 0 if e is None else e * d",
           pooler="count += d * d if pooler else 0"), "a slip of its own"),
    ("norms have a gain alone", 1, count(norm="count += width", layer=LAYER.replace("+ 4 * d", "+ 2 * d")),
     "a slip of its own"),
)  # fmt: skip


def places(**changes: str) -> dict[str, str]:
    return changed("position-ids", **changes)


POSITIONS = of(
    "position-ids",
    ("BERT's positions", 2, body("position-ids", "return torch.arange(ids.shape[1]).expand(ids.shape) + 0 * ids"),
     "where they begin, what stands behind a filler, the fillers"),
    ("all places count from pad_id + 1 on", 1.5,
     body("position-ids", "return torch.arange(ids.shape[1]) + pad_id + 1 + 0 * ids"), "real tokens, and fillers"),
    ("fillers in front and inside count", 1,
     places(count="count = torch.arange(1, ids.shape[1] + 1).expand(ids.shape)"), "real tokens behind a filler"),
    ("counted from 0", 0.5, places(end="return (count - 1) * real + pad_id * (1 - real)"), "where they begin"),
    ("counted from 1", 0.5, places(end="return count * real + pad_id * (1 - real)"), "where they begin"),
    ("counted from 2", 0.5, places(end="return (count + 1) * real + pad_id * (1 - real)"), "where they begin"),
    ("counted from pad_id", 0.5, places(end="return (count - 1) * real + pad_id"), "where they begin"),
    ("counted from 2, fillers have 1", 1, places(end="return count * real + 1"), "where they begin, and the fillers"),
    ("a filler has the position 0", 0.5, places(end="return (count + pad_id) * real"), "fillers"),
    ("a filler has the position before it", 0.5, places(end="return count + pad_id"), "fillers"),
    ("a filler is what is 1", 2.5, places(real="real = (ids != 1).long()"), "pad_id is not asked"),
    ("a filler is what is pad_id or less", 2, places(real="real = (ids > pad_id).long()"),
     "low ids are tokens, in every row"),
    ("the sum runs over the batch", 2, places(count="count = real.cumsum(0)"), "along each text"),
    ("real tokens and fillers swapped", 2.5, places(real="real = (ids == pad_id).long()"), "all but shapes"),
    ("the first row's fillers for all", 1.5, places(real="real = (ids != pad_id).long()[:1] + 0 * ids"),
     "real tokens and fillers of the others"),
    ("the ids are changed", 0.5, places(real="real = (ids != pad_id).long()\nids += 1"), "the argument"),
    ("counted backwards", 2, places(count="count = real.flip(1).cumsum(1).flip(1)"), "from token to token"),
    ("positions of the number of real tokens", 2, places(count="count = real.sum(1, keepdim=True)"),
     "from token to token"),
    ("positions as floats", 1, places(end="return (count * real + pad_id).float()"), "no row is looked up by 2.0"),
    ("positions as floats, fillers at 0", 1.5, places(end="return ((count + pad_id) * real).float()"),
     "a slip of its own, and the fillers"),
    ("a text of fillers counts", 0.5, places(end="return torch.where(real.any(1)[:, None], count * real, "
                                                 "torch.arange(ids.shape[1]) + 1) + pad_id"), "nothing but fillers"),
    ("a text of one token is one of fillers", 0.5, places(end="return count * real * (ids.shape[1] > 1) + pad_id"),
     "one token"),
    ("a sum of bytes", 0.5, places(count="count = real.cumsum(1, dtype=torch.uint8).long()"), "300 tokens"),
    ("a row too many", 3, places(end="return (count * real + pad_id)[None]"), "another shape"),
)  # fmt: skip


def sums(**changes: str) -> dict[str, str]:
    return changed("embed", **changes)


EMBED = of(
    "embed",
    ("positions forgotten", 0.5, sums(sum='x = weights["token"][ids]'), "the sum"),
    ("positions are the places", 0.5,
     sums(sum='x = weights["token"][ids] + weights["position"][: ids.shape[1]]'), "the sum"),
    ("segments forgotten in the embeddings", 0.5, sums(segments=""), "the segments"),
    ("widened only with segments", 0.5,
     sums(up='y = y @ weights["up"].T + weights["up_bias"] if "segment" in weights and "up" in weights else y'),
     "a model without"),
    ("one branch for each relative", 0.5,
     sums(segments='albert, bert = "up" in weights, "segment" in weights\n'
                   'x = x + weights["segment"][segments] if albert or bert else x'), "narrow tables without segments"),
    ("axes of length one are lost", 0.5, sums(end="return y.squeeze()"), "a batch of one text"),
    ("an up is put in", 0.5, sums(up='up = weights.setdefault("up", None)\n'
                                     'y = y if up is None else y @ up.T + weights["up_bias"]'), "the arguments"),
    ("segments always asked for", 0.5, sums(segments='x = x + weights["segment"][segments]'), "a model without"),
    ("all tokens in the first segment", 0.5,
     sums(segments='x = x + weights["segment"][0] if "segment" in weights else x'), "the segments"),
    ("tokens and positions swapped", 2.5,
     sums(sum='x = weights["token"][positions] + weights["position"][ids % 7]'),
     "the widening and the gradients are right"),
    ("no norm", 1, sums(mean="", deviation="y = x"), "the norm alone"),
    ("no gain", 1, sums(gain='y = y + weights["shift"]'), "the norm"),
    ("no shift", 1, sums(gain='y = y * weights["gain"]'), "the norm"),
    ("shifted before the gain", 1, sums(gain='y = (y + weights["shift"]) * weights["gain"]'), "the norm"),
    ("the variance of e - 1", 1,
     sums(deviation="y = centred / torch.sqrt(x.var(-1, keepdim=True) + 1e-12)"), "the norm"),
    ("divided by the variance", 1,
     sums(deviation="y = centred / ((centred**2).mean(-1, keepdim=True) + 1e-12)"), "the norm"),
    ("an epsilon of 1e-5", 0.5, sums(deviation="y = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5)"),
     "small numbers"),
    ("no epsilon", 0.5, sums(deviation="y = centred / centred.square().mean(-1, keepdim=True).sqrt()"), "0 / 0"),
    ("no mean taken away", 1, sums(mean="centred = x"), "the norm"),
    ("the norm over the tokens", 2.5,
     sums(mean="centred = x - x.mean(1, keepdim=True)",
          deviation="y = centred / torch.sqrt((centred**2).mean(1, keepdim=True) + 1e-12)"),
     "nothing of a token is left as it was"),
    ("never widened", 1, sums(up=""), "the widening"),
    ("widened without a bias", 1, sums(up='y = y @ weights["up"].T if "up" in weights else y'), "the widening"),
    ("widened before the norm", 1,
     sums(mean='x = x @ weights["up"].T + weights["up_bias"] if "up" in weights else x\n'
               "centred = x - x.mean(-1, keepdim=True)",
          gain='y = y * weights["gain"] + weights["shift"] if "up" not in weights else y', up=""),
     "the widening"),
    ("an up always asked for", 0.5, sums(up='y = y @ weights["up"].T + weights["up_bias"]'), "a slip of its own"),
    ("gain and shift swapped", 1, sums(gain='y = y * weights["shift"] + weights["gain"]'), "the norm"),
    ("up not turned", 1, sums(up='y = y @ weights["up"] + weights["up_bias"] if "up" in weights else y'),
     "the widening"),
    ("the tables detached", 0.5,
     sums(sum='x = weights["token"].detach()[ids] + weights["position"][positions]'), "gradients"),
    ("the mean detached", 0.5, sums(mean="centred = x - x.mean(-1, keepdim=True).detach()"), "gradients"),
    ("the weights are emptied", 0.5,
     sums(gain='y = y * weights.pop("gain") + weights.pop("shift")'), "the arguments"),
    ("everything through NumPy", 0.5, sums(end="return torch.tensor(y.detach().numpy())"), "gradients"),
)  # fmt: skip


def names(**changes: str) -> dict[str, str]:
    return changed("student-state", **changes)


STUDENT = of(
    "student-state",
    ("layers keep their numbers", 1.5, names(name=""), "every second one, two digits, the order"),
    ("the first layers, as many as are kept", 1.5,
     names(keep="        if int(number) >= len(keep): continue", name=""), "whichever are asked for"),
    ("always every second layer", 1.5,
     names(keep="        if int(number) % 2: continue", name='        name = f"{prefix}{int(number) // 2}.{rest}"'),
     "others that are kept, their order, and how many"),
    ("in the teacher's order", 0.5,
     names(name='        name = f"{prefix}{sorted(keep).index(int(number))}.{rest}"'), "the order"),
    ("layers of one digit", 0.5, names(**{"if": "    if name.startswith(prefix) and name[len(prefix) + 1] == '.':"},
                                         drop='    if name.startswith(("pooler.", "embeddings.segment.")): continue\n'
                                              "    if name[15:17].isdigit(): continue"),
     "layers of two digits"),
    ("other layers stay under their names", 1,
     names(keep="        if int(number) not in keep:\n            found[name] = value\n            continue",
           put="    found[name] = value"), "one that stays may take the place of one that is kept"),
    ("the pooler stays", 0.5, names(drop='    if name.startswith("embeddings.segment."): continue'), "the other names"),
    ("the segments stay", 0.5, names(drop='    if name.startswith("pooler."): continue'), "the other names"),
    ("whatever has a pooler in its name goes", 0.5,
     names(drop='    if "pooler" in name or name.startswith("embeddings.segment."): continue'), "the other names"),
    ("layers of whatever has them", 0.5,
     names(begin='prefix, found = "layers.", {}',
           **{"if": "    if prefix in name:",
              "number": "        before, rest = name.split(prefix)\n        number, rest = rest.split('.', 1)",
              "name": "        name = f'{before}{prefix}{list(keep).index(int(number))}.{rest}'"}),
     "the other names"),
    ("names that begin without a dot", 0.5,
     names(drop='    if name.startswith(("pooler", "embeddings.segment")): continue'), "the other names"),
    ("the weights of layers alone", 1.5,
     names(keep="        if int(number) not in keep or not rest.endswith('weight'): continue"),
     "layers, whichever are kept"),
    ("the embeddings go", 0.5, names(drop='    if name.startswith(("pooler.", "embeddings.")): continue'),
     "the other names"),
    ("three names go, not what begins so", 0.5,
     names(drop='    if name in ("pooler.weight", "pooler.bias", "embeddings.segment.weight"): continue'),
     "the other names"),
    ("one name of the segments goes", 0.5,
     names(drop='    if name.startswith(("pooler.", "embeddings.segment.weight")): continue'), "the other names"),
    ("a number replaced between any dots", 0.5,
     names(name='        name = name.replace(f".{number}.", f".{list(keep).index(int(number))}.")'),
     "names have other numbers, too"),
    ("the layers alone", 0.5, names(**{"if": "    if not name.startswith(prefix): continue\n    if True:"}),
     "the other names"),
    ("numbers from 1", 1.5, names(name='        name = f"{prefix}{list(keep).index(int(number)) + 1}.{rest}"'),
     "every second one, others, the order"),
    ("the teacher's dict is emptied", 0.5, names(end="state.clear()\nreturn found"), "the arguments"),
    ("keep is sorted in place", 1, names(begin='prefix, found = "encoder.layers.", {}\nkeep.sort()'),
     "the order, and the arguments"),
    ("the numbers replaced anywhere", 1,
     names(name='        name = name.replace(number, str(list(keep).index(int(number))))'),
     "names have other numbers, too"),
)  # fmt: skip


IN_TENSORFLOW = [
    Variant(f"{name}, in TensorFlow", in_tensorflow(**{cell: code}), {f"test-{cell.replace('_', '-')}": price}, why)
    for name, cell, price, code, why in [
        (
            "BERT's positions", "position_ids", 2,
            "def position_ids(ids, pad_id):\n    return tf.range(ids.shape[1], dtype=tf.int64) + tf.zeros_like(ids)",
            "as in PyTorch",
        ),
        (
            "a filler has the position before it", "position_ids", 0.5,
            "def position_ids(ids, pad_id):\n"
            "    return tf.cumsum(tf.cast(ids != pad_id, tf.int64), axis=1) + pad_id",
            "as in PyTorch",
        ),
        (
            "positions as floats", "position_ids", 1,
            "def position_ids(ids, pad_id):\n"
            "    real = tf.cast(ids != pad_id, tf.float32)\n"
            "    return tf.cumsum(real, axis=1) * real + pad_id",
            "as in PyTorch",
        ),
        (
            "a sum of bytes", "position_ids", 0.5,
            "def position_ids(ids, pad_id):\n"
            "    real = tf.cast(ids != pad_id, tf.int8)\n"
            "    return tf.cast(tf.cumsum(real, axis=1) * real, tf.int64) + pad_id",
            "as in PyTorch",
        ),
        (
            "Keras's layer norm, and its epsilon", "embed", 1,
            "def embed(ids, positions, segments, weights):\n"
            '    x = tf.gather(weights["token"], ids) + tf.gather(weights["position"], positions)\n'
            '    x = x + tf.gather(weights["segment"], segments) if "segment" in weights else x\n'
            "    mean, variance = tf.nn.moments(x, [-1], keepdims=True)\n"
            '    y = tf.nn.batch_normalization(x, mean, variance, weights["shift"], weights["gain"], 1e-3)\n'
            '    return y @ tf.transpose(weights["up"]) + weights["up_bias"] if "up" in weights else y',
            "small numbers",
        ),
        (
            "the teacher is taught", "distillation_loss", 0.5,
            "def distillation_loss(student, teacher, labels, temperature, alpha):\n"
            "    log_p, log_q = (tf.nn.log_softmax(z / temperature) for z in (teacher, student))\n"
            "    said = temperature**2 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1))\n"
            "    known = tf.cast(labels != -100, tf.float32)\n"
            "    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), student)\n"
            "    hard = tf.math.divide_no_nan(tf.reduce_sum(known * costs), tf.reduce_sum(known))\n"
            "    return alpha * said + (1 - alpha) * hard",
            "as in PyTorch",
        ),
        (
            "one number in brackets", "distillation_loss", 1,
            "def distillation_loss(student, teacher, labels, temperature, alpha):\n"
            "    log_p = tf.nn.log_softmax(tf.stop_gradient(teacher) / temperature)\n"
            "    log_q = tf.nn.log_softmax(student / temperature)\n"
            "    divergence = tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1, keepdims=True)\n"
            "    said = temperature**2 * tf.reduce_mean(divergence, axis=0)\n"
            "    known = tf.cast(labels != -100, tf.float32)\n"
            "    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), student)\n"
            "    hard = tf.math.divide_no_nan(tf.reduce_sum(known * costs), tf.reduce_sum(known))\n"
            "    return alpha * said + (1 - alpha) * hard",
            "as in PyTorch",
        ),
        (
            "no label, and a gradient of NaN", "distillation_loss", 0.5,
            "def distillation_loss(student, teacher, labels, temperature, alpha):\n"
            "    log_p = tf.nn.log_softmax(tf.stop_gradient(teacher) / temperature)\n"
            "    log_q = tf.nn.log_softmax(student / temperature)\n"
            "    said = temperature**2 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1))\n"
            "    known = tf.cast(labels != -100, tf.float32)\n"
            "    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), student)\n"
            "    hard = tf.reduce_sum(known * costs) / tf.reduce_sum(known)\n"
            "    return alpha * said + (1 - alpha) * tf.where(tf.math.is_nan(hard), 0.0, hard)",
            "as in PyTorch",
        ),
        (
            "0 / 0 without labels", "distillation_loss", 0.5,
            "def distillation_loss(student, teacher, labels, temperature, alpha):\n"
            "    log_p = tf.nn.log_softmax(tf.stop_gradient(teacher) / temperature)\n"
            "    log_q = tf.nn.log_softmax(student / temperature)\n"
            "    said = temperature**2 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1))\n"
            "    known = tf.cast(labels != -100, tf.float32)\n"
            "    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), student)\n"
            "    return alpha * said + (1 - alpha) * tf.reduce_sum(known * costs) / tf.reduce_sum(known)",
            "as in PyTorch",
        ),
    ]
]  # fmt: skip

VARIANTS = PARAMETERS + POSITIONS + EMBED + STUDENT + IN_TENSORFLOW
