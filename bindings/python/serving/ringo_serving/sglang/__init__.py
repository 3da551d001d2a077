"""Models that SGLang loads in place of its own (SGLANG_EXTERNAL_MODEL_PACKAGE)."""
