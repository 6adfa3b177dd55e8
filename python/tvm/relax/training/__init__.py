# SPDX-License-Identifier: Apache-2.0
"""Training of graphs: losses, optimizers, and what puts them together."""

from . import loss, optimizer, setup_trainer, trainer, utils
from .setup_trainer import SetupTrainer
from .trainer import Trainer
from .utils import AppendLoss
