"""SGLang's Llama with Ringo's norms. SGLang finds models by the class's name, so the name is the same as SGLang's."""

from sglang.srt.distributed import get_tp_group
from sglang.srt.models import llama

from .. import install


class LlamaForCausalLM(llama.LlamaForCausalLM):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        install(self, get_tp_group().cpu_group)


EntryClass = LlamaForCausalLM
