"""pip install . : vLLM and SGLang find ringo_serving by their own plugin points. ringo_norm.py comes with torch_ringo, the folder above."""

from setuptools import setup

setup(
    name="ringo_serving", version="0.2.0", packages=["ringo_serving", "ringo_serving.sglang"], python_requires=">=3.9",
    install_requires=["torch_ringo"], description="Tensor-parallel Llama of vLLM and SGLang with Ringo's norms",
    entry_points={"vllm.general_plugins": ["ringo = ringo_serving:register"]},
)
