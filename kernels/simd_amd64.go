package kernels

var best = plainGo
