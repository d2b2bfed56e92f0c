package main

import (
	"crypto/tls"
	"sync/atomic"
)

// certificate is a TLS certificate that can be replaced while it is in use.
type certificate struct {
	certFile, keyFile string
	pair              atomic.Pointer[tls.Certificate]
}

// load reads the files.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair.Store(&pair)
	return nil
}

// config serves the certificate as it is at each handshake.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil },
	}
}

// openCertificate reads the files of --tls-cert and --tls-key; nil when there are none.
func openCertificate(certFile, keyFile string) (*certificate, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, usagef("--tls-cert and --tls-key belong together: give both")
	}
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if err := c.load(); err != nil {
		return nil, usagef("--tls-cert %s, --tls-key %s: %w", certFile, keyFile, err)
	}
	return c, nil
}
