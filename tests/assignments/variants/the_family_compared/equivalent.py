"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

REAL = "real = (ids != pad_id).long()"
OF_LABEL = "of_label = torch.log_softmax(student, dim=1).gather(1, labels.clamp(min=0)[:, None])"
HALF = "half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))"
ORDER = "return sorted(found, key=lambda name: models[name]"
ENOUGH = "of hundreds of sentences both are the same within a hundredth, and an interval by resampling is right, too"
ALONG = "along a front, what is slower is more accurate, and of two that are alike both are"

EQUIVALENT = {
    ("position-ids", f"{REAL}  ->  real = -(ids != pad_id).long()"): "minus one times minus one",
    ("position-ids", f"{REAL}  ->  real = ids != pad_id"): "PyTorch adds True and False up as numbers",
    (
        "student-state",
        "if name.startswith(('pooler.', 'embeddings.segment.')):  ->  "
        "if name.startswith(('embeddings.segment.', 'pooler.')):",
    ): "the order of what is dropped",
    ("distillation-loss", "known = labels >= 0  ->  known = labels >= -1"): "a label is 0 or more, or -100",
    ("distillation-loss", f"{OF_LABEL}[:, 0]  ->  {OF_LABEL}[:, -1]"): "the axis has the length one",
    ("difference", f"{HALF}  ->  half = 1.96 * d.std() / np.sqrt(len(d))"): ENOUGH,
    ("difference", f"{HALF}  ->  half = 1.96 * d.std(ddof=0) / np.sqrt(len(d))"): ENOUGH,
    ("front", f"{ORDER}[0])  ->  {ORDER})"): ALONG,
    ("front", f"{ORDER}[0])  ->  {ORDER}[1])"): ALONG,
    ("front", f"{ORDER}[0])  ->  {ORDER}[-1])"): ALONG,
}
