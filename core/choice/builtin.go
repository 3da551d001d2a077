package choice

import (
	"embed"
	"sync"
)

// Plans that were measured, as files of "ringo tune".
//
//go:embed plans/*.plan
var planFiles embed.FS

// builtinPlans are the plans that come with the program.
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
