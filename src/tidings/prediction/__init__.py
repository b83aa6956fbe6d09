"""From a system to its predicted outcome, by queueing theory."""

from tidings.prediction.predicting import HANDLED, predict
from tidings.prediction.queue_models import QUEUE_MODELS

__all__ = ["HANDLED", "QUEUE_MODELS", "predict"]
