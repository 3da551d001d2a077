package simt

// merge lets registers share slots; see later.
func merge(c *code, first int32) {}
