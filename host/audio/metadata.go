package audio

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/go-audio/wav"
)

// Metadata says where a file comes from. Empty fields are left out.
type Metadata struct {
	Title    string
	Model    string // "MiniMax-Music3"
	Seed     uint64
	Software string // name and version of the program
}

// Comment is the line that tells people that a machine made the song, from which
// model and which seed.
func (m Metadata) Comment() string {
	parts := []string{"machine-made"}
	if m.Model != "" {
		parts = append(parts, "model "+m.Model)
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", m.Seed)), ", ")
}

// infoStrings are the entries of the INFO chunk.
func infoStrings(m *Metadata) *wav.Metadata {
	if m == nil {
		return nil
	}
	return &wav.Metadata{
		Title:    infoString(m.Title),
		Comments: infoString(m.Comment()),
		Software: infoString(m.Software),
	}
}

// infoString is one line of valid UTF-8. The encoder adds a final zero but not the
// byte that brings an odd entry to an even length, so a second zero is put here.
func infoString(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if s != "" && len(s)%2 == 0 {
		s += "\x00"
	}
	return s
}

// infoBytes is the size of the LIST chunk the encoder will write.
func infoBytes(m *wav.Metadata) int64 {
	if m == nil {
		return 0
	}
	n := int64(len("LIST") + 4 + len("INFO"))
	for _, s := range []string{m.Title, m.Comments, m.Software} {
		if s != "" {
			n += int64(len("INAM") + 4 + len(s) + 1)
		}
	}
	return n
}
