"""Tensor-parallel Llama of vLLM and SGLang: each all-reduce, with the residual and the RMSNorm after it, is one kernel of
Ringo, and a token's bits do not depend on the batch. Neither engine is changed.

    pip install bindings/python bindings/python/serving
    vllm serve MODEL --tensor-parallel-size 2                     VLLM_PLUGINS=ringo, or without it, loads this
    SGLANG_EXTERNAL_MODEL_PACKAGE=ringo_serving.sglang python -m sglang.launch_server --model-path MODEL --tp 2

install works for any model whose layers have these names: self_attn.o_proj and mlp.down_proj, which add the ranks' parts
(reduce_results), input_layernorm and post_attention_layernorm, which are called with a residual, and the last norm."""

import ringo_norm


def register():
    """vLLM calls this in each of its processes, before it loads a model."""
    from vllm import ModelRegistry

    ModelRegistry.register_model("LlamaForCausalLM", "ringo_serving.vllm:RingoLlamaForCausalLM")


def install(model, group):
    """Moves the all-reduces of a model from its products to its norms. All ranks of group, a process group of torch.distributed
    that can send objects, call this together. Returns the communicator, which the model keeps."""
    comm = ringo_norm.open(group)
    if comm.size == 1:
        return comm
    norms = [model.model.norm]
    for layer in model.model.layers:
        if not hasattr(layer, "self_attn"):
            raise ValueError("ringo_serving: this is a stage of a pipeline, whose next stage would get parts of sums")
        for product in (layer.self_attn.o_proj, layer.mlp.down_proj):
            if not product.reduce_results:
                raise ValueError("ringo_serving: a product of this model does not add the ranks' parts")
            product.reduce_results = False
        norms += [layer.input_layernorm, layer.post_attention_layernorm]
    for norm in norms:
        norm.forward = _forward(norm, comm)
    model.ringo_comm = comm
    return comm


def _forward(norm, comm):
    alone = norm.forward

    def forward(x, residual=None):
        if residual is None:  # the first norm, of embeddings, has no sum before it
            return alone(x)
        return comm.all_reduce_norm(x, residual, norm.weight, norm.variance_epsilon)

    return forward
