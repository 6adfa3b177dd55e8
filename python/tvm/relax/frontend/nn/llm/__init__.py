# SPDX-License-Identifier: Apache-2.0
"""Language models: caches of attention and position embeddings."""

from . import kv_cache, position_embedding, tree_attn
