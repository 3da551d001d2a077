// Package plain writes plain data as JSON: structs, lists and maps of numbers, words and bytes,
// which ranks send each other. JSON can express all of these, so there is no error to handle.
package plain

import "encoding/json"

// JSON is v as JSON. It panics if v is not plain.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
