"""Pictures of the graph that backward will walk, and of the memory that a program used."""

from minigrad.viz.memory_timeline import memory as memory
from minigrad.viz.picture import Picture as Picture
from minigrad.viz.picture import graph as graph
from minigrad.viz.play import Frame as Frame
from minigrad.viz.play import Player as Player
