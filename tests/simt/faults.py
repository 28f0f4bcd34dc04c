"""All planted faults, in the order of the detection table."""

from tests.simt import (
    faults_groups,
    faults_memory,
    faults_races,
    faults_shared_elements,
    faults_tensor,
)
from tests.simt.planted import FAULTS

assert FAULTS
MODULES = faults_groups, faults_memory, faults_races, faults_shared_elements, faults_tensor
