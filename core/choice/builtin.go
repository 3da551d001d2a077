package choice

import (
	"embed"
	"sync"
)

// planFiles are the plans that come with the program, as "ringo tune" writes them.
//
//go:embed plans/*.plan
var planFiles embed.FS

// builtinPlans parses planFiles, once.
var builtinPlans = sync.OnceValue(func() (all []*Plan) {
	files, err := planFiles.ReadDir("plans")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		text, err := planFiles.ReadFile("plans/" + f.Name())
		if err != nil {
			panic(err)
		}
		p, err := ParsePlan("built-in plan "+f.Name(), string(text))
		if err != nil {
			panic(err) // a test reads them all
		}
		all = append(all, p)
	}
	return all
})
