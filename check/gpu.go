package check

// gpuStages are those that look at GPUs.
func gpuStages() []Stage { return nil }
