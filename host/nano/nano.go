// Package nano holds the built-in demonstration model: a complete checkpoint of the
// MiniMax-Music3 architecture with 3 million parameters (9 MB), in the same folder
// layout as the published one. It plays one small style and does not sing; it is
// there so that the program makes a song, and the tests have something to check, with
// nothing downloaded.
//
// README.md beside this file says what it understands and how it was made.
package nano

import (
	"embed"
	"io/fs"
)

//go:embed model
var files embed.FS

// FS returns the checkpoint folder: tokenizer/tokenizer.json, language_model/config.json
// and so on, read-only and compiled into the program.
func FS() fs.FS {
	sub, err := fs.Sub(files, "model")
	if err != nil {
		panic(err) // only for an invalid path, and this one is a constant
	}
	return sub
}
