# SPDX-License-Identifier: Apache-2.0
"""Tuning: a search for better schedules."""

from tvm.tir import schedule as _schedule  # gives schedules and traces their classes

from . import (
    arg_info,
    builder,
    cost_model,
    database,
    feature_extractor,
    measure_callback,
    mutator,
    post_optimization,
    postproc,
    relax_integration,
    runner,
    schedule,
    schedule_rule,
    search_strategy,
    space_generator,
    task_scheduler,
    tir_integration,
    trace_apply,
)
from .builder import Builder
from .cost_model import CostModel
from .database import Database
from .extracted_task import ExtractedTask
from .feature_extractor import FeatureExtractor
from .measure_callback import MeasureCallback
from .mutator import Mutator
from .postproc import Postproc
from .profiler import Profiler
from .runner import Runner
from .schedule_rule import ScheduleRule
from .search_strategy import MeasureCandidate, SearchStrategy
from .space_generator import SpaceGenerator
from .task_scheduler import TaskScheduler
from .tir_integration import compile_tir, tune_tir
from .tune import tune_tasks
from .tune_context import TuneContext
from .utils import derived_object

post_opt = post_optimization  # the module that PostOpt is in
