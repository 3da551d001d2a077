"""Models that SGLang takes in place of its own (SGLANG_EXTERNAL_MODEL_PACKAGE)."""
