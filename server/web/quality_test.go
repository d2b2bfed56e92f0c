package web_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// maxWeight bounds what a first visit loads, in bytes on the wire, heads of
// replies included: 50 KB at the time of writing. wavesurfer.js comes later, with the first
// song.
const maxWeight = 60_000

// TestWeight measures what a first visit loads, and how soon the form can be used.
func TestWeight(t *testing.T) {
	_, address := start(t, 1, 4)
	v := visit(t, address, 1280, 900)
	v.until("the page", `document.documentElement.dataset.ready`)
	// Once more, with what the server compresses at its first visit compressed.
	command(v, network.ClearBrowserCache, cdp.Empty{})
	v.mu.Lock()
	clear(v.bytes)
	v.mu.Unlock()
	v.do(chromedp.Reload())
	v.until("the page", `document.documentElement.dataset.ready`)
	usable := eval[float64](v, `performance.getEntriesByName('usable')[0].startTime`)
	v.mu.Lock()
	weight, files := 0.0, len(v.bytes)
	for _, n := range v.bytes {
		weight += n
	}
	v.mu.Unlock()
	t.Logf("%d replies, %.0f bytes; usable after %.0f ms", files, weight, usable)
	if files < 15 || weight > maxWeight {
		t.Errorf("%d replies of %.0f bytes, want at most %d", files, weight, maxWeight)
	}
	v.clean()
}

// states leads a visitor through the states of the page and calls show in each.
func (v *visitor) states(g *gate, show func(name string)) {
	v.t.Helper()
	v.until("the page", `document.documentElement.dataset.ready`)
	show("empty")
	eval[bool](v, `(() => { const s = document.getElementById('examples'); s.value = '0'; s.dispatchEvent(new Event('change')); return true; })()`)
	v.until("the estimate", `/rule of thumb/.test(document.querySelector('.meter').innerText)`)
	show("example")
	v.write(caption, "[intro]\n[verse] la la la\n[chorus]\n[outro]", 999, 16)
	v.click("Make the song")
	v.until("the problem", `document.querySelector('.problem') && !document.querySelector('.errors').hidden`)
	show("problems")
	v.fill("audio_duration", "60")
	v.click("Make the song")
	v.status("running")
	v.until("the start", `/about/.test(document.querySelector('.facts').innerText)`)
	show("composing")
	v.click("Make the song")
	v.status("queued")
	show("waiting")
	v.click("Cancel")
	v.status("cancelled")
	v.do(chromedp.Click(chromedp.CSS(`.songs li:last-child button`)))
	v.until("the wave", `document.querySelector('.wave div')?.shadowRoot?.querySelector('canvas')`)
	show("listening")
	g.cut()
	v.until("that the connection is lost", `document.querySelector('.lost:not([hidden])')`)
	show("lost")
	g.mend()
	v.status("done")
	v.click("Spectrogram")
	v.until("the spectrogram", `document.querySelector('.spectrogram canvas')`)
	v.click("Loop starts here")
	eval[bool](v, `document.querySelector('.wave').focus(), true`)
	v.do(chromedp.KeyEvent("l"), chromedp.KeyEvent("l"))
	v.until("a loop", `document.querySelector('.loop-range').textContent`)
	show("done")
	v.click("Vary the sound")
	v.until("the dialog", `document.querySelector('dialog[open]')`)
	show("vary")
	v.fill("vary-steps", "2")
	v.fill("vary-guidance", "1.2")
	v.click("Render")
	v.until("another song", `document.querySelectorAll('.songs li').length === 3`)
	v.status("done")
	v.click("Compare")
	v.until("the comparison", `document.querySelector('dialog[open] .transport .play:not(:disabled)')`)
	show("compare")
	v.click("Close")
	v.click("System")
	v.until("the figures", `/GiB/.test(document.querySelector('dialog[open]')?.innerText)`)
	show("system")
	v.click("Close")
	v.click("Licence and acceptable use")
	v.until("the notice", `document.querySelector('dialog[open]')`)
	show("notice")
	v.click("Close")
	g.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/music/jobs" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"full","type":"rate_limit_error","code":"queue_full","param":null,"problems":[]}}`)
		return true
	})
	v.click("Make the song")
	v.until("that the queue is full", `/queue is full/.test(document.querySelector('.errors').innerText)`)
	show("full")
	g.instead(nil)
}

// dark sets the colours that the browser's owner likes.
func (v *visitor) dark(yes bool) {
	v.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[yes]
	command(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// TestAccessible holds every state of the page, light and dark, against axe-core's rules
// of WCAG 2.2 AA.
func TestAccessible(t *testing.T) {
	needBrowser(t)
	path := os.Getenv("SKALD_TEST_AXE")
	if path == "" {
		t.Skip("SKALD_TEST_AXE is not set: no state of the page is held against the rules of WCAG; it names the file axe.min.js of the npm package axe-core")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, address := start(t, 1, 4)
	v := visit(t, address, 1280, 900)
	checked := 0
	v.states(g, func(name string) {
		for _, dark := range []bool{false, true} {
			v.dark(dark)
			checked++
			if !eval[bool](v, `Boolean(window.axe)`) {
				eval[bool](v, string(axe)+";true")
			}
			for _, found := range eval[[]string](v, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations']})
				.then((r) => r.violations.map((x) => x.impact + ' ' + x.id + ': ' + x.nodes.map((n) => n.target + ' ' + n.failureSummary).join(' | ')))`) {
				t.Errorf("%s, dark %v: %.600s", name, dark, found)
			}
		}
	})
	t.Logf("%d states without findings, if none is named", checked)
}

// TestScreens writes a picture of every state, for docs/web.md.
func TestScreens(t *testing.T) {
	needBrowser(t)
	folder := os.Getenv("SKALD_WEB_SCREENS")
	if folder == "" {
		t.Skip("SKALD_WEB_SCREENS is not set: no pictures of the page's states are written; it names a folder for them")
	}
	g, address := start(t, 1, 4)
	v := visit(t, address, 1280, 860)
	v.dark(false)
	take := func(name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(v.ctx, patience)
		defer cancel()
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".png"), shrink(t, picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v.states(g, func(name string) {
		take(name)
		if name == "done" || name == "example" {
			v.dark(true)
			take(name + "-dark")
			v.dark(false)
		}
		if name == "example" || name == "listening" || name == "done" {
			command(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 780, DeviceScaleFactor: 1, Mobile: true})
			eval[bool](v, `scrollTo(0, 0), true`)
			take(name + "-phone")
			command(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 860, DeviceScaleFactor: 1})
			time.Sleep(time.Second) // until everything is drawn anew, for the next picture
		}
	})
}

// shrink gives a picture the 256 colours that it has most of.
func shrink(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	area := full.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	common := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	small := image.NewPaletted(area, common[:min(len(common), 256)])
	draw.Draw(small, area, full, area.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
