package check

import "fmt"

// largestPacket is the quantity of a gap: the largest size that passes, and the smallest that vanishes as text.
const largestPacket = "largest packet"

// gaps blames black holes.
func (j *netJudge) gaps() {
	j.plain(&fault{severity: broken, code: "black-hole", quantity: "bandwidth", whole: "large packets vanish", again: true,
		weight: func(w *way) float64 { return 45 },
		text: func(w *way, _ *cause) string {
			return fmt.Sprintf("MTU: packets of more than %d bytes vanish (those of %d do), and smaller ones pass", w.gap.Passes,
				w.gap.Vanishes)
		}}, func(w *way) bool { return w.gap.ill() })
}
