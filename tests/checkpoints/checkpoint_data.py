"""Fits that are aborted, and the content of folders."""


class Died(Exception):
    """Exception that aborts a fit."""


def dying(estimator, passes):
    """Return the estimator with a callback that aborts its fit after `passes` calls, counted over all starts."""
    left = [passes]

    def callback(row):
        left[0] -= 1
        if left[0] == 0:
            raise Died

    return estimator.set_params(callbacks=callback)


def died(estimator, passes, X, **arguments):
    """Return whether the fit was aborted after `passes` calls of its callback, rather than ended before."""
    try:
        dying(estimator, passes).fit(X, **arguments)
    except Died:
        return True
    finally:
        estimator.set_params(callbacks=None)
    return False


def content(folder):
    """Return the bytes of every file below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
