# SPDX-License-Identifier: Apache-2.0
"""The kernels of caches on CPUs."""

from tvm import tir

from .attention import Kernel, Pages, Rotary, Source, dim, emit_rows, emit_sequence_of, f32, i64


def _check_heads(h_kv, h_q):
    if h_kv <= 0 or h_q % h_kv != 0:
        raise ValueError(f"attention: expected a multiple of {h_kv} query heads, got {h_q}")
    return h_q // h_kv


def _page_lists(kernel, h_kv, d, dtype, page_size, has_window, ends):
    """`ends`: how many elements an indptr has, one more than there are sequences. Without heads of
    keys, they are latent."""
    batch, pages = ends - 1, dim("max_num_pages")
    rows = (page_size, d) if h_kv is None else (2, h_kv, page_size, d)
    tensor = kernel.tensor("pages", (pages, *rows), dtype)
    indptr = kernel.tensor("page_indptr", (ends,), "int32")
    values = kernel.tensor("page_values", (dim("nnz_pages"),), "int32")
    shape = (3, batch) if has_window else (batch,)
    lengths = kernel.tensor("length_info", shape, "int32")
    return Pages(tensor, indptr, values, lengths, page_size, has_window, pages), batch


def _rotary(kernel, rope_scaling):
    mode = kernel.scalar("rotary_mode", "int32")
    scale, theta = kernel.scalar("rope_scale", "float32"), kernel.scalar("rope_theta", "float32")
    return Rotary(mode, scale, theta, rope_scaling)


def _per_group(kernel, rows, h_kv, body):
    """body(row, head of keys) for all, in parallel; rows of one head follow each other."""
    with kernel.ib.for_range(0, rows * h_kv, "task", dtype="int64", kind="parallel") as task:
        count = tir.max(rows, i64(1))
        head = kernel.ib.let("head", task // count)
        row = kernel.ib.let("row", task % count)
        body(row, head)


def _writer(kernel, output, lse, row, head, group, d_v, dtype):
    def store(g, result, sums):
        with kernel.ib.for_range(0, d_v, "e", dtype="int64", kind="vectorized") as e:
            output[row, head * group + g, e] = result(e).astype(dtype)
        lse[row, head * group + g] = sums

    return store


def attention_decode_cpu(
    num_kv_heads, num_qo_heads, head_dim, qkv_dtype, sliding_window, rope_scaling, page_size=16
):  # fmt: skip
    """One query of each sequence over its pages."""
    group = _check_heads(num_kv_heads, num_qo_heads)
    kernel, n = Kernel(), dim("batch")
    q = kernel.tensor("q", (n, num_qo_heads, head_dim), qkv_dtype)
    lists, batch = _page_lists(
        kernel, num_kv_heads, head_dim, qkv_dtype, page_size, sliding_window, dim("ends")
    )
    k_offset = kernel.tensor("k_rope_pos_offset", (batch,), "int32")
    q_position = kernel.tensor("q_rope_position", (n,), "int32")
    output = kernel.tensor("output", (n, num_qo_heads, head_dim), qkv_dtype)
    lse = kernel.tensor("lse", (n, num_qo_heads), "float32")
    rotary = _rotary(kernel, rope_scaling)
    sm_scale = kernel.scalar("sm_scale", "float32")

    def body(row, head):
        source = lists.source(kernel, row, head)
        emit_rows(
            kernel, source, None, lambda g, e: q[row, head * group + g, e],
            q_position[row], lambda j: i64(k_offset[row]) + j,
            _writer(kernel, output, lse, row, head, group, head_dim, qkv_dtype),
            group, head_dim, head_dim, sm_scale, rotary,
        )  # fmt: skip

    _per_group(kernel, n, num_kv_heads, body)
    return kernel.finish(
        "batch_decode_paged_kv_cpu" + ("_sliding_window" if sliding_window else "")
    )


def attention_prefill_cpu(
    h_kv, h_q, d, dtype, sliding_window, rope_scaling, page_size=16, *, tree=False
):  # fmt: skip
    """Queries of sequences over their pages; the last query is at the last key. A query sees what
    comes before it, or with `tree` what is above it in the tree that the last keys are."""
    group = _check_heads(h_kv, h_q)
    kernel, n = Kernel(), dim("total_len")
    q = kernel.tensor("q", (n, h_q, d), dtype)
    ends = dim("ends")
    q_indptr = kernel.tensor("q_indptr", (ends,), "int32")
    lists, batch = _page_lists(kernel, h_kv, d, dtype, page_size, sliding_window, ends)
    k_offset = kernel.tensor("k_rope_pos_offset", (batch,), "int32")
    q_position = kernel.tensor("q_rope_position", (n,), "int32")
    output = kernel.tensor("output", (n, h_q, d), dtype)
    lse = kernel.tensor("lse", (n, h_q), "float32")
    causal = None if tree else kernel.scalar("causal", "int32")
    rotary = _rotary(kernel, rope_scaling)
    sm_scale = kernel.scalar("sm_scale", "float32")
    if tree:
        nodes = dim("nnz_tree")
        tree_indptr = kernel.tensor("tree_order_indptr", (ends,), "int32")
        order = kernel.tensor("tree_order", (nodes, 2), "int32")

    def body(row, head):
        b = emit_sequence_of(kernel.ib, q_indptr, batch, row)
        source = lists.source(kernel, b, head)
        behind = kernel.ib.let("behind", i64(q_indptr[b + 1]) - 1 - row)  # queries after this one
        if tree:
            count = kernel.ib.let("nodes", i64(tree_indptr[b + 1]) - i64(tree_indptr[b]))
            base = kernel.ib.let("tree_begin", i64(tree_indptr[b]))
            mine = kernel.ib.let("mine", i64(order[_inside(base + count - 1 - behind, nodes), 0]))

            def visible(g, j):
                node = _inside(base + j - (source.count - count), nodes)
                above = tir.all(i64(order[node, 0]) <= mine, mine < i64(order[node, 1]))
                return tir.any(j < source.count - count, above)
        else:
            last = kernel.ib.let(
                "last", tir.Select(causal != 0, source.count - 1 - behind, source.count - 1)
            )
            source = source._replace(count=kernel.ib.let("seen", last + 1))
            visible = None
        emit_rows(
            kernel, source, visible, lambda g, e: q[row, head * group + g, e],
            q_position[row], lambda j: i64(k_offset[b]) + j,
            _writer(kernel, output, lse, row, head, group, d, dtype),
            group, d, d, sm_scale, rotary,
        )  # fmt: skip

    _per_group(kernel, n, h_kv, body)
    name = "tree_attn_paged_kv_cpu" if tree else "batch_prefill_paged_kv_cpu"
    return kernel.finish(name + ("_sliding_window" if sliding_window else ""))


def attention_prefill_mla_cpu(
    h_q, d_latent, d_rope, dtype, sliding_window, page_size=16
):  # fmt: skip
    """Queries of sequences over latent keys, which all heads share: a row is the value and what
    positions add to the key."""
    group = next(heads for heads in (8, 4, 2, 1) if h_q % heads == 0)
    kernel, n, ends, d = Kernel(), dim("total_len"), dim("ends"), d_latent + d_rope
    q = kernel.tensor("q", (n, h_q, d), dtype)
    q_indptr = kernel.tensor("q_indptr", (ends,), "int32")
    lists, batch = _page_lists(kernel, None, d, dtype, page_size, sliding_window, ends)
    output = kernel.tensor("output", (n, h_q, d_latent), dtype)
    lse = kernel.tensor("lse", (n, h_q), "float32")
    causal = kernel.scalar("causal", "int32")
    sm_scale = kernel.scalar("sm_scale", "float32")

    def body(row, heads):
        b = emit_sequence_of(kernel.ib, q_indptr, batch, row)
        source = lists.source(kernel, b, None)
        behind = i64(q_indptr[b + 1]) - 1 - row  # queries after this one
        seen = tir.Select(causal != 0, source.count - behind, source.count)
        source = source._replace(count=kernel.ib.let("seen", seen))
        emit_rows(
            kernel, source, None, lambda g, e: q[row, heads * group + g, e], None, None,
            _writer(kernel, output, lse, row, heads, group, d_latent, dtype),
            group, d, d_latent, sm_scale, None,
        )  # fmt: skip

    _per_group(kernel, n, h_q // group, body)
    return kernel.finish(
        "batch_prefill_paged_kv_mla_cpu" + ("_sliding_window" if sliding_window else "")
    )


def _inside(index, extent):
    return tir.max(tir.min(index, extent - 1), i64(0))


def attention_prefill_ragged_cpu(h_kv, h_q, d_qk, d_v, dtype, rope_scaling, *, tree=False):
    """Queries of sequences over keys and values that lie in rows."""
    group = _check_heads(h_kv, h_q)
    kernel, n, m = Kernel(), dim("qo_len"), dim("kv_len")
    ends = dim("ends")
    batch = ends - 1
    q = kernel.tensor("q", (n, h_q, d_qk), dtype)
    q_indptr = kernel.tensor("q_indptr", (ends,), "int32")
    k = kernel.tensor("k", (m, h_kv, d_qk), dtype)
    v = kernel.tensor("v", (m, h_kv, d_v), dtype)
    kv_indptr = kernel.tensor("kv_indptr", (ends,), "int32")
    q_position = kernel.tensor("q_rope_position", (n,), "int32")
    if tree:
        nodes = dim("tree_size")
        mn_indptr = kernel.tensor("mn_indptr", (ends,), "int32")
        mask = kernel.tensor("mask", (nodes, 2), "int32")
        k_offset = causal = None
    else:
        k_offset = kernel.tensor("k_rope_pos_offset", (batch,), "int32")
    output = kernel.tensor("output", (n, h_q, d_v), dtype)
    lse = kernel.tensor("lse", (n, h_q), "float32")
    if not tree:
        causal = kernel.scalar("causal", "int32")
    rotary = _rotary(kernel, rope_scaling)
    sm_scale = kernel.scalar("sm_scale", "float32")

    def body(row, head):
        ib = kernel.ib
        b = emit_sequence_of(ib, q_indptr, batch, row)
        begin = ib.let("begin", i64(kv_indptr[b]))
        count = ib.let("count", i64(kv_indptr[b + 1]) - begin)
        local = ib.let("local", row - i64(q_indptr[b]))
        visible, key_position = None, None
        if tree:
            base = ib.let("mask_begin", i64(mn_indptr[b]))
            mine = ib.let("mine", i64(mask[_inside(base + local, nodes), 0]))

            def visible(g, j):
                node = _inside(base + j, nodes)
                return tir.all(i64(mask[node, 0]) <= mine, mine < i64(mask[node, 1]))

            key_position = lambda j: q_position[_inside(i64(q_indptr[b]) + j, n)]
        else:
            behind = i64(q_indptr[b + 1]) - 1 - row
            count = ib.let("seen", tir.Select(causal != 0, count - behind, count))
            key_position = lambda j: i64(k_offset[b]) + j
        source = Source(
            count, lambda j: _inside(begin + j, m),
            lambda place, e: k[_inside(place, m), head, e],
            lambda place, e: v[_inside(place, m), head, e],
        )  # fmt: skip
        emit_rows(
            kernel, source, visible, lambda g, e: q[row, head * group + g, e],
            q_position[row], key_position,
            _writer(kernel, output, lse, row, head, group, d_v, dtype),
            group, d_qk, d_v, sm_scale, rotary,
        )  # fmt: skip

    _per_group(kernel, n, h_kv, body)
    return kernel.finish("tree_attn_cpu" if tree else "batch_prefill_ragged_kv_cpu")


def merge_state_inplace_cpu(v_dtype):
    """Attention over two sets of keys becomes that over both, in the first."""
    kernel = Kernel()
    n, heads, d = dim("n"), dim("num_heads"), dim("head_dim")
    v, s = kernel.tensor("v", (n, heads, d), v_dtype), kernel.tensor("s", (n, heads), "float32")
    v_other = kernel.tensor("v_other", (n, heads, d), v_dtype)
    s_other = kernel.tensor("s_other", (n, heads), "float32")
    ib = kernel.ib
    with ib.for_range(0, n, "i", dtype="int64", kind="parallel") as i:
        with ib.for_range(0, heads, "h", dtype="int64") as h:
            largest = ib.let("largest", tir.max(s[i, h], s_other[i, h]))
            own = ib.let("own", tir.exp2(s[i, h] - largest))
            other = ib.let("other", tir.exp2(s_other[i, h] - largest))
            total = ib.let("total", own + other)
            with ib.for_range(0, d, "e", dtype="int64") as e:
                merged = (f32(v[i, h, e]) * own + f32(v_other[i, h, e]) * other) / total
                v[i, h, e] = merged.astype(v_dtype)
            s[i, h] = tir.log2(total) + largest
    return kernel.finish("merge_state_inplace_cpu")


# ---- moving rows ---------------------------------------------------------------------------------
def _slot(kernel, places, i, pages, page_size):
    """(page, row) of a place that an array gives; outside is an IndexError."""
    ib = kernel.ib
    place = ib.let("place", i64(places[i]))
    with ib.if_scope(tir.any(place < 0, place >= pages * page_size)):
        kernel.raise_index_error("expected places in the cache, got %lld", place)
    return ib.let("page", _inside(place // page_size, pages)), ib.let("at", place % page_size)


def kv_cache_transpose_append(num_key_value_heads, head_dim, dtype, page_size=16):
    """Keys and values of new tokens go where the map says."""
    kernel, pages, n = Kernel(), dim("num_pages"), dim("ntoken")
    shape = (pages, 2, num_key_value_heads, page_size, head_dim)
    cache = kernel.tensor("pages", shape, dtype)
    k = kernel.tensor("k_data", (n, num_key_value_heads, head_dim), dtype)
    v = kernel.tensor("v_data", (n, num_key_value_heads, head_dim), dtype)
    places = kernel.tensor("position_map", (n,), "int32")
    ib = kernel.ib
    with ib.for_range(0, n, "i", dtype="int64") as i:
        page, at = _slot(kernel, places, i, pages, page_size)
        with ib.for_range(0, num_key_value_heads, "h", dtype="int64") as h:
            for what, data in enumerate((k, v)):
                with ib.for_range(0, head_dim, "e", dtype="int64", kind="vectorized") as e:
                    cache[page, what, h, at, e] = data[i, h, e]
    return kernel.finish("tir_kv_cache_transpose_append")


def kv_cache_transpose_append_mla(d_qk, dtype, page_size=16):
    """The same for latent keys, which are one row."""
    kernel, pages, n = Kernel(), dim("num_pages"), dim("ntoken")
    cache = kernel.tensor("pages", (pages, page_size, d_qk), dtype)
    kv = kernel.tensor("kv_data", (n, d_qk), dtype)
    places = kernel.tensor("position_map", (n,), "int32")
    ib = kernel.ib
    with ib.for_range(0, n, "i", dtype="int64") as i:
        page, at = _slot(kernel, places, i, pages, page_size)
        with ib.for_range(0, d_qk, "e", dtype="int64", kind="vectorized") as e:
            cache[page, at, e] = kv[i, e]
    return kernel.finish("tir_kv_cache_transpose_append_mla")


def kv_cache_debug_get_kv(num_hidden_layers, num_key_value_heads, head_dim, dtype, page_size=16):
    """Keys and values of tokens of one layer."""
    kernel, pages, n = Kernel(), dim("num_pages"), dim("seqlen")
    shape = (pages, 2, num_key_value_heads, page_size, head_dim)
    cache = kernel.tensor("pages", shape, dtype)
    places = kernel.tensor("position_map", (n,), "int32")
    shape = (num_hidden_layers, n, num_key_value_heads, head_dim)
    k, v = kernel.tensor("k_data", shape, dtype), kernel.tensor("v_data", shape, dtype)
    layer = kernel.scalar("layer_id", "int64")
    ib = kernel.ib
    with ib.for_range(0, n, "i", dtype="int64") as i:
        page, at = _slot(kernel, places, i, pages, page_size)
        with ib.for_range(0, num_key_value_heads, "h", dtype="int64") as h:
            for what, data in enumerate((k, v)):
                with ib.for_range(0, head_dim, "e", dtype="int64", kind="vectorized") as e:
                    data[_inside(layer, i64(num_hidden_layers)), i, h, e] = cache[
                        page, what, h, at, e
                    ]
    return kernel.finish("tir_kv_cache_debug_get_kv")


def copy_single_page_cpu(num_heads, page_size, head_dim, dtype):
    """The first rows of a page go to another one."""
    kernel, pages = Kernel(), dim("num_pages")
    cache = kernel.tensor("pages", (pages, 2, num_heads, page_size, head_dim), dtype)
    source, target = kernel.scalar("src_page_id", "int64"), kernel.scalar("tgt_page_id", "int64")
    rows = kernel.scalar("copy_length", "int64")
    ib = kernel.ib
    source, target = _inside(source, pages), _inside(target, pages)
    with ib.for_range(0, 2 * num_heads, "h", dtype="int64") as h:
        with ib.for_range(0, tir.min(rows, i64(page_size)), "r", dtype="int64") as r:
            with ib.for_range(0, head_dim, "e", dtype="int64", kind="vectorized") as e:
                at = (h // num_heads, h % num_heads, r, e)
                cache[(target, *at)] = cache[(source, *at)]
    return kernel.finish("copy_single_page_cpu")


def compact_kv_copy_cpu(num_heads, head_dim, dtype, page_size=16):
    """Rows go to places before them, sequence by sequence, in order."""
    kernel, pages, ends, total = Kernel(), dim("num_pages"), dim("ends"), dim("total_length")
    cache = kernel.tensor("pages", (pages, 2, num_heads, page_size, head_dim), dtype)
    indptr = kernel.tensor("copy_length_indptr", (ends,), "int32")
    moves = kernel.tensor("copy_src_dst_pos", (2, total), "int32")
    count = kernel.scalar("batch_size", "int64")
    ib = kernel.ib
    with ib.for_range(0, tir.min(count, ends - 1), "b", dtype="int64") as b:
        first = ib.let("first", i64(indptr[b]))
        with ib.for_range(0, i64(indptr[b + 1]) - first, "i", dtype="int64") as i:
            move = ib.let("move", _inside(first + i, total))
            old, new = (ib.let(name, i64(moves[w, move])) for w, name in enumerate(("old", "new")))
            with ib.for_range(0, 2 * num_heads, "h", dtype="int64") as h:
                with ib.for_range(0, head_dim, "e", dtype="int64", kind="vectorized") as e:

                    def at(place, h=h, e=e):
                        page = _inside(place // page_size, pages)
                        return (page, h // num_heads, h % num_heads, place % page_size, e)

                    cache[at(new)] = cache[at(old)]
    return kernel.finish("compact_kv_copy_cpu")
