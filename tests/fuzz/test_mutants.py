"""The list of mutants that change no result agrees with the present code."""

from pathlib import Path

from reliability.mutants import SOURCE, equivalents
from reliability.mutations import mutants_of


def test_every_equivalent_mutant_is_one_of_todays_code():
    known = equivalents()
    modules = {key[0] for key in known}
    today = {
        (m.module, m.place, m.before, m.after)
        for name in modules
        for m in mutants_of(Path(SOURCE / name).read_text(), name)
    }
    assert set(known) <= today
