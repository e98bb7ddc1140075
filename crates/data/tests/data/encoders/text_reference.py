"""Prints the expected values of text.rs: products of rows, which do not depend on where tokens are hashed to."""
import re

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

rows = [
    "The cat sat on the mat",
    "the CAT, the dog & the 7 mice!",
    "Ein Hund - one dog, ÜBER alles über",
    "a b a b a",
    "",
    "dog",
]


def show(name, vectorizer):
    matrix = vectorizer.fit_transform(rows)
    print(name, [round(float(v), 5) for v in np.ravel((matrix @ matrix.T).toarray()[np.triu_indices(len(rows))])])


pattern = r"[^\W_]+"
show("counts", CountVectorizer(token_pattern=pattern))
show("counts of 1 to 3 words", CountVectorizer(token_pattern=pattern, ngram_range=(1, 3)))
show("rarity", TfidfVectorizer(token_pattern=pattern, norm=None))
show("rarity, unit length", TfidfVectorizer(token_pattern=pattern, ngram_range=(1, 2)))


def only_words(text):
    return " ".join(re.findall(pattern, text.lower()))


show("characters", CountVectorizer(analyzer="char_wb", ngram_range=(3, 5), preprocessor=only_words))
