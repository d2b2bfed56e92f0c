package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writeFile(t, a, "1")
	writeFile(t, b, "1")
	loads := map[string]*atomic.Int32{"a": {}, "b": {}}
	var failing atomic.Bool
	count := func(name string, paths ...string) source {
		return source{name, paths, func() error {
			loads[name].Add(1)
			if failing.Load() {
				return errors.New("broken")
			}
			return nil
		}}
	}
	log := &safeBuffer{}
	signals := make(chan os.Signal)
	done := make(chan struct{})
	go func() {
		reload(t.Context(), slog.New(slog.NewTextHandler(log, nil)), signals, 5*time.Millisecond, count("a", a), count("b", b, a+"-missing"))
		close(done)
	}()
	want := func(a, b int32) {
		t.Helper()
		for range 2000 {
			if loads["a"].Load() == a && loads["b"].Load() == b {
				time.Sleep(20 * time.Millisecond) // and no more
				if loads["a"].Load() == a && loads["b"].Load() == b {
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("a was loaded %d times, b %d times; want %d and %d", loads["a"].Load(), loads["b"].Load(), a, b)
	}
	want(0, 0)
	writeFile(t, a, "22")
	want(1, 0)
	writeFile(t, a+"-missing", "there")
	want(1, 1)
	signals <- syscall.SIGHUP
	want(2, 2)
	failing.Store(true)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	want(2, 3)
	failing.Store(false)
	writeFile(t, b, "1")
	want(2, 4)
	if text := log.String(); strings.Count(text, "b not reloaded; the old ones stay in use") != 1 || strings.Count(text, "a reloaded") != 2 {
		t.Errorf("the log says\n%s", text)
	}
}

// newCertificate writes a certificate for 127.0.0.1 and its key.
func newCertificate(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestServeReloads serves HTTPS and changes the certificate and the keys meanwhile.
func TestServeReloads(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, keys := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "keys")
	roots := x509.NewCertPool()
	roots.AddCert(newCertificate(t, certFile, keyFile, 1))
	writeFile(t, keys, "old\n")
	s := serve(t, "--tls-cert", certFile, "--tls-key", keyFile, "--api-key-file", keys, "--pprof", "127.0.0.1:0")
	s.url = strings.Replace(s.url, "http:", "https:", 1)

	// get makes a new connection, and returns the status and the certificate's number.
	get := func(key string) (status int, serial int64) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest("GET", s.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("served by %s", resp.Proto)
		}
		return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	s.wait(t, func() bool { status, _ := get("old"); return status == http.StatusOK })
	if status, serial := get("new"); status != http.StatusUnauthorized || serial != 1 {
		t.Errorf("before: %d, certificate %d", status, serial)
	}
	hangup := func(line string) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.wait(t, func() bool { return strings.Contains(s.stderr.String(), line) })
	}
	roots.AddCert(newCertificate(t, certFile, keyFile, 2))
	writeFile(t, keys, "new\n")
	hangup(`msg="API keys reloaded"`)
	s.wait(t, func() bool { return strings.Contains(s.stderr.String(), `msg="certificate reloaded"`) })
	if status, serial := get("new"); status != http.StatusOK || serial != 2 {
		t.Errorf("after: %d, certificate %d", status, serial)
	}
	if status, _ := get("old"); status != http.StatusUnauthorized {
		t.Errorf("the old key: %d", status)
	}
	// What is broken does not replace what works.
	writeFile(t, keys, "# none\n")
	writeFile(t, keyFile, "no key")
	hangup("API keys not reloaded")
	s.wait(t, func() bool { return strings.Contains(s.stderr.String(), "certificate not reloaded") })
	if status, serial := get("new"); status != http.StatusOK || serial != 2 {
		t.Errorf("after broken files: %d, certificate %d", status, serial)
	}

	profiles := regexp.MustCompile(`url=(http://\S+)`).FindStringSubmatch(s.stderr.String())
	if profiles == nil {
		t.Fatalf("no profiles: %s", s.stderr)
	}
	resp, err := http.Get(profiles[1] + "goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("profiles: %s", resp.Status)
	}
	s.stop(&signalError{15})
	if code := <-s.code; code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}

func TestServeRefuses(t *testing.T) {
	for _, tt := range []struct{ args, part string }{
		{"--tls-cert x", "--tls-key"},
		{"--tls-key x", "--tls-cert"},
		{"--tls-cert /no/such --tls-key /no/such", "/no/such"},
		{"--pprof 0.0.0.0:0", "loopback"},
		{"--pprof nowhere", "--pprof nowhere"},
	} {
		s := &safeBuffer{}
		code := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir()}, strings.Fields(tt.args)...), nil, strings.NewReader(""), s, s)
		if code != exitUsage || !strings.Contains(s.String(), tt.part) {
			t.Errorf("%s: exit code %d, %s", tt.args, code, s)
		}
	}
}
