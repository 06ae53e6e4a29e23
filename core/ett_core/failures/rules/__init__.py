"""The tables of the classifier, in the order in which they are tried on a line."""

from ett_core.failures.rules.accelerators import ACCELERATORS
from ett_core.failures.rules.clouds import CLOUDS
from ett_core.failures.rules.data import DATA
from ett_core.failures.rules.families import FAMILIES
from ett_core.failures.rules.gpu import GPU
from ett_core.failures.rules.host import HOST
from ett_core.failures.rules.libraries import LIBRARIES
from ett_core.failures.rules.machines import MACHINES
from ett_core.failures.rules.network import NETWORK
from ett_core.failures.rules.platforms import PLATFORMS
from ett_core.failures.rules.scheduler import SCHEDULER
from ett_core.failures.rules.software import SOFTWARE
from ett_core.failures.rules.workload import WORKLOAD

RULES = (
    *ACCELERATORS,
    *PLATFORMS,
    *CLOUDS,
    *MACHINES,
    *GPU,
    *WORKLOAD,
    *SCHEDULER,
    *DATA,
    *NETWORK,
    *SOFTWARE,
    *HOST,
    *LIBRARIES,
    *FAMILIES,
)

__all__ = ["RULES"]
