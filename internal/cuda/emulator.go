package cuda

// Emulator makes an emulated driver of so many devices, faster if unchecked. Package internal/emu/cudaemu sets it when
// it is linked, as drivers of database/sql do; else it is nil, and the program is without the emulator's 30,000 lines.
var Emulator func(devices int, seed uint64, unchecked bool) (Driver, error)
