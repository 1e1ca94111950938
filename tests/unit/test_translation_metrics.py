"""BLEU, chrF and their intervals against sacreBLEU's own; perplexity and accuracy by hand."""

import numpy as np
import pytest
import sacrebleu
from numpy.testing import assert_allclose

from course_lib.evaluation.bleu import bleu, bleu_difference, by_length, chrf
from course_lib.evaluation.perplexity import perplexity, token_accuracy

WORDS = "the cat sat on a mat and then it saw that small dog near our old house , which barked .".split()


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 14))) for _ in range(n)]


def worse(texts, share, seed):
    """The texts with a share of their words replaced."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else w for w in text.split()) for text in texts]


@pytest.fixture(scope="module")
def references():
    return sentences(150, 0)


@pytest.fixture(scope="module")
def hypotheses(references):
    return worse(references, 0.3, 1)


@pytest.mark.parametrize(("ours", "theirs"), [(bleu, sacrebleu.corpus_bleu), (chrf, sacrebleu.corpus_chrf)])
def test_the_value_is_sacrebleus(references, hypotheses, ours, theirs):
    value, low, high = ours(hypotheses, references)
    assert_allclose(value, theirs(hypotheses, [references]).score, rtol=1e-9)
    assert 20 < low < value < high < 95


@pytest.mark.parametrize(("ours", "theirs"), [(bleu, sacrebleu.corpus_bleu), (chrf, sacrebleu.corpus_chrf)])
def test_several_references_of_unequal_number(references, hypotheses, ours, theirs):
    others = worse(references, 0.5, 2)
    both = [[r, o] if i % 2 else [r] for i, (r, o) in enumerate(zip(references, others, strict=True))]
    streams = [references, [o if i % 2 else None for i, o in enumerate(others)]]
    assert_allclose(ours(hypotheses, both).value, theirs(hypotheses, streams).score, rtol=1e-9)
    assert ours(hypotheses, both).value > ours(hypotheses, references).value


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_case_counts_unless_told_otherwise(references, metric):
    lower = [text.lower() for text in references]
    upper = [text.upper() for text in references]
    assert metric(lower, upper).value < 5
    assert_allclose(metric(lower, upper, lowercase=True), 100.0)


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_the_interval_is_the_plain_bootstraps(references, hypotheses, metric):
    """Resampling the strings themselves, slowly, gives the same interval up to the luck of the draw."""
    theirs = {bleu: sacrebleu.corpus_bleu, chrf: sacrebleu.corpus_chrf}[metric]
    hypotheses, references, rng, scores = hypotheses[:60], references[:60], np.random.default_rng(9), []
    for _ in range(500):
        rows = rng.integers(0, 60, size=60)
        scores.append(theirs([hypotheses[i] for i in rows], [[references[i] for i in rows]]).score)
    low, high = np.quantile(scores, [0.25, 0.75])
    estimate = metric(hypotheses, references, confidence=0.5, n_resamples=2000)
    assert_allclose(estimate[1:], [low, high], atol=0.15 * (high - low))


def test_a_higher_confidence_and_fewer_sentences_are_wider(references, hypotheses):
    def width(n, confidence):
        estimate = bleu(hypotheses[:n], references[:n], confidence=confidence)
        return estimate.high - estimate.low

    assert width(150, 0.8) < width(150, 0.99)
    assert width(150, 0.95) < width(40, 0.95)


def test_the_difference_of_two_systems(references, hypotheses):
    second = worse(hypotheses, 0.1, 3)
    found = bleu_difference(hypotheses, second, references)
    assert_allclose(found.value, bleu(hypotheses, references).value - bleu(second, references).value, rtol=1e-9)
    assert found.low > 0
    mirrored = bleu_difference(second, hypotheses, references)
    assert_allclose(mirrored, [-found.value, -found.high, -found.low], rtol=1e-9)


def test_a_paired_interval_is_narrower_than_two_separate_ones(references, hypotheses):
    paired = bleu_difference(hypotheses, worse(hypotheses, 0.05, 4), references)
    separate = bleu(hypotheses, references)
    assert paired.high - paired.low < 0.7 * (separate.high - separate.low)  # unpaired it would be 1.4 times as wide


def test_equal_systems_differ_by_nothing(references, hypotheses):
    assert_allclose(bleu_difference(hypotheses, hypotheses, references), 0.0, atol=1e-12)


def test_two_random_systems_of_equal_quality_rarely_look_different(references):
    excluded = [
        not e.low <= 0 <= e.high
        for seed in range(40)
        for e in [bleu_difference(worse(references, 0.3, 50 + seed), worse(references, 0.3, 150 + seed), references,
                                  n_resamples=200)]
    ]  # fmt: skip
    assert sum(excluded) <= 6  # 2 expected


def test_the_seed_decides_the_interval(references, hypotheses):
    first, again, other = (bleu(hypotheses, references, seed=seed) for seed in (0, 0, 1))
    assert_allclose(first, again)
    assert_allclose(first.value, other.value)
    assert abs(first.low - other.low) > 1e-6


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_empty_hypotheses_count_against_the_translator(references, metric):
    half = [text if i % 2 else "" for i, text in enumerate(references)]
    assert_allclose(metric([""] * 150, references), 0.0, atol=1e-12)
    assert 10 < metric(half, references).value < 75


def test_by_length_measures_each_band_alone(references, hypotheses):
    lengths = np.array([len(text.split()) for text in references])
    bands = ((3, 6), (7, 9), (10, 13))
    found = by_length(bleu, lengths, hypotheses, references, bands=bands, n_resamples=50)
    assert list(found) == list(bands)
    for (low, high), estimate in found.items():
        rows = [i for i in range(150) if low <= lengths[i] <= high]
        expected = sacrebleu.corpus_bleu([hypotheses[i] for i in rows], [[references[i] for i in rows]]).score
        assert_allclose(estimate.value, expected, rtol=1e-9)
    gaps = by_length(bleu_difference, lengths, hypotheses, hypotheses, references, bands=bands, n_resamples=50)
    assert_allclose(list(gaps.values()), 0.0, atol=1e-12)


def test_perplexity_of_equal_chances_is_their_number():
    assert_allclose(perplexity(np.full((2, 3), np.log(7.0))), 7.0)
    assert_allclose(perplexity([np.log(2.0), np.log(8.0)]), 4.0)


def test_padding_counts_in_neither():
    targets = np.array([[4, 5, 0, 0], [6, 7, 8, 0]])
    losses = np.where(targets == 0, 99.0, np.log(3.0))
    assert_allclose(perplexity(losses, targets), 3.0)
    predictions = np.array([[4, 5, 0, 0], [6, 0, 0, 0]])
    assert_allclose(token_accuracy(predictions, targets), 3 / 5)
    assert_allclose(token_accuracy(predictions, targets, pad_id=8), 6 / 7)
    assert_allclose(perplexity(losses, np.where(targets == 0, 9, targets), pad_id=9), 3.0)


@pytest.mark.parametrize(
    ("hypotheses", "references", "error", "message"),
    [
        ([], [], ValueError, "there is no hypothesis"),
        (["a"], ["a", "b"], ValueError, "there are 1 hypotheses and 2 references"),
        ("a", ["a"], TypeError, "not one str"),
        (["a"], "a", TypeError, "not one str"),
        ([[1, 2]], ["a"], TypeError, "every hypothesis must be a str; decode the ids first"),
        (["a"], [[]], ValueError, "sentence 0 has no reference with text"),
        (["a", "b"], ["a", ""], ValueError, "sentence 1 has no reference with text"),
        (["a"], [[None]], TypeError, "the references of sentence 0 must be a str or several"),
    ],
)
@pytest.mark.parametrize("metric", [bleu, chrf, lambda h, r: bleu_difference(h, h, r)])
def test_bad_texts(metric, hypotheses, references, error, message):
    message = message.replace("1 hypotheses", "1.* hypotheses")
    with pytest.raises(error, match=message):
        metric(hypotheses, references)


@pytest.mark.parametrize(("options", "message"), [({"confidence": 95}, "between"), ({"n_resamples": 0}, "or more")])
def test_bad_bootstrap(options, message):
    with pytest.raises(ValueError, match=message):
        bleu(["a"], ["a"], **options)


def test_bad_bands():
    with pytest.raises(ValueError, match="no sentence is 5 to 8 long"):
        by_length(bleu, [2, 3], ["a", "b"], ["a", "b"], bands=((1, 4), (5, 8)))
    with pytest.raises(ValueError, match="there are 2 lengths, but 1, 2 texts"):
        by_length(bleu, [2, 3], ["a"], ["a", "b"])


@pytest.mark.parametrize("function", [perplexity, token_accuracy])
def test_bad_tokens(function):
    with pytest.raises(ValueError, match=r"same shape, got \(2,\) and \(3,\)"):
        function([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="every target is padding"):
        function([1, 2], [0, 0])
