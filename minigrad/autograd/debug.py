"""Looking into backward passes and checking gradients: the public `mg.debug`."""

from minigrad.autograd.gradcheck import gradcheck as gradcheck
from minigrad.autograd.gradcheck import gradgradcheck as gradgradcheck
