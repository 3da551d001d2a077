"""SGLang's Llama, with Ringo's norms. SGLang goes by the class's name, which is that of its own."""

from sglang.srt.distributed import get_tp_group
from sglang.srt.models import llama

from .. import install


class LlamaForCausalLM(llama.LlamaForCausalLM):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        install(self, get_tp_group().cpu_group)


EntryClass = LlamaForCausalLM
