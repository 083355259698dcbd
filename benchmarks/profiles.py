"""Named lists of commands: those of `make bench` and `make bench-full`, and two smaller ones."""

_FAST = "cprime,faiss,superkmeans-tree"
_SUPER = "faiss-super,superkmeans"
_MANY = f"{_FAST},{_SUPER},superkmeans-sampled,sklearn-minibatch,sklearn-minibatch-8k,intelex"
_SOME = f"cprime-graph,cprime-lloyd,{_FAST},{_SUPER},superkmeans-sampled,sklearn-lloyd,sklearn-minibatch,intelex"
_AGAINST_FAISS = "--iterations 25 --defaults --peers cprime,faiss"

SHORT = (
    "setup",
    "time-to-quality --data clusters-small --repetitions 2 --limit 60 --iterations 1,25",
    f"time-to-quality --data kdd --repetitions 2 --limit 60 --iterations 1,5,25 --peers {_SOME}",
    f"time-to-quality --data sift --repetitions 1 --limit 120 --iterations 1,25 --peers {_FAST}",
    "time-to-quality --model mixture --data kdd -C 200 --repetitions 1 --iterations 1,3",
    "iteration --data kdd --repetitions 2",
    "growth --along C --data clusters-small --values 500,2000,8000",
    "growth --along threads",
    "memory --data clusters-small",
)

EXACT = (
    "setup",
    "time-to-quality --model seeding --data msd --repetitions 2",
    "iteration --model mixture --data kdd -C 200",
    "memory --model mixture --data kdd -C 200 --iterations 5",
    "iteration --data kdd --data msd --data sift",
    "iteration --data patches -C 1000",
)

PARTIAL = (
    f"time-to-quality --data kdd --data msd {_AGAINST_FAISS}",
    f"time-to-quality --data sift --data patches --repetitions 2 {_AGAINST_FAISS}",
    f"time-to-quality --data sift -C 16384 --repetitions 1 {_AGAINST_FAISS}",
    f"time-to-quality --data noise --data noise-falling {_AGAINST_FAISS}",
)

MIXTURES = (
    "time-to-quality --model mixture-diag --data msd-standard --repetitions 1 --iterations 3,20",
    "time-to-quality --model mixture-full --data kdd-20 --repetitions 1 --iterations 2,10",
    "memory --model mixture-diag --data msd-standard --iterations 2",
)

FULL = (
    "time-to-quality --data kdd --data msd --iterations 1,3,10,25,100",
    "time-to-quality --data birch --data clusters-small --iterations 1,3,10,25,100",
    f"time-to-quality --data sift --data patches --iterations 1,5,25 --peers {_MANY},sklearn-minibatch-64k",
    f"time-to-quality --data sift -C 16384 --repetitions 1 --iterations 1,5,25 --peers {_FAST},{_SUPER}",
    f"time-to-quality --data clusters --repetitions 1 --iterations 1,5,25 --peers {_FAST},{_SUPER}",
    "time-to-quality --model mixture --data kdd -C 200 --iterations 1,3,10,30,100",
    *EXACT,
    *MIXTURES,
    "growth --along C --repetitions 3",
    "growth --along N --repetitions 3",
    "growth --along D --repetitions 3",
    "growth --along threads --repetitions 3",
    "memory --data kdd --data sift",
    "million",
)

PROFILES: dict[str, tuple[tuple[str, ...], str]] = {
    "short": (SHORT, "a short profile of everything, at most ten minutes on two processors"),
    "full": (FULL, "the whole: hours"),
    "exact": (EXACT, "the exact algorithms: starts, iterations of Lloyd and EM, small data"),
    "mixtures": (MIXTURES, "general mixtures against scikit-learn's"),
    "partial": (PARTIAL, "KMeans(C) as it comes against 25 iterations of faiss"),
}
