//go:build !amd64 && !arm64

package machine

func features() []string { return present(nil) }
