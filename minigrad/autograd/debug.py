"""Looks into backward passes and checks gradients: the public `mg.debug`."""

from minigrad.autograd.anomaly import detect_anomaly as detect_anomaly
from minigrad.autograd.gradcheck import gradcheck as gradcheck
from minigrad.autograd.gradcheck import gradgradcheck as gradgradcheck
from minigrad.autograd.records import Record as Record
from minigrad.autograd.records import record_grad_function as record_grad_function
