"""The parts of agentstr-sdk that speak kind 4, imported without the rest.

Its package imports agent frameworks, databases and a scheduler as soon as it is named (`agentstr/__init__.py`), hundreds of
megabytes that no message needs. So an empty package with the same path stands in for it, and only the modules that are
asked for are run. They are used as they are.
"""

import importlib.util
import os
import sys
import types

os.environ.setdefault("LOG_LEVEL", "WARNING")  # its loggers read this when they are imported

spec = importlib.util.find_spec("agentstr")  # of a package at the top, this runs nothing
if spec is None:
    sys.exit("agentstr-sdk is not installed")
package = types.ModuleType("agentstr")
package.__path__ = list(spec.submodule_search_locations)
sys.modules["agentstr"] = package
