"""vLLM's Llama with Ringo's norms."""

from vllm.distributed import get_tp_group
from vllm.model_executor.models.llama import LlamaForCausalLM

from . import install


class RingoLlamaForCausalLM(LlamaForCausalLM):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        install(self, get_tp_group().cpu_group)
