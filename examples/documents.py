"""
Documents: clusters that name themselves
========================================

The documents are the docstrings of Python's standard library, NumPy, SciPy and
scikit-learn, as they are installed here. Each becomes a sparse vector of TF-IDF
weights, one feature for each of thousands of words, and spherical k-means
(`metric="cosine"`) puts together those that use the same words. The vectors stay sparse
throughout. A center is a document as well, the mean one of its cluster, and its
heaviest words are the cluster's name.
"""

import importlib
import inspect
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from cprime import KMeans

plt.style.use("cprime.style")

# %%
# The documents
# -------------
# Functions, classes and public methods whose docstrings are long enough; equal texts
# count once.

LIBRARIES = {
    "standard library": """
        argparse array asyncio base64 bdb bisect bz2 calendar cmd code codecs
        collections concurrent.futures configparser contextlib contextvars copy csv
        ctypes datetime decimal difflib dis doctest email.message email.policy enum
        fileinput fractions ftplib functools gc getpass gettext glob gzip hashlib
        heapq hmac html html.parser http.client http.cookiejar http.server imaplib
        inspect io ipaddress itertools json keyword locale logging logging.handlers
        lzma mailbox math mimetypes mmap multiprocessing.connection
        multiprocessing.managers multiprocessing.pool numbers operator os os.path
        pathlib pdb pickle pickletools platform plistlib poplib pprint profile pstats
        queue random re reprlib sched secrets select selectors shelve shlex shutil
        signal smtplib socket socketserver sqlite3 ssl stat statistics string struct
        subprocess symtable sys sysconfig tarfile tempfile textwrap threading time
        timeit tokenize trace traceback types unicodedata unittest unittest.mock
        urllib.parse urllib.request uuid warnings wave weakref webbrowser
        xml.dom.minidom xml.etree.ElementTree xml.sax.handler xmlrpc.client zipfile
        zlib""",
    "NumPy": """
        numpy numpy.char numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random
        numpy.testing""",
    "SciPy": """
        scipy.cluster.hierarchy scipy.constants scipy.fft scipy.integrate
        scipy.interpolate scipy.io scipy.linalg scipy.ndimage scipy.optimize
        scipy.signal scipy.sparse scipy.sparse.csgraph scipy.sparse.linalg
        scipy.spatial scipy.special scipy.stats""",
    "scikit-learn": """
        sklearn.cluster sklearn.compose sklearn.covariance sklearn.cross_decomposition
        sklearn.datasets sklearn.decomposition sklearn.ensemble
        sklearn.feature_extraction.text sklearn.feature_selection
        sklearn.gaussian_process sklearn.impute sklearn.inspection
        sklearn.linear_model sklearn.manifold sklearn.metrics sklearn.mixture
        sklearn.model_selection sklearn.naive_bayes sklearn.neighbors
        sklearn.neural_network sklearn.pipeline sklearn.preprocessing sklearn.svm
        sklearn.tree""",
}


def docstrings(module):
    """Yield (name, text) of the public members of a module and of the methods of its
    classes.
    """
    for name, thing in inspect.getmembers(module, callable):
        yield f"{module.__name__}.{name}", inspect.getdoc(thing)
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            yield f"{module.__name__}.{name}.{method}", inspect.getdoc(function)


found = {}
for library, modules in LIBRARIES.items():
    for module in modules.split():
        for name, text in docstrings(importlib.import_module(module)):
            if text and len(text) > 150 and "._" not in name:
                found.setdefault(text, (name, library))
texts = list(found)
names, libraries = map(np.array, zip(*found.values(), strict=True))
length = np.median([len(text.split()) for text in texts])
print(f"{len(texts):,} documents of {length:.0f} words in the median")

vectorizer = TfidfVectorizer(
    stop_words="english",
    token_pattern=r"[a-z]{3,}",
    min_df=5,
    max_df=0.2,
    sublinear_tf=True,
    dtype=np.float32,
)
X = vectorizer.fit_transform(texts)
print(
    f"{X.shape[1]:,} words, of which a document has {X.nnz / X.shape[0]:.0f} on average"
)

# %%
# The fit
# -------
# `search="graph"` compares a document only with centers near its own. The certificate
# estimates what this misses by comparing a sample of the documents with all centers.

C = 40
begin = time.perf_counter()
km = KMeans(C, metric="cosine", search="graph", n_init=3, random_state=0).fit(X)
seconds, certificate = time.perf_counter() - begin, km.certificate_
print(f"{seconds:.2f} s for {km.n_init} starts; the best took {km.n_iter_} iterations")
print(f"certificate, of a sample of {certificate['n_points']:,} documents:")
print(f"{certificate['agreement']:.1%} are at the nearest center of all")
print(f"J is {certificate['relative_excess']:.2%} above that of nearest centers")

# %%
# Names
# -----
# The five heaviest words of each center, and the documents nearest to the centers of
# the largest clusters.

words = vectorizer.get_feature_names_out()
titles = np.array(
    [", ".join(words[center.argsort()[:-6:-1]]) for center in km.cluster_centers_]
)
sizes = np.bincount(km.labels_)
order = sizes.argsort()[::-1]
distances = km.transform(X).min(axis=1)
for c in order[:6]:
    members = np.flatnonzero(km.labels_ == c)
    nearest = members[distances[members].argsort()[:3]]
    print(titles[c], *names[nearest], sep="\n    ")

# %%
# Most clusters are a topic of one library; some, such as random numbers and Fourier
# transforms, join those of several.

figure, ax = plt.subplots(figsize=(9, 8))
left = np.zeros(C)
for i, library in enumerate(LIBRARIES):
    counts = np.bincount(km.labels_[libraries == library], minlength=C)[order]
    ax.barh(titles[order], counts, left=left, color=f"C{i}", height=0.75)
    ax.text(
        0.98,
        0.12 - 0.03 * i,
        library,
        color=f"C{i}",
        transform=ax.transAxes,
        ha="right",
        weight="bold",
    )
    left += counts
ax.invert_yaxis()
ax.margins(y=0.01)
ax.grid(axis="y", visible=False)
ax.set(
    title=f"{len(texts):,} docstrings in {C} clusters, under their heaviest words",
    xlabel="documents",
)
plt.show()
