"""ONNX Runtime's attention operators of com.microsoft on the CPU, each in a model of one node.

MultiHeadAttention serves full prefill, GroupQueryAttention causal prefill and decode. Inputs and
outputs are bound once; in decode past and present are one buffer, so that nothing is copied.
"""

import os

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from problem_data import UnsupportedProblem, one_row, random_array, relative_error, uniform_lengths
from stopwatch import seconds_of

NAME = "onnxruntime"
VERSION = onnxruntime.__version__

ELEMENT = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# The CPU kernels have no bfloat16: the fastest type that the operator supports replaces it, and the
# table names it.
SUBSTITUTES = {"fp32": ["fp32"], "bf16": ["bf16", "fp16", "fp32"]}
TRIAL_RUNS = 3


def one_node_model(operator, element, inputs, outputs, **attributes):
    def info(name, kind=element):
        return helper.make_tensor_value_info(name, kind, None)

    node = helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)
    integers = ("seqlens_k", "total_sequence_length")
    graph = helper.make_graph(
        [node],
        "attention",
        [info(i, TensorProto.INT32 if i in integers else element) for i in inputs if i],
        [info(o) for o in outputs],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


class Peer:
    def __init__(self, threads):
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        cpus = [int(cpu) for cpu in os.environ["PEER_CPUS"].split(",")]
        if threads > 1:  # the calling thread is the first worker; CPUs count from 1 here
            affinities = ";".join(str(cpu + 1) for cpu in cpus[1:threads])
            self.options.add_session_config_entry("session.intra_op_thread_affinities", affinities)

    def prepare(self, problem):
        times, reasons = {}, []
        for dtype in SUBSTITUTES[problem["dtype"]]:
            try:
                report = self.prepare_as(problem, dtype)
                times[dtype] = min(self.run(TRIAL_RUNS))
            except UnsupportedProblem:
                raise
            except Exception as error:  # this version has no kernel for the type
                reasons.append(f"{dtype}: {str(error).splitlines()[0][:160]}")
        if not times:
            raise UnsupportedProblem("; ".join(reasons))
        best = min(times, key=times.get)
        return report if report["dtype"] == best else self.prepare_as(problem, best)

    def prepare_as(self, problem, dtype):
        batch, seqlen_q, seqlen_kv = uniform_lengths(problem)
        heads, kv_heads, dim = problem["q-heads"], problem["kv-heads"], problem["head-dim"]
        is_decode = seqlen_q == 1
        if problem["mask"] == "none" and not is_decode:
            if heads != kv_heads:
                raise UnsupportedProblem("MultiHeadAttention has as many key heads as query heads")
            return self.prepare_full(batch, seqlen_q, seqlen_kv, heads, dim, dtype)
        if not is_decode and seqlen_q != seqlen_kv:
            raise UnsupportedProblem("chunked prefill")
        return self.prepare_grouped(batch, seqlen_q, seqlen_kv, heads, kv_heads, dim, dtype)

    def prepare_full(self, batch, seqlen_q, seqlen_kv, heads, dim, dtype):
        q = random_array((batch, seqlen_q, heads * dim), dtype, 1)
        k = random_array((batch, seqlen_kv, heads * dim), dtype, 2)
        v = random_array((batch, seqlen_kv, heads * dim), dtype, 3)
        model = one_node_model(
            "MultiHeadAttention",
            ELEMENT[dtype],
            ["query", "key", "value"],
            ["output"],
            num_heads=heads,
        )
        out = np.empty_like(q)
        self.bind(model, dtype, {"query": q, "key": k, "value": v}, {"output": out})
        self.call()
        expected = one_row(q[-1, -1, -dim:], k[-1, :, -dim:], v[-1, :, -dim:])
        return {
            "call": "MultiHeadAttention",
            "dtype": dtype,
            "max_relative_error": relative_error(out[-1, -1, -dim:], expected),
        }

    def prepare_grouped(self, batch, seqlen_q, seqlen_kv, heads, kv_heads, dim, dtype):
        q = random_array((batch, seqlen_q, heads * dim), dtype, 1)
        k = random_array((batch, seqlen_q, kv_heads * dim), dtype, 2)
        v = random_array((batch, seqlen_q, kv_heads * dim), dtype, 3)
        past_k = random_array((batch, kv_heads, seqlen_kv, dim), dtype, 4)
        past_v = random_array((batch, kv_heads, seqlen_kv, dim), dtype, 5)
        is_decode = seqlen_q < seqlen_kv
        inputs = [
            "query",
            "key",
            "value",
            "past_key",
            "past_value",
            "seqlens_k",
            "total_sequence_length",
        ]
        if not is_decode:
            inputs[3:5] = ["", ""]
        outputs = ["output", "present_key", "present_value"]
        model = one_node_model(
            "GroupQueryAttention",
            ELEMENT[dtype],
            inputs,
            outputs,
            num_heads=heads,
            kv_num_heads=kv_heads,
        )
        out = np.empty_like(q)
        feeds = {"query": q, "key": k, "value": v}
        if is_decode:
            feeds |= {"past_key": past_k, "past_value": past_v}
        feeds["seqlens_k"] = np.full(batch, seqlen_kv - 1, np.int32)
        feeds["total_sequence_length"] = np.array(seqlen_kv, np.int32)
        self.bind(
            model, dtype, feeds, {"output": out, "present_key": past_k, "present_value": past_v}
        )
        self.call()
        if is_decode and not np.array_equal(past_k[-1, -1, -1], k[-1, -1, -dim:]):
            raise RuntimeError("the new token did not arrive in the shared buffer")
        expected = one_row(q[-1, -1, -dim:], past_k[-1, -1], past_v[-1, -1])
        return {
            "call": "GroupQueryAttention"
            + (", past and present share a buffer" if is_decode else ""),
            "dtype": dtype,
            "max_relative_error": relative_error(out[-1, -1, -dim:], expected),
        }

    def bind(self, model, dtype, inputs, outputs):
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(model, self.options, providers=providers)
        self.binding = self.session.io_binding()
        self.arrays = [*inputs.values(), *outputs.values()]  # kept alive
        for bind, arrays in (
            (self.binding.bind_input, inputs),
            (self.binding.bind_output, outputs),
        ):
            for name, array in arrays.items():
                kind = ELEMENT["bf16"] if array.dtype == np.uint16 else array.dtype
                bind(name, "cpu", 0, kind, array.shape, array.ctypes.data)
        self.call = lambda: self.session.run_with_iobinding(self.binding)

    def run(self, iterations):
        return [seconds_of(self.call) for _ in range(iterations)]
