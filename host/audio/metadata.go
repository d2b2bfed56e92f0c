package audio

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
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

// tags are the Vorbis comments of FLAC and Opus, and what becomes of them in ID3.
func (m Metadata) tags() (tags [][2]string) {
	for _, tag := range [][2]string{
		{"TITLE", m.Title}, {"COMMENT", m.Comment()}, {"MODEL", m.Model},
		{"SEED", fmt.Sprint(m.Seed)}, {"ENCODER", m.Software},
	} {
		if tag[1] = oneLine(tag[1]); tag[1] != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// infoChunk is the LIST chunk of a WAV file, nothing without metadata.
func infoChunk(m *Metadata) []byte {
	if m == nil {
		return nil
	}
	list := []byte("INFO")
	for _, entry := range [][2]string{{"ICMT", m.Comment()}, {"INAM", m.Title}, {"ISFT", m.Software}} {
		text := oneLine(entry[1])
		if text == "" {
			continue
		}
		text += "\x00"
		if len(text)%2 != 0 { // chunks begin at even positions
			text += "\x00"
		}
		list = append(list, entry[0]...)
		list = binary.LittleEndian.AppendUint32(list, uint32(len(text)))
		list = append(list, text...)
	}
	chunk := binary.LittleEndian.AppendUint32([]byte("LIST"), uint32(len(list)))
	return append(chunk, list...)
}

// oneLine is a text as valid UTF-8 without control characters.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
