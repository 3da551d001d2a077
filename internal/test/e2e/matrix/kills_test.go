package matrix

func killMain() {}
