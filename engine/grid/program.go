package grid

// A Program is the column of one rank in a schedule, on its device.
type Program struct{}
