package play_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// A browser is a headless Chromium, which the test controls by its DevTools protocol over a pipe.
type browser struct {
	t       *testing.T
	ctx     context.Context
	out     *os.File
	in      chan message
	session string
	last    int
	faults  []string // errors on the page's console, and requests of the page
}

// A message is an answer (ID) or an event (Method).
type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// open starts Chromium, or skips the test where there is none, unless REQUIRE has chromium.
func open(t *testing.T) *browser {
	path := need.Tool(t, "chromium")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	theirIn, out, err := os.Pipe()
	require.NoError(t, err)
	in, theirOut, err := os.Pipe()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--mute-audio", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, ctx: ctx, out: out, in: make(chan message, 1000)}
	go func() {
		defer close(b.in)
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(line[:len(line)-1], &m) == nil {
				b.in <- m
			}
		}
	}()
	t.Cleanup(func() {
		b.session = ""
		b.send("Browser.close", nil)
		go func() { // lets the reader end
			for range b.in {
			}
		}()
		cmd.Wait()
		out.Close()
		in.Close()
		os.RemoveAll(dir)
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) send(method string, params any) int {
	b.last++
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{b.last, method, params, b.session})
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	if err != nil {
		b.t.Logf("%s: %v", method, err)
	}
	return b.last
}

// call sends a command, waits for its answer and notes faults meanwhile.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	id := b.send(method, params)
	for {
		m := b.receive(method)
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			require.NoError(b.t, json.Unmarshal(m.Result, result))
		}
		return
	}
}

func (b *browser) receive(why string) message {
	b.t.Helper()
	select {
	case m, ok := <-b.in:
		if !ok {
			b.t.Fatalf("%s: chromium has ended", why)
		}
		switch m.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded":
			b.faults = append(b.faults, string(m.Params))
		case "Runtime.consoleAPICalled":
			var p struct{ Type string }
			if json.Unmarshal(m.Params, &p); p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
				b.faults = append(b.faults, string(m.Params))
			}
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if json.Unmarshal(m.Params, &p); !strings.HasPrefix(p.Request.URL, "data:") {
				b.faults = append(b.faults, "request of "+p.Request.URL)
			}
		}
		return m
	case <-b.ctx.Done():
		b.t.Fatalf("%s: no answer from chromium: %v", why, b.ctx.Err())
	}
	panic("unreachable")
}

// eval is the value of an expression in the page, awaited if it is a promise.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	if len(r.Result.Value) > 0 {
		require.NoError(b.t, json.Unmarshal(r.Result.Value, &value), expression)
	}
	return value
}

// until waits in the page for a condition, which it evaluates every 10 ms.
func (b *browser) until(condition string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`new Promise(done => { const look = () => (%s) ? done(true) : setTimeout(look, 10); look(); })`, condition))
}

// press presses and releases a key, as a keyboard does.
func (b *browser) press(key, code string) {
	b.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "code": code, "text": text}, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": code}, nil)
}

// window sets the size of the window in pixels, the color scheme ("light", "dark") and whether to reduce motion.
func (b *browser) window(width, height int, scheme, motion string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion},
	}}, nil)
}

// visit opens an address and waits until the page shows its first verdict.
func (b *browser) visit(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	b.until(`location.href === "about:blank" && document.readyState === "complete"`)
	b.faults = nil
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until(`location.href !== "about:blank" && document.readyState === "complete" && document.querySelector("#verdict")?.className`)
}

// picture writes the page as PNG, down to the bottom of the element that the selector end finds.
func (b *browser) picture(file, end string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": map[string]any{
		"x": 0, "y": 0, "scale": 1, "width": eval[float64](b, "innerWidth"),
		"height": 8 + eval[float64](b, fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().bottom + scrollY",
			end)),
	}}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(file, png, 0o644))
}
