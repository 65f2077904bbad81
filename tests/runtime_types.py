"""Run-time checks of types and array shapes, for the test tiers that call the library correctly.

`make test` turns them on with --jaxtyping-packages. Where tests hand in bad values on purpose they stay off: there
the library's own sentences are under test. An int is a float here, as in the static checker.
"""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
