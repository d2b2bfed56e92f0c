package mp3

import (
	"fmt"
	"math"
)

// id3Frames are the ID3 frames of tags that have one; others become user-defined texts.
var id3Frames = map[string]string{"TITLE": "TIT2", "COMMENT": "COMM", "ENCODER": "TSSE"}

// utf8Text marks a text as UTF-8.
const utf8Text = 3

// id3 makes an ID3 tag of version 2.4 (id3.org, "ID3 tag version 2.4.0").
func id3(tags [][2]string) ([]byte, error) {
	var frames []byte
	for _, tag := range tags {
		name, value := tag[0], tag[1]
		body := []byte{utf8Text}
		id, ok := id3Frames[name]
		switch {
		case !ok:
			id = "TXXX"
			body = append(append(body, name...), 0)
		case id == "COMM":
			body = append(body, "und\x00"...) // the language, undetermined, and no description
		}
		body = append(body, value...)
		size, err := synchsafe(len(body))
		if err != nil {
			return nil, fmt.Errorf("mp3: tag %s: %w", name, err)
		}
		frames = append(frames, id...)
		frames = append(frames, size[:]...)
		frames = append(frames, 0, 0)
		frames = append(frames, body...)
	}
	if len(frames) == 0 {
		return nil, nil
	}
	size, err := synchsafe(len(frames))
	if err != nil {
		return nil, fmt.Errorf("mp3: tags: %w", err)
	}
	header := append([]byte("ID3\x04\x00\x00"), size[:]...)
	return append(header, frames...), nil
}

// synchsafe is a length in four bytes of seven bits, none of which looks like the
// beginning of an audio frame.
func synchsafe(n int) (b [4]byte, err error) {
	if n > math.MaxInt32>>3 {
		return b, fmt.Errorf("%d bytes: expected at most %d", n, math.MaxInt32>>3)
	}
	for i := range b {
		b[i] = byte(n >> (7 * (3 - i)) & 0x7f)
	}
	return b, nil
}
