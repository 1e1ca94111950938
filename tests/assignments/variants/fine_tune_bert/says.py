"""What the public checks say of wrong solutions: the cell that fails, and a part of its words."""

TEXTS, MEANS, RATES = "check-first-and-last", "check-mean-of-tokens", "check-layer-rates"
HEAT, INTERVAL, PREDICTED = "check-temperature", "check-interval", "check-predictions"

SAYS = {
    "the beginning alone": (TEXTS, "this is the beginning alone"),
    "the beginning, and [SEP]": (TEXTS, "not [SEP] alone"),
    "the end alone": (TEXTS, "this is the end alone"),
    "the special tokens not counted": (TEXTS, "the special tokens count"),
    "of an odd number, the end gets one more": (TEXTS, "the beginning gets one more, not the end"),
    "a short text twice": (TEXTS, "a text of eight ids, with max_len=9,"),
    "mask not used": (MEANS, "the mask had no effect"),
    "fillers left out of the sum alone": (MEANS, "counts in the number divided by"),
    "the sum": (MEANS, "this is the sum"),
    "mask inverted": (MEANS, "True and False are swapped"),
    "0 / 0 for an empty text": (MEANS, "NaN or infinite"),
    "fillers overwritten": (MEANS, "changed its argument `hidden`"),
    "the first token": (MEANS, "the first token's vector"),
    "the largest numbers": (MEANS, "the largest numbers, not the means"),
    "the uppermost layer at the peak rate": (RATES, "one step below the head"),
    "the layers the wrong way round": (RATES, "the wrong way round"),
    "divided, not multiplied": (RATES, "Multiply by decay, do not divide"),
    "a step takes away, and does not multiply": (RATES, "it takes nothing away"),
    "the embeddings like the lowest layer": (RATES, "one step below the lowest layer"),
    "the embeddings like the head": (RATES, "not beside the head"),
    "the head one step down": (RATES, "the head learns at the peak rate"),
    "the head forgotten": (RATES, "has no rate"),
    "one digit of the number": (RATES, "it should be"),
    "the peak forgotten": (RATES, "the rates for a peak of 3"),
    "the number to multiply by": (HEAT, "T divides"),
    "the lowest loss itself": (HEAT, "this is the lowest log loss"),
    "never below one": (HEAT, "T of logits a quarter as large"),
    "up to ten": (HEAT, "T of logits eight times as large"),
    "exponentials without the largest taken away": (HEAT, "with 50,000 added"),
    "the largest taken away in place": (HEAT, "changed its argument `logits`"),
    "two classes alone": (HEAT, "three classes"),
    "not paired": (INTERVAL, "takes the two accuracies for independent"),
    "the second minus the first": (INTERVAL, "the first minus the second is asked for"),
    "the spread of one sentence": (INTERVAL, "divide s by the root of N"),
    "divided by N in s squared": (INTERVAL, "divide by N - 1"),
    "high before low": (INTERVAL, "low and high are swapped"),
    "the probability of the label 0": (PREDICTED, "not that of the label 0"),
    "the validation sentences in front": (PREDICTED, "not the 1,000 before them"),
    "another order of the sentences": (PREDICTED, "Are the sentences in their order?"),
    "one and the same probability": (PREDICTED, "all probabilities are the same"),
    "answers, not probabilities": (PREDICTED, "Hand in probabilities, not answers"),
    "a line of the text lost": (PREDICTED, "there are 2,925 probabilities"),
    "a letter of the text lost": (PREDICTED, "Copy the whole text again"),
    "numbers, not a text": (PREDICTED, "it is a ndarray"),
}

LABELS = "a public check would need the labels, and the marks are those of the text"
UNSEEN = {
    "counts of words": LABELS,
    "a frozen encoder": LABELS,
    "logits that are not divided by T": LABELS,
    "half as sure as it could be": LABELS,
}
