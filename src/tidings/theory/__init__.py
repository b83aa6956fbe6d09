"""From a system to its predicted outcome, by queueing theory."""

from tidings.theory.predicting import HANDLED, predict
from tidings.theory.queue_models import QUEUE_MODELS

__all__ = ["HANDLED", "QUEUE_MODELS", "predict"]
