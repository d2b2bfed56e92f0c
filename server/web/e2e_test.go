package web_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"skald/host/engine"
	"skald/server"
	"skald/server/jobs"
)

// start serves the built-in model and its jobs behind a gate.
func start(t *testing.T, songs, waiting int) (g *gate, address string) {
	t.Helper()
	needBrowser(t)
	store, err := jobs.Open(t.Context(), jobs.Options{Dir: t.TempDir(), MaxJobs: waiting, Sync: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Jobs: store, WorkerName: "test", Version: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Songs: songs})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	g, ts := newGate(s.Handler())
	t.Cleanup(func() {
		g.cut()
		ts.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, ts.URL + "/"
}

const (
	lyrics  = "[intro]\n[verse]\n[chorus]\n[outro]"
	caption = "fast, happy piano, pad, drums"
)

// TestListenWhileItIsMade writes a song, starts it, hears it before it is done, ends it
// early, finds it again after a reload in the middle, varies it and downloads it.
func TestListenWhileItIsMade(t *testing.T) {
	_, address := start(t, 1, 4)
	v := visit(t, address, 1280, 900)
	// Many sections: the model goes on composing while the first ones are heard.
	v.write(caption, strings.Repeat("[verse]\nla la la\n", 40), 240, 4)
	v.until("the count of tokens", `/\d+ of [\d,]+ prompt tokens/.test(document.querySelector('.meter').innerText)`)
	v.click("Make the song")
	v.status("running")
	id := v.song()
	v.until("time left", `/about/.test(document.querySelector('.facts').innerText)`)

	v.hear("running")
	v.until("the wave", `document.querySelector('.wave div')?.shadowRoot?.querySelector('canvas')`)

	v.do(chromedp.Reload())
	v.until("the same song after a reload", fmt.Sprintf(`document.documentElement.dataset.ready && location.hash.includes(%q)`, id))
	v.status("running")
	v.click("Finish here")
	v.click("Play")
	v.hear("")
	v.status("done")
	v.until("who ended it", `/you/.test(document.querySelector('.facts').innerText)`)
	v.click("Pause")

	v.click("Vary the sound")
	v.until("the dialog", `document.querySelector('dialog[open] #vary-steps')`)
	v.fill("vary-steps", "2")
	v.click("Render")
	v.until("another song", fmt.Sprintf(`!location.hash.includes(%q)`, id))
	v.status("done")
	if n := eval[int](v, `document.querySelectorAll('.songs li').length`); n != 2 {
		t.Errorf("%d songs are listed, want 2", n)
	}
	type facts struct {
		Frames  int     `json:"frames"`
		Seconds float64 `json:"audio_seconds"`
		SHA     string  `json:"pcm_sha256"`
		Request struct {
			Steps int `json:"num_inference_steps"`
		} `json:"request"`
	}
	first := eval[facts](v, fmt.Sprintf(`fetch('v1/music/jobs/%s').then((r) => r.json())`, id))
	second := eval[facts](v, fmt.Sprintf(`fetch('v1/music/jobs/%s').then((r) => r.json())`, v.song()))
	if first.Frames != second.Frames || first.Seconds != second.Seconds || first.SHA == second.SHA || second.Request.Steps != 2 {
		t.Errorf("%+v was varied to %+v", first, second)
	}
	if first.Frames >= 25*240 {
		t.Errorf("the song was not ended early: %d frames", first.Frames)
	}

	v.downloadAll()
	v.click("Compare")
	v.until("the comparison", `document.querySelector('dialog[open] .transport .play:not(:disabled)')`)
	v.click("Hear B")
	v.until("steps that differ", `/Steps\s+2\s+4/.test(document.querySelector('dialog[open] table').innerText)`)
	v.click("Close")
	v.click("Delete")
	v.until("the question", `document.querySelector('dialog[open] .danger')`)
	v.do(chromedp.Click(chromedp.CSS(`dialog[open] button.danger`)))
	v.until("one song less", `document.querySelectorAll('.songs li').length === 1`)
	v.clean()
}

// hear checks that the player's time goes on and that what it plays is not silent, while
// the song has a status, or any for "".
func (v *visitor) hear(status string) {
	v.t.Helper()
	v.until("sound", `Number(document.querySelector('.player').dataset.level) > 0.01`)
	const now = `Number(document.querySelector('.wave').getAttribute('aria-valuenow'))`
	from := eval[int](v, now)
	v.until("time that goes on", fmt.Sprintf(`%s > %d`, now, from))
	if got := eval[string](v, `document.querySelector('.song .chip').dataset.status`); status != "" && got != status {
		v.t.Fatalf("it was heard only when the song was %s, want %s", got, status)
	}
}

// downloadAll takes the song in every format and looks at the files.
func (v *visitor) downloadAll() {
	v.t.Helper()
	magic := map[string]string{"wav": "RIFF", "flac": "fLaC", "mp3": "ID3", "opus": "OggS", "pcm": ""}
	formats := eval[[]string](v, `[...document.querySelectorAll('.downloads button')].map((b) => b.dataset.format)`)
	if len(formats) != len(magic) {
		v.t.Errorf("formats %v", formats)
	}
	for _, format := range formats {
		v.click("Download as " + format)
		v.until("the download of "+format, fmt.Sprintf(`[...document.querySelectorAll('.note')].some((n) => n.textContent.includes('.%s is in your downloads'))`, format))
		var data []byte
		for end := time.Now().Add(patience); len(data) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			names, _ := filepath.Glob(filepath.Join(v.downloads, "*."+format))
			if len(names) == 1 {
				data, _ = os.ReadFile(names[0])
			}
		}
		if len(data) < 10_000 || !strings.HasPrefix(string(data), magic[format]) {
			v.t.Errorf("%s: %d bytes that begin with %.8q", format, len(data), data)
		}
	}
	v.t.Logf("downloaded %v", formats)
}

// TestCancelAndQueue fills the queue: one song is made, one waits, and the third is
// refused with words that help; then both are cancelled.
func TestCancelAndQueue(t *testing.T) {
	_, address := start(t, 1, 1)
	v := visit(t, address, 1280, 900)
	v.write(caption, lyrics, 60, 200)
	v.click("Make the song")
	v.status("running")
	v.click("Make the song")
	v.status("queued")
	v.until("the place in the queue", `/Place 1 in the queue/.test(document.querySelector('.facts').innerText)`)
	v.click("Make the song")
	v.until("that the queue is full", `/queue is full.*words are kept/s.test(document.querySelector('.errors').innerText)`)
	if words := eval[string](v, `document.getElementById('input').value`); words != lyrics {
		t.Errorf("the words were not kept: %q", words)
	}
	v.click("Cancel")
	v.status("cancelled")
	v.do(chromedp.Click(chromedp.CSS(`.songs li:last-child button`)))
	v.status("running")
	v.click("Cancel")
	v.status("cancelled")
	v.clean()
}

// TestTroubles shows what a person sees of wrong requests, of a server that fails, and of
// a connection that is lost while a song is made.
func TestTroubles(t *testing.T) {
	g, address := start(t, 1, 4)
	v := visit(t, address, 1280, 900)
	v.write(caption, lyrics, 60, 60)

	v.fill("audio_duration", "999")
	v.click("Make the song")
	v.until("the problem at its field", `/360/.test(document.querySelector('[data-field=audio_duration] .problem')?.textContent) && document.getElementById('audio_duration').getAttribute('aria-invalid') === 'true'`)
	v.fill("audio_duration", "60")
	v.until("no problem any more", `!document.querySelector('.problem')`)

	v.fill("input", "[verse] la la la")
	v.until("the mark", `/line 1/.test(document.getElementById('lyrics-marks').innerText) && document.querySelector('.gutter .marked')`)
	v.click("Put it there")
	v.until("the text on its own line", `document.getElementById('input').value === '[verse]\nla la la'`)
	v.fill("input", lyrics)

	g.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/music/jobs" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"error":{"message":"out of tune","type":"server_error","code":"internal_error","param":null,"problems":[]}}`)
		return true
	})
	v.click("Make the song")
	v.until("the server's error", `/could not do this: out of tune/.test(document.querySelector('.errors').innerText)`)
	g.instead(nil)

	v.click("Make the song")
	v.status("running")
	v.hear("running")
	g.cut()
	v.until("that the connection is lost", `/No connection/.test(document.querySelector('.lost:not([hidden])')?.innerText)`)
	g.mend()
	v.until("that it is back", `document.querySelector('.lost').hidden`)
	v.status("done")
	v.hear("done")
	v.until("no word of it any more", `document.querySelector('.player-note').hidden`)
	g.cut()
	v.click("Make the song")
	v.until("that the server is away", `/cannot be reached/.test(document.querySelector('.errors').innerText)`)
	g.mend()
}

// TestKeyboardOnly makes a song and plays it without a mouse.
func TestKeyboardOnly(t *testing.T) {
	_, address := start(t, 1, 4)
	v := visit(t, address, 1280, 900)
	v.until("the page", `document.documentElement.dataset.ready`)
	tab := func(to string) {
		t.Helper()
		for range 80 {
			v.do(chromedp.KeyEvent(kb.Tab))
			if eval[bool](v, `document.activeElement.matches(`+fmt.Sprintf("%q", to)+`)`) {
				return
			}
		}
		t.Fatalf("Tab does not lead to %s\n%s", to, v.state())
	}
	tab("#global")
	v.enter(caption)
	tab("#input")
	v.enter("[verse]\n[chorus]")
	tab("#audio_duration")
	v.do(chromedp.KeyEvent("20"))
	tab("button[type=submit]")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.status("done")
	tab(".wave")
	v.do(chromedp.KeyEvent(" ")) // it plays already: pauses
	v.until("a pause", `document.querySelector('.play').getAttribute('aria-label') === 'Play'`)
	v.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight))
	v.until("5 seconds", `document.querySelector('.wave').getAttribute('aria-valuenow') === '5'`)
	v.do(chromedp.KeyEvent("a"), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent("b"), chromedp.KeyEvent(" "))
	v.until("a loop", `document.querySelector('.loop-range').textContent === 'Loop from 0:05 to 0:10'`)
	v.hear("done")
	if eval[bool](v, `document.activeElement === document.body`) {
		t.Error("the focus was lost")
	}
	v.clean()
}

// TestPhone does the same with a thumb: nothing is wider than the screen, and both parts
// are a tap away.
func TestPhone(t *testing.T) {
	_, address := start(t, 1, 4)
	v := visit(t, address, 360, 720)
	v.until("the page", `document.documentElement.dataset.ready`)
	fits := func(what string) {
		t.Helper()
		if w := eval[int](v, `document.documentElement.scrollWidth`); w > 360 {
			t.Errorf("%s is %d wide", what, w)
		}
	}
	fits("the form")
	v.write(caption, lyrics, 20, 8)
	v.click("Make the song")
	v.status("done")
	v.hear("done")
	v.click("Spectrogram")
	v.until("the spectrogram", `document.querySelector('.spectrogram canvas')`)
	fits("the song")
	const drawn = `(() => {
		const box = document.querySelector('.spectrogram'), all = [...box.querySelectorAll('canvas')];
		const width = all.reduce((most, c) => Math.max(most, c.getBoundingClientRect().right), 0) - box.getBoundingClientRect().left;
		return Math.abs(width - box.clientWidth) < 4 && all.some((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 < 3 && v > 60));
	})()`
	v.until("what sounds in the spectrogram", drawn)
	command(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 300, Height: 720, DeviceScaleFactor: 1, Mobile: true})
	v.until("the same after a turn of the phone", `document.documentElement.clientWidth === 300 && `+drawn)
	command(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 720, DeviceScaleFactor: 1, Mobile: true})
	v.click("Write")
	v.until("the form", `document.getElementById('input').offsetParent`)
	v.click("Songs")
	v.until("the song", `document.querySelector('.player').offsetParent`)
	small := eval[[]string](v, `[...document.querySelectorAll('button, input, select, textarea, summary')].filter((e) => e.offsetParent && !e.matches('.link, [type=checkbox], [type=radio]')).filter((e) => { const r = e.getBoundingClientRect(); return r.width < 24 || r.height < 24; }).map((e) => e.outerHTML)`)
	if len(small) > 0 {
		t.Errorf("smaller than 24 pixels: %q", small)
	}
	v.clean()
}
