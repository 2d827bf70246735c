"""One seed for every property test: a green run is green again.

``HYPOTHESIS_PROFILE=explore pytest`` looks for new counterexamples instead.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
