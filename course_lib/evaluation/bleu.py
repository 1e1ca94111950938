"""How good a translator is: BLEU and chrF by sacreBLEU, with intervals and paired comparisons.

BLEU and chrF are on sacreBLEU's scale, 0 to 100. Both belong to a corpus and are no mean over its sentences. Their
intervals come from the bootstrap (Koehn 2004, section 3): draw N of the N sentences with replacement, many times, and
see how the score varies. What is summed over the drawn sentences is each one's statistics (matches, totals, lengths),
which are counted once, so a thousand draws take a moment. An interval covers the draw of the test sentences, not the
luck of another training seed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from course_lib.data.sentence_pairs import BANDS
from course_lib.evaluation.estimate import Estimate


def bleu(
    hypotheses: Sequence[str],
    references: Sequence,
    lowercase: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Corpus BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), and its bootstrap interval.

    The value is that of `sacrebleu.corpus_bleu` with its defaults: words split as in WMT ("13a"), exponential
    smoothing. Scores with different settings or numbers of references cannot be compared.

    Parameters
    ----------
    hypotheses : N translations; an empty one is allowed and matches nothing
    references : for each of them the right translation, a str, or several, a sequence of str
    lowercase : ignore case, which a fair comparison needs when the model writes lower case
    confidence : of the interval
    n_resamples, seed : of the bootstrap

    Returns
    -------
    `Estimate` on the scale 0 to 100.

    Raises
    ------
    TypeError : one str instead of many, or something that is not a str.
    ValueError : no hypothesis, unequal numbers, a sentence without a reference that has text, or a confidence outside
        (0, 1), or fewer than one resample.
    """
    return _estimate(_bleu(lowercase), [hypotheses], references, confidence, n_resamples, seed)


def chrf(
    hypotheses: Sequence[str],
    references: Sequence,
    lowercase: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Corpus chrF (Popović 2015) by sacreBLEU, and its bootstrap interval: matches of 1 to 6 characters, not of words.

    It gives credit for the right stem with a wrong ending. Arguments, result and errors are those of `bleu`.
    """
    return _estimate(CHRF(lowercase=lowercase), [hypotheses], references, confidence, n_resamples, seed)


def bleu_difference(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence,
    lowercase: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """BLEU of `first` minus BLEU of `second` on the same sentences, by the paired bootstrap (Koehn 2004, section 4).

    Both are measured on the same draws, so that what is hard for both cancels: the interval is narrower than the two
    intervals of `bleu` suggest. Where it excludes 0, the difference is more than the choice of test sentences.

    Parameters
    ----------
    first, second : N translations of each model
    references, lowercase, confidence, n_resamples, seed : as for `bleu`

    Raises
    ------
    TypeError, ValueError : as for `bleu`.
    """
    return _estimate(_bleu(lowercase), [first, second], references, confidence, n_resamples, seed)


def by_length(measure: Callable, lengths, *texts: Sequence, bands=BANDS, **options) -> dict[tuple[int, int], Estimate]:
    """A measure for each band of source lengths: `by_length(bleu, words(sources), hypotheses, references)`.

    Parameters
    ----------
    measure : `bleu`, `chrf`, `bleu_difference`, or another function of the texts
    lengths : integers, shape (N,)
    texts : what the measure takes, each with N entries
    bands : (first, last) of each band; sentences outside all bands do not count
    options : for the measure

    Returns
    -------
    The measure of each band, by the band.

    Raises
    ------
    ValueError : not N texts, or a band without a sentence.
    """
    lengths = np.asarray(lengths)
    if any(len(column) != len(lengths) for column in texts):
        sizes = ", ".join(str(len(column)) for column in texts)
        raise ValueError(f"there are {len(lengths)} lengths, but {sizes} texts")
    found = {}
    for low, high in bands:
        rows = np.flatnonzero((lengths >= low) & (lengths <= high))
        if len(rows) == 0:
            raise ValueError(f"no sentence is {low} to {high} long")
        found[low, high] = measure(*([column[row] for row in rows] for column in texts), **options)
    return found


def _bleu(lowercase):
    return BLEU(lowercase=lowercase, force=True)  # force: no warning about the TED talks, whose full stops stand apart


def _estimate(metric, systems, references, confidence, n_resamples, seed) -> Estimate:
    """The score of one system, or the difference of two, and the quantiles of its resampled values."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, such as 0.95; got {confidence}")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be 1 or more, got {n_resamples}")
    streams = _streams(systems, references)
    # The statistics of sacreBLEU's own significance tests: integers (N, statistics) that add up over sentences.
    statistics = [np.array(metric._extract_corpus_statistics(list(texts), streams)) for texts in systems]

    def scores(times):
        """What the corpus scores in which sentence i stands times[..., i] times."""
        one = [[metric._compute_score_from_stats(row.tolist()).score for row in times @ table] for table in statistics]
        return np.array(one[0]) - (one[1] if len(one) == 2 else 0.0)

    n = len(statistics[0])
    times = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)  # (n_resamples, N)
    low, high = np.quantile(scores(times), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(float(scores(np.ones((1, n), dtype=np.int64))[0]), float(low), float(high))


def _streams(systems, references) -> list[list[str | None]]:
    """References as sacreBLEU wants them: the first of every sentence, the second of every sentence, and so on."""
    for texts in (*systems, references):
        if isinstance(texts, str):
            raise TypeError("hypotheses and references must be many sentences, not one str")
    if any(not isinstance(text, str) for texts in systems for text in texts):
        raise TypeError("every hypothesis must be a str; decode the ids first")
    sizes = [len(texts) for texts in (*systems, references)]
    if len(set(sizes)) > 1:
        raise ValueError(f"each hypothesis needs its reference; there are {', '.join(map(str, sizes[:-1]))} hypotheses "
                         f"and {sizes[-1]} references")  # fmt: skip
    if sizes[0] == 0:
        raise ValueError("there is no hypothesis, so there is nothing to measure")
    known = [[text] if isinstance(text, str) else list(text) for text in references]
    for i, texts in enumerate(known):
        if any(not isinstance(text, str) for text in texts):
            raise TypeError(f"the references of sentence {i} must be a str or several")
        if not any(texts):
            raise ValueError(f"sentence {i} has no reference with text in it")
    return [[texts[k] if k < len(texts) else None for texts in known] for k in range(max(map(len, known)))]
