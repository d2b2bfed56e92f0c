package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is for what a loaded machine must get done at some time; no test waits for as
// long on purpose.
const patience = 3 * time.Minute

// needBrowser skips a test unless a browser was asked for.
func needBrowser(t *testing.T) string {
	t.Helper()
	if os.Getenv("SKALD_TEST_BROWSER") == "" {
		t.Skip("SKALD_TEST_BROWSER is not set: nothing of the page is tried in a browser; set it to 1, with Chromium installed")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("SKALD_TEST_BROWSER is set and there is no Chromium")
	return ""
}

// visitor is a person at a browser, and what the browser noticed meanwhile.
type visitor struct {
	t         *testing.T
	ctx       context.Context
	origin    string
	downloads string

	mu       sync.Mutex
	requests []string
	bytes    map[network.RequestID]float64
	troubles []string
}

// visit opens a browser of its own on a site.
func visit(t *testing.T, site string, width, height int64) *visitor {
	t.Helper()
	path := needBrowser(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(int(width), int(height)),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("mute-audio", false))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	v := &visitor{t: t, ctx: ctx, origin: strings.TrimSuffix(site, "/"), downloads: t.TempDir(), bytes: map[network.RequestID]float64{}}
	if err := chromedp.Listen(ctx, v.notice); err != nil {
		t.Fatal(err)
	}
	command(v, network.Enable, network.EnableParams{})
	command(v, runtime.Enable, cdp.Empty{})
	command(v, log.Enable, cdp.Empty{})
	command(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	if _, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: v.downloads}); err != nil {
		t.Fatal(err)
	}
	v.do(chromedp.Navigate(site))
	return v
}

// command gives the browser's page an order of the protocol.
func command[P, R any](v *visitor, c cdp.Command[P, R], params P) R {
	v.t.Helper()
	reply, err := chromedp.Call(v.ctx, c, params)
	if err != nil {
		v.t.Fatal(err)
	}
	return reply
}

// notice keeps what went over the wire and what the browser complains of.
func (v *visitor) notice(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests = append(v.requests, e.Request.URL)
	case *network.EventLoadingFinished:
		v.bytes[e.RequestID] = e.EncodedDataLength
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		v.troubles = append(v.troubles, what)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || e.Entry.Source == log.EntrySourceViolation || e.Entry.Source == log.EntrySourceJavascript {
			v.troubles = append(v.troubles, e.Entry.Text)
		}
	}
}

// do runs actions, which must all succeed.
func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		v.t.Fatalf("the browser: %v\n%s", err, v.state())
	}
}

// state is what a person would see, for messages of failures.
func (v *visitor) state() string {
	ctx, cancel := context.WithTimeout(v.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("page:\n%s\ntroubles: %q", text, v.troubles)
}

// eval returns the value of an expression of the page.
func eval[T any](v *visitor, expression string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", expression, err, v.state())
	}
	return out
}

// until waits until an expression of the page is true.
func (v *visitor) until(what, expression string) {
	v.t.Helper()
	for end := time.Now().Add(patience); ; {
		if eval[bool](v, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("%s: not within %v\n%s", what, patience, v.state())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// button is an expression for the visible button of a name, as a person or a screen
// reader calls it.
func button(name string) string {
	quoted, _ := json.Marshal(name)
	return fmt.Sprintf(`[...document.querySelectorAll('dialog[open] button, button')].find((b) => (b.getAttribute('aria-label') ?? b.textContent).trim() === %s && b.offsetParent)`, quoted)
}

// click presses a button with the mouse.
func (v *visitor) click(name string) {
	v.t.Helper()
	v.until("button "+name, button(name)+` && !(`+button(name)+`).disabled`)
	at := eval[[]float64](v, `(() => { const b = `+button(name)+`; b.scrollIntoView({block: 'center'}); const r = b.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	v.do(chromedp.MouseClickXY(at[0], at[1]))
}

// fill replaces what a field holds, by typing.
func (v *visitor) fill(id, text string) {
	v.t.Helper()
	eval[bool](v, fmt.Sprintf(`document.getElementById(%q).focus(), document.getElementById(%q).select(), true`, id, id))
	v.do(chromedp.KeyEvent(kb.Delete))
	v.enter(text)
}

// enter enters a text as an input method does, which no key of a layout limits.
func (v *visitor) enter(text string) {
	v.t.Helper()
	command(v, input.InsertText, input.InsertTextParams{Text: text})
}

// write fills the form for a song of the demonstration model.
func (v *visitor) write(caption, lyrics string, seconds, steps int) {
	v.t.Helper()
	v.until("the page", `document.documentElement.dataset.ready`)
	eval[bool](v, `document.querySelector('#write details').open = true`)
	v.do(chromedp.Click(chromedp.CSS(`input[value=free]`)))
	v.fill("free", caption)
	v.fill("input", lyrics)
	v.fill("audio_duration", fmt.Sprint(seconds))
	v.fill("num_inference_steps", fmt.Sprint(steps))
}

// status waits until the song that is shown has a status.
func (v *visitor) status(name string) {
	v.t.Helper()
	v.until("a song that is "+name, fmt.Sprintf(`document.querySelector('.song .chip')?.dataset.status === %q`, name))
}

// song is the id of the song that is shown.
func (v *visitor) song() string {
	v.t.Helper()
	v.until("a song", `location.hash.includes('song=')`)
	return eval[string](v, `new URLSearchParams(location.hash.slice(1)).get('song')`)
}

// clean fails for whatever the browser complained of, and for every request to another
// place than the site.
func (v *visitor) clean() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, trouble := range v.troubles {
		v.t.Error("the browser says:", trouble)
	}
	for _, r := range v.requests {
		u, err := url.Parse(r)
		if err != nil || u.Scheme != "blob" && u.Scheme != "data" && u.Scheme+"://"+u.Host != v.origin {
			v.t.Errorf("a request to %s", r)
		}
	}
	if len(v.requests) == 0 {
		v.t.Error("no request was seen")
	}
}

// gate stands before a server: it can cut all connections, and answer in its place.
type gate struct {
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	answer func(w http.ResponseWriter, r *http.Request) bool // true: it did
	next   http.Handler
}

type gateListener struct {
	net.Listener
	*gate
}

func newGate(next http.Handler) (*gate, *httptest.Server) {
	g := &gate{conns: map[net.Conn]bool{}, next: next}
	ts := httptest.NewUnstartedServer(g)
	ts.Listener = gateListener{ts.Listener, g}
	ts.Start()
	return g, ts
}

func (l gateListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if !l.closed {
			l.conns[c] = true
			l.mu.Unlock()
			return c, nil
		}
		l.mu.Unlock()
		c.Close()
	}
}

// cut breaks every connection and lets none in; mend lets them in again.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.conns {
		c.Close()
	}
	clear(g.conns)
}

func (g *gate) mend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

func (g *gate) instead(f func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = f
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	answer := g.answer
	g.mu.Unlock()
	if answer == nil || !answer(w, r) {
		g.next.ServeHTTP(w, r)
	}
}
