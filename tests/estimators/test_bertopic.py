"""BERTopic takes estimators of cprime as `hdbscan_model`: every document has a topic, none is in the rest −1."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans

bertopic = pytest.importorskip("bertopic", reason="bertopic is not installed")
WORDS = np.array(
    [["sun", "moon", "star", "orbit"], ["goal", "ball", "team", "match"], ["bread", "flour", "oven", "yeast"]]
)


@pytest.mark.parametrize("estimator", [KMeans(3, random_state=0), GaussianMixture(3, random_state=0)], ids=["k", "gm"])
def test_topics_are_the_components(estimator):
    from bertopic.dimensionality import BaseDimensionalityReduction

    rng = np.random.default_rng(0)
    true = np.arange(60) % 3
    documents = [" ".join(rng.choice(WORDS[topic], 8)) for topic in true]
    embeddings = np.eye(3)[true] + 0.05 * rng.normal(size=(60, 3))
    model = bertopic.BERTopic(
        hdbscan_model=estimator, umap_model=BaseDimensionalityReduction(), embedding_model=None, verbose=False
    )
    topics, _ = model.fit_transform(documents, embeddings=embeddings)
    assert [set(np.asarray(topics)[true == topic]) for topic in range(3)] == [{topics[topic]} for topic in range(3)]
    assert sorted(set(topics)) == [0, 1, 2]
    words = {word for word, _ in model.get_topic(topics[0])}
    assert words & set(WORDS[0])
    assert not words & {*WORDS[1], *WORDS[2]}
    pytest.importorskip("hdbscan", reason="without hdbscan BERTopic.transform raises TypeError for every model")
    assert list(model.transform(documents, embeddings=embeddings)[0]) == list(topics)
